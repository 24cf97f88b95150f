// Finishes a leaf's copies. The root's copy becomes an UP. The others become answers, as in answer.p4.

control LeafAnswer(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    Answer() workers;
    counter(MAX_JOBS, CounterType.packets) ups;

    action read_sum() {
#define READ(i) hdr.values.lanes_##i = meta.leaf.sum_##i;
        FOR_EACH_FIELD(READ)
#undef READ
    }

    action become_up() {
        hdr.serene.op = op_t.UP;
        hdr.serene.worker = meta.leaf.rack;
        hdr.serene.session = meta.policy.session;
        hdr.serene.epoch = meta.leaf.up_epoch;
        hdr.serene.round = meta.leaf.up_base;
        hdr.serene.seq = meta.leaf.echo_seq;
        hdr.serene.total = meta.leaf.up_total;
        hdr.serene.seen = meta.policy.session;
        hdr.serene.sync_mask = meta.leaf.echo_port;
        hdr.serene.staleness = meta.leaf.ask ? 8w1 : 0;
        hdr.serene.quorum = meta.leaf.up_arrivals;
        hdr.serene.members = meta.leaf.echo_worker;
        hdr.ethernet.destination = meta.leaf.root_mac;
        hdr.ethernet.source = meta.leaf.own_mac;
        hdr.ipv4.source = meta.leaf.own_ip;
        hdr.ipv4.destination = meta.leaf.root_ip;
        hdr.ipv4.ttl = 64;
        hdr.udp.source_port = SERENE_UDP_PORT;
        hdr.udp.destination_port = SERENE_UDP_PORT;
        hdr.udp.checksum = 0;
    }

    apply {
        bool copy = standard_metadata.egress_rid != 0;      // one of several copies; otherwise the only packet
        if (meta.leaf.only_up || standard_metadata.egress_rid == (bit<16>)ROOT + 1) {
            if (meta.leaf.up) {
                if (meta.decision.go) {
                    read_sum();
                }
                become_up();
                ups.count((bit<32>)meta.job);
            } else {
                mark_to_drop(standard_metadata);
            }
        } else {
            // A release names the round that the worker waited for, even if the root has granted more since.
            if (!meta.decision.go || (copy && standard_metadata.egress_rid != (bit<16>)meta.worker + 1)) {
                hdr.serene.round = meta.leaf.release_base;
            }
            workers.apply(hdr, meta, standard_metadata);
        }
    }
}
