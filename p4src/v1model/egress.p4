// Every copy passes here after ingress. A packet to the controller gets its ingress port. Ordinary traffic is never
// sent back to its ingress port. The control that the top file names finishes answers: a leaf and a root have their
// own.
#ifndef ANSWER
#define ANSWER Answer
#endif

control SereneEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    ANSWER() answer;

    action say_port() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in.padding = 0;
    }

    apply {
        if (standard_metadata.egress_port == CPU_PORT) {
            say_port();
        } else if (meta.between_hosts) {
            if (standard_metadata.egress_port == standard_metadata.ingress_port) {
                mark_to_drop(standard_metadata);
            }
        } else if (meta.answering) {
            answer.apply(hdr, meta, standard_metadata);
        }
    }
}
