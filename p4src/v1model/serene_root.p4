// The root of a tree of switches (docs/hierarchy.md). Its members are leaves. It keeps each rack's last sum and decides
// when a round is complete.

#define WITH_VALUES \
            (PROTOCOL_VERSION, op_t.UP): parse_values;
#define TREE_METADATA root_t root;
#define ANSWER RootAnswer

#include <core.p4>
#include <v1model.p4>
#include "root_headers.p4"
#include "headers.p4"
#include "parser.p4"
#include "checksum.p4"
#include "forwarding.p4"
#include "admission.p4"
#include "root_barrier.p4"
#include "root_aggregation.p4"
#include "root_answer.p4"

control SereneIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Forwarding() forwarding;
    Admission() admission;
    RootBarrier() barrier;
    RootAggregation() aggregation;

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (!hdr.udp.isValid() || hdr.udp.destination_port != SERENE_UDP_PORT) {
            forwarding.apply(hdr, meta, standard_metadata);
        } else {
            admission.apply(hdr, meta, standard_metadata);
            if (hdr.serene.op != op_t.UP) {
                mark_to_drop(standard_metadata);        // the root serves only UPs
            } else {
                barrier.apply(hdr, meta, standard_metadata);
                aggregation.apply(hdr, meta);
                rack_bitmap_t plain = meta.root.down | meta.root.grant;
                meta.answering = true;
                if ((plain & ~meta.root.sender) != 0 || (meta.root.echo && plain != 0)) {
                    standard_metadata.mcast_grp = JOB_GROUPS + (bit<16>)meta.job;
                } else if (meta.root.echo || plain != 0) {
                    standard_metadata.egress_spec = standard_metadata.ingress_port;
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
