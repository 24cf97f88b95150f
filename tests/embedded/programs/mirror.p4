// Packets dropped by one action while a copy of them is dropped by another, in both pipelines; and what log_msg says.

#include <core.p4>
#include <v1model.p4>

const bit<32> SESSION = 5;
const bit<16> DROP_IN_INGRESS = 1;
const bit<16> DROP_IN_EGRESS = 2;
const bit<32> NORMAL = 0;

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control MirrorIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop_original() { mark_to_drop(standard); }
    action copy() { clone(CloneType.I2E, SESSION); }

    apply {
        standard.egress_spec = 2;
        log_msg("type {} from {}, {}", {hdr.ethernet.type, hdr.ethernet.source, 8w7});
        log_msg("nothing else {}");
        if (hdr.ethernet.type == DROP_IN_INGRESS) {
            copy();
            drop_original();
        }
    }
}

control MirrorEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop_original() { mark_to_drop(standard); }
    action drop_copy() { mark_to_drop(standard); }
    action copy() { clone(CloneType.E2E, SESSION); }

    apply {
        if (standard.instance_type != NORMAL) {
            drop_copy();
        } else if (hdr.ethernet.type == DROP_IN_EGRESS) {
            copy();
            drop_original();
        }
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); }
}

V1Switch(Parse(), Verify(), MirrorIngress(), MirrorEgress(), Compute(), Deparse()) main;
