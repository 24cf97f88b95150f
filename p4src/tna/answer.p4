// Finishes a packet to one worker. When a round completes or an epoch begins, the replication engine makes a copy for
// every member of the job. Each copy becomes an answer, a release or a nudge, or is dropped.

control Answer(inout headers_t hdr,
               inout egress_metadata_t meta,
               in egress_intrinsic_metadata_t eg_intr_md,
               inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) answers;
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) releases;
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) nudges;

    action set_receiver(worker_t worker, worker_bitmap_t bitmap) {
        meta.receiver = worker;
        meta.receiver_bit = bitmap;
    }

    action set_sender() {
        meta.receiver = hdr.serene.worker;
        meta.receiver_bit = 0;
    }

    // Replica r of a multicast is for worker r - 1. 0 is no replica.
#define RECEIVER(worker) worker + 1: set_receiver(worker, 32w1 << worker);
    table receiver {
        key = { eg_intr_md.egress_rid: exact; }
        actions = { set_receiver; set_sender; }
        const default_action = set_sender();
        const entries = { FOR_EACH_WORKER(RECEIVER) }
        size = 32;
    }
#undef RECEIVER

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
        eg_dprsr_md.drop_ctl = 1;
    }

    // A member's addresses and UDP port. Admission's table `member` compares the same values in requests.
    table address {
        key = {
            hdr.serene.job: exact @name("job");
            meta.receiver: exact @name("worker");
        }
        actions = { to_member; nobody; }
        const default_action = nobody();
        size = 256;                // MAX_JOBS * 32
    }

    action compare() {
        meta.to_other = meta.receiver ^ hdr.serene.worker;
        meta.released = meta.receiver_bit & hdr.called.waiting;
    }

    action welcome() {
        hdr.serene.op = op_t.WELCOME;
    }

    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) who;

    action answer() {
        hdr.serene.op = op_t.ANSWER;
        bit<8> index = who.get(BY_WORKER(meta.receiver));
        answers.count(index);
    }

    action release() {
        hdr.serene.op = op_t.ANSWER;
        hdr.serene.seq = 0;
        bit<8> index = who.get(BY_WORKER(meta.receiver));
        releases.count(index);
    }

    // The values stay in the packet, behind its end as IP and UDP count it.
    action nudge() {
        hdr.serene.op = op_t.NUDGE;
        hdr.serene.seq = 0;
        hdr.serene.total = 0;
        hdr.udp.length = UDP_BYTES + SERENE_BYTES;
        hdr.ipv4.total_length = IPV4_BYTES + UDP_BYTES + SERENE_BYTES;
        bit<8> index = who.get(BY_WORKER(meta.receiver));
        nudges.count(index);
    }

    action drop() {
        eg_dprsr_md.drop_ctl = 1;
    }

    action set_worker() {
        hdr.serene.worker = meta.receiver;
    }

    apply {
        receiver.apply();
        compare();
        address.apply();
        set_worker();
        if (hdr.bridge.purpose == purpose_t.WELCOME) {
            welcome();
        } else if (meta.to_other != 0 && meta.released == 0) {
            drop();
        } else if (hdr.bridge.purpose == purpose_t.NUDGE) {
            nudge();
        } else if (meta.to_other == 0) {
            answer();
        } else {
            release();
        }
    }
}
