// Accepts a packet if its port, addresses, job, worker id and incarnation belong together. The packet must also be
// complete, and of the job's present session. Each other reason to drop a packet has a counter.

// MAX_JOBS * MAX_WORKERS. The leaf's top file defines more, because the root is a member there.
#ifndef MEMBERS
#define MEMBERS 256
#endif

control Admission(inout headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets_and_bytes) dropped_malformed;        // truncated, or not a known request
    counter(1, CounterType.packets_and_bytes) dropped_bad_checksum;
    counter(1, CounterType.packets_and_bytes) dropped_stranger;         // no entry in the table `member`
    counter(1, CounterType.packets_and_bytes) dropped_no_policy;        // the job has ended or never began
    counter(1, CounterType.packets_and_bytes) dropped_wrong_session;
    counter(1, CounterType.packets_and_bytes) dropped_wrong_slot;

    action to_controller() {
        standard_metadata.egress_spec = CPU_PORT;
    }

    action admit() { }

    table member {
        key = {
            standard_metadata.ingress_port: exact @name("port");
            hdr.ethernet.source: exact @name("mac");
            hdr.ipv4.source: exact @name("ip");
            hdr.udp.source_port: exact @name("udp_port");
            hdr.serene.job: exact @name("job");
            hdr.serene.worker: exact @name("worker");
            hdr.serene.seen: exact @name("incarnation");
        }
        actions = { admit; NoAction; }
        const default_action = NoAction();
        size = MEMBERS;
    }

    // A job's slots and sizes do not change while it runs. share: 65536 / workers, rounded up.
    action set_job(slot_t first_slot, slot_t slots, bit<32> vector_length, bit<32> scale, bit<32> limit,
                   bit<8> workers, bit<8> lost_sessions, bit<32> share) {
        meta.first_slot = first_slot;
        meta.slots = slots;
        meta.share = share;
        hdr.membership.vector_length = vector_length;
        hdr.membership.slots = slots;
        hdr.membership.scale = scale;
        hdr.membership.limit = limit;
        hdr.membership.lanes = FIELDS * FIELD_LANES;
        hdr.membership.workers = workers;
        hdr.membership.lost_sessions = lost_sessions;
    }

    table job {
        key = { hdr.serene.job: exact @name("job"); }
        actions = { set_job; NoAction; }
        const default_action = NoAction();
        size = 8;                  // MAX_JOBS
    }

    // The policy in force. A swap is one MODIFY of this entry. The switch ignores member_mask, the job's members: a
    // controller that takes over reads it.
    @noWarn("unused")
    action set_policy(session_t session, epoch_t epoch, worker_bitmap_t member_mask,
                      worker_bitmap_t sync_mask, bit<8> staleness, bit<8> quorum, read_mode_t read_mode,
                      bit<8> members) {
        meta.policy.session = session;
        meta.policy.epoch = epoch;
        meta.policy.sync_mask = sync_mask;
        meta.policy.staleness = staleness;
        meta.policy.quorum = quorum;
        meta.policy.read_mode = read_mode;
        meta.policy.members = members;
    }

    table policy {
        key = { hdr.serene.job: exact @name("job"); }
        actions = { set_policy; NoAction; }
        const default_action = NoAction();
        size = 8;                  // MAX_JOBS
    }

    // Sets meta.job and meta.worker, and returns if the op is to be served. Otherwise the packet is dropped or punted.
    apply {
        bit<16> expected = 0;      // not a known request
        if (hdr.values.isValid()) {
            expected = UDP_BYTES + SERENE_BYTES + VALUES_BYTES;
        } else if (hdr.membership.isValid()) {
            expected = UDP_BYTES + SERENE_BYTES + MEMBERSHIP_BYTES;
        } else if (hdr.serene.isValid() && hdr.serene.version == PROTOCOL_VERSION
                   && (hdr.serene.op == op_t.REPORT || hdr.serene.op == op_t.LEAVE)) {
            expected = hdr.udp.length;      // any length: only the controller reads their text
        }

        if (standard_metadata.checksum_error == 1) {
            dropped_bad_checksum.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        if (expected == 0 || hdr.udp.length != expected || hdr.ipv4.total_length != IPV4_BYTES + hdr.udp.length) {
            dropped_malformed.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        if (!member.apply().hit) {
            // With a HELLO a stranger asks to join, for the first time or after a restart.
            if (hdr.serene.op == op_t.HELLO) {
                to_controller();
            } else {
                dropped_stranger.count(0);
                mark_to_drop(standard_metadata);
            }
            exit;
        }
        meta.job = hdr.serene.job;
        meta.worker = hdr.serene.worker;
        if (hdr.serene.op == op_t.REPORT || hdr.serene.op == op_t.LEAVE) {
            to_controller();
            exit;
        }
        if (!job.apply().hit || !policy.apply().hit) {
            dropped_no_policy.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        if (hdr.serene.op == op_t.HELLO) {
            return;
        }
        if (hdr.serene.session != meta.policy.session) {
            dropped_wrong_session.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        if (hdr.serene.slot >= meta.slots) {
            dropped_wrong_slot.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
    }
}
