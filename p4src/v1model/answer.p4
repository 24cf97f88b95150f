// Finishes a packet to one worker. When a round completes or an epoch begins, the replication engine makes a copy for
// every member of the job. Each copy becomes an answer, a release or a nudge, or is dropped.

control Answer(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    counter(MAX_JOBS * MAX_WORKERS, CounterType.packets) answers;
    counter(MAX_JOBS * MAX_WORKERS, CounterType.packets) releases;
    counter(MAX_JOBS * MAX_WORKERS, CounterType.packets) nudges;

    action to_member(mac_address_t mac, ipv4_address_t ip, bit<16> udp_port,
                     mac_address_t switch_mac, ipv4_address_t switch_ip) {
        hdr.ethernet.destination = mac;
        hdr.ethernet.source = switch_mac;
        hdr.ipv4.source = switch_ip;
        hdr.ipv4.destination = ip;
        hdr.ipv4.ttl = 64;
        hdr.udp.source_port = SERENE_UDP_PORT;
        hdr.udp.destination_port = udp_port;
        hdr.udp.checksum = 0;
    }

    action nobody() {
        mark_to_drop(standard_metadata);
    }

    // A member's addresses and UDP port. Admission's table `member` compares the same values in requests.
    table address {
        key = {
            meta.job: exact @name("job");
            meta.worker: exact @name("worker");
        }
        actions = { to_member; nobody; }
        const default_action = nobody();
        size = 256;                // MAX_JOBS * MAX_WORKERS
    }

    action say_policy() {
        hdr.serene.session = meta.policy.session;
        hdr.serene.epoch = meta.policy.epoch;
        hdr.serene.sync_mask = meta.policy.sync_mask;
        hdr.serene.staleness = meta.policy.staleness;
        hdr.serene.quorum = meta.policy.quorum;
        hdr.serene.read_mode = meta.policy.read_mode;
        hdr.serene.members = meta.policy.members;
    }

    action nudge() {
        hdr.serene.op = op_t.NUDGE;
        hdr.serene.seq = 0;
        hdr.serene.total = 0;
        hdr.values.setInvalid();
        hdr.udp.length = UDP_BYTES + SERENE_BYTES;
        hdr.ipv4.total_length = IPV4_BYTES + UDP_BYTES + SERENE_BYTES;
    }

    apply {
        bool to_sender = true;
        if (standard_metadata.egress_rid != 0) {
            worker_t receiver = (worker_t)(standard_metadata.egress_rid - 1);
            to_sender = receiver == meta.worker;
            meta.worker = receiver;
        }
        worker_bitmap_t receiver_bit = (worker_bitmap_t)1 << meta.worker;
        bit<32> who = ((bit<32>)meta.job << 5) + (bit<32>)meta.worker;

        if (hdr.serene.op == op_t.HELLO) {
            hdr.serene.op = op_t.WELCOME;
        } else if (to_sender && meta.decision.go) {
            hdr.serene.op = op_t.ANSWER;
            answers.count(who);
        } else if (meta.decision.release & receiver_bit != 0) {
            hdr.serene.op = op_t.ANSWER;
            hdr.serene.seq = 0;
            releases.count(who);
        } else if (meta.decision.nudge & receiver_bit != 0) {
            nudge();
            nudges.count(who);
        } else {
            mark_to_drop(standard_metadata);
            return;
        }
        hdr.serene.worker = meta.worker;
        say_policy();
        address.apply();
    }
}
