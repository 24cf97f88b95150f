// A leaf of a tree of switches: the switch of one rack (docs/hierarchy.md). To its workers it behaves like serene.p4.
// It adds up its rack, and the root decides.

#define MEMBERS 264               // MAX_JOBS * (MAX_WORKERS and the root)
#define WITH_VALUES \
            (PROTOCOL_VERSION, op_t.PUSH): parse_values; \
            (PROTOCOL_VERSION, op_t.PULL): parse_values; \
            (PROTOCOL_VERSION, op_t.DOWN): parse_values; \
            (PROTOCOL_VERSION, op_t.GRANT): parse_values;
#define TREE_METADATA leaf_t leaf;
#define ANSWER LeafAnswer

#include <core.p4>
#include <v1model.p4>
#include "leaf_headers.p4"
#include "headers.p4"
#include "parser.p4"
#include "checksum.p4"
#include "forwarding.p4"
#include "admission.p4"
#include "leaf_barrier.p4"
#include "leaf_aggregation.p4"
#include "answer.p4"
#include "leaf_answer.p4"

control SereneIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Forwarding() forwarding;
    Admission() admission;
    LeafBarrier() barrier;
    LeafAggregation() aggregation;
    counter(1, CounterType.packets_and_bytes) dropped_not_root;     // a worker sent a root's op, or the reverse

    // The root's port and addresses, this leaf's own, and the number of this rack.
    action set_root(bit<9> port, bit<8> rack, mac_address_t mac, ipv4_address_t ip,
                    mac_address_t own_mac, ipv4_address_t own_ip) {
        meta.leaf.root_port = port;
        meta.leaf.rack = rack;
        meta.leaf.root_mac = mac;
        meta.leaf.root_ip = ip;
        meta.leaf.own_mac = own_mac;
        meta.leaf.own_ip = own_ip;
    }

    table root {
        key = { meta.job: exact @name("job"); }
        actions = { set_root; NoAction; }
        const default_action = NoAction();
        size = 8;                  // MAX_JOBS
    }

    action reply(bit<9> port) {
        meta.answering = true;
        standard_metadata.egress_spec = port;
    }

    action send_up() {
        meta.answering = true;
        meta.leaf.only_up = true;
        standard_metadata.egress_spec = meta.leaf.root_port;
    }

    action reply_to_all() {
        meta.answering = true;
        standard_metadata.mcast_grp = JOB_GROUPS + (bit<16>)meta.job;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (!hdr.udp.isValid() || hdr.udp.destination_port != SERENE_UDP_PORT) {
            forwarding.apply(hdr, meta, standard_metadata);
        } else {
            admission.apply(hdr, meta, standard_metadata);
            bool from_root = hdr.serene.op == op_t.DOWN || hdr.serene.op == op_t.GRANT;
            if (from_root != (meta.worker == ROOT)) {
                dropped_not_root.count(0);
                mark_to_drop(standard_metadata);
            } else if (hdr.serene.op == op_t.HELLO) {
                reply(standard_metadata.ingress_port);
            } else {
                root.apply();
                barrier.apply(hdr, meta, standard_metadata);
                aggregation.apply(hdr, meta);
                worker_bitmap_t others = meta.decision.release | meta.decision.nudge;
                if (meta.leaf.echoed) {
                    others = others & ~((worker_bitmap_t)1 << meta.worker);
                }
                if (others != 0 || (meta.leaf.up && meta.decision.go)) {
                    reply_to_all();
                } else if (meta.leaf.up) {
                    send_up();
                } else if (meta.decision.go || meta.decision.nudge != 0) {
                    reply(meta.leaf.reply_port);
                } else {
                    mark_to_drop(standard_metadata);
                }
            }
        }
    }
}

#include "egress.p4"

V1Switch(SereneParser(),
         VerifyIpv4Checksum(),
         SereneIngress(),
         SereneEgress(),
         ComputeIpv4Checksum(),
         SereneDeparser()) main;
