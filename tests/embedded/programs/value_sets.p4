/* Parser value sets: of one field, and of two. */
#include <core.p4>
#include <v1model.p4>

header probe_t {
    bit<16> kind;
    bit<8> low;
    bit<12> high;
    bit<4> found;    /* 1: the first set has the kind; 2: the second has low and high; 0: neither */
}

struct pair_t {
    bit<8> low;
    bit<12> high;
}

struct headers_t { probe_t probe; }
struct metadata_t { bit<4> found; }

parser SetsParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) kinds;
    value_set<pair_t>(4) pairs;

    state start {
        packet.extract(hdr.probe);
        transition select(hdr.probe.kind) {
            kinds: first;
            default: look;
        }
    }
    state first {
        meta.found = 1;
        transition accept;
    }
    state look {
        transition select(hdr.probe.low, hdr.probe.high) {
            pairs: second;
            default: accept;
        }
    }
    state second {
        meta.found = 2;
        transition accept;
    }
}

control SetsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.probe.found = meta.found;
        standard.egress_spec = standard.ingress_port;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) { apply {} }

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

control SetsDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.probe); } }

V1Switch(SetsParser(), NoChecksum(), SetsIngress(), NoEgress(), NoChecksum(), SetsDeparser()) main;
