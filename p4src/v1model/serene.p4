// Serene's data plane on v1model (BMv2 and the embedded switch).

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"
#include "parser.p4"
#include "checksum.p4"
#include "forwarding.p4"
#include "admission.p4"
#include "barrier.p4"
#include "aggregation.p4"
#include "answer.p4"

control SereneIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Forwarding() forwarding;
    Admission() admission;
    Barrier() barrier;
    Aggregation() aggregation;

    action reply() {
        meta.answering = true;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
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
            if (hdr.serene.op == op_t.HELLO) {
                reply();
            } else {
                barrier.apply(hdr, meta, standard_metadata);
                aggregation.apply(hdr, meta.decision);
                if ((meta.decision.release | meta.decision.nudge) != 0) {
                    reply_to_all();
                } else if (meta.decision.go) {
                    reply();
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
