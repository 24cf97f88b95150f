/* Tables whose entries name members of an action profile, or groups of an action selector. */
#include <core.p4>
#include <v1model.p4>

header probe_t {
    bit<8> direct;    /* key of by_member */
    bit<8> spread;    /* key of by_group */
    bit<16> flow;     /* what the selector hashes */
    bit<16> first;    /* what the actions wrote */
    bit<16> second;
}

struct headers_t { probe_t probe; }
struct metadata_t {}

parser ProfilesParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.probe);
        transition accept;
    }
}

control ProfilesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action_profile(4) members;
    action_selector(HashAlgorithm.crc16, 8, 16) spreader;

    action first(bit<16> value) { hdr.probe.first = value; }
    action nothing() {}
    action second(bit<16> value) { hdr.probe.second = value; }

    table by_member {
        key = { hdr.probe.direct: exact; }
        actions = { first; nothing; }
        implementation = members;
        size = 16;
    }

    table by_group {
        key = { hdr.probe.spread: exact; hdr.probe.flow: selector; }
        actions = { second; nothing; }
        implementation = spreader;
        size = 16;
    }

    apply {
        standard.egress_spec = standard.ingress_port;
        by_member.apply();
        by_group.apply();
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) { apply {} }

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

control ProfilesDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.probe); } }

V1Switch(ProfilesParser(), NoChecksum(), ProfilesIngress(), NoEgress(), NoChecksum(), ProfilesDeparser()) main;
