// Accepts a packet if its port, addresses, job, worker id and incarnation belong together. The packet must also be
// complete, and of the job's present session. Every other reason has a counter.
//
// All look-ups are in one stage, and later tables combine their results. A gateway compares few bits. So the tables'
// actions already subtract the values to be compared.

control Admission(inout headers_t hdr,
                  inout metadata_t meta,
                  in ingress_intrinsic_metadata_t ig_intr_md,
                  in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                  inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    action classify(request_t request) {
        meta.request = request;
    }

    // Classifies a packet by its headers, and checks its lengths.
#define UDP_LENGTH(bytes) (UDP_BYTES + SERENE_BYTES + (bytes))
#define IP_LENGTH(bytes) (IPV4_BYTES + UDP_LENGTH(bytes))
#define ANY_SLOT 32w0 &&& ~(slot_t)((1 << SLOT_BITS) - 1)
#define ANY_ROUND 32w0 &&& 0xff000000
    table verdict {
        key = {
            meta.checksum_error: ternary;
            ig_prsr_md.parser_err: ternary;
            ig_intr_md.ingress_port: ternary;
            hdr.serene.version: ternary;
            hdr.serene.op: ternary;
            hdr.udp.length: ternary;
            hdr.ipv4.total_length: ternary;
            hdr.serene.slot: ternary;
            hdr.serene.round: ternary;
        }
        actions = { classify; }
        const default_action = classify(request_t.MALFORMED);
        const entries = {
            (true, _, _, _, _, _, _, _, _): classify(request_t.BAD_CHECKSUM);
            (false, 0, LOOP_PORT, PROTOCOL_VERSION, op_t.PUSH, UDP_LENGTH(VALUES_BYTES), IP_LENGTH(VALUES_BYTES),
             ANY_SLOT, ANY_ROUND): classify(request_t.COMPLETION);
            (false, 0, _, PROTOCOL_VERSION, op_t.PUSH, UDP_LENGTH(VALUES_BYTES), IP_LENGTH(VALUES_BYTES),
             ANY_SLOT, ANY_ROUND): classify(request_t.PUSH);
            (false, 0, _, PROTOCOL_VERSION, op_t.PULL, UDP_LENGTH(VALUES_BYTES), IP_LENGTH(VALUES_BYTES),
             ANY_SLOT, _): classify(request_t.PULL);
            (false, 0, _, PROTOCOL_VERSION, op_t.PUSH, UDP_LENGTH(VALUES_BYTES), IP_LENGTH(VALUES_BYTES),
             ANY_SLOT, _): classify(request_t.WRONG_ROUND);
            (false, 0, _, PROTOCOL_VERSION, op_t.PUSH, UDP_LENGTH(VALUES_BYTES), IP_LENGTH(VALUES_BYTES),
             _, _): classify(request_t.WRONG_SLOT);
            (false, 0, _, PROTOCOL_VERSION, op_t.PULL, UDP_LENGTH(VALUES_BYTES), IP_LENGTH(VALUES_BYTES),
             _, _): classify(request_t.WRONG_SLOT);
            (false, 0, _, PROTOCOL_VERSION, op_t.HELLO, UDP_LENGTH(MEMBERSHIP_BYTES), IP_LENGTH(MEMBERSHIP_BYTES),
             _, _): classify(request_t.HELLO);
            (false, 0, _, PROTOCOL_VERSION, op_t.REPORT, _, _, _, _): classify(request_t.REPORT);
            (false, 0, _, PROTOCOL_VERSION, op_t.LEAVE, _, _, _, _): classify(request_t.REPORT);
        }
        size = 16;
    }

    action admit() {
        meta.member = 1;
    }

    table member {
        key = {
            ig_intr_md.ingress_port: exact @name("port");
            hdr.ethernet.source: exact @name("mac");
            hdr.ipv4.source: exact @name("ip");
            hdr.udp.source_port: exact @name("udp_port");
            hdr.serene.job: exact @name("job");
            hdr.serene.worker: exact @name("worker");
            hdr.serene.seen: exact @name("incarnation");
        }
        actions = { admit; NoAction; }
        const default_action = NoAction();
        size = 256;                // MAX_JOBS * 32
    }

    // A job's slots and sizes do not change while it runs. Only v1model uses share: here a table divides by `workers`.
    action set_job(slot_t first_slot, slot_t slots, bit<32> vector_length, bit<32> scale, bit<32> limit,
                   bit<8> workers, bit<8> lost_sessions, bit<32> share) {
        meta.known_job = 1;
        meta.slot = hdr.serene.slot + first_slot;
        meta.room = slots - hdr.serene.slot;
        meta.job.vector_length = vector_length;
        meta.job.slots = slots;
        meta.job.scale = scale;
        meta.job.limit = limit;
        meta.job.workers = workers;
        meta.job.lost_sessions = lost_sessions;
    }

    table job {
        key = { hdr.serene.job: exact @name("job"); }
        actions = { set_job; NoAction; }
        const default_action = NoAction();
        size = 8;                  // MAX_JOBS
    }

    // The policy in force. A swap is one MODIFY of this entry. The switch ignores member_mask, the job's members: a
    // controller that takes over reads it. Two parameters are wider than v1model's, because table data cannot be
    // widened where it is used.
    action set_policy(session_t session, epoch_t epoch, worker_bitmap_t member_mask,
                      worker_bitmap_t sync_mask, bit<32> staleness, bit<32> quorum, read_mode_t read_mode,
                      bit<8> members) {
        meta.known_policy = 1;
        meta.session_gap = session - hdr.serene.session;
        meta.epoch_gap = epoch - hdr.serene.epoch;
        meta.allowance = staleness - hdr.serene.round;
        meta.bound = staleness;
        meta.target = quorum;
        meta.policy.session = session;
        meta.policy.epoch = epoch;
        meta.policy.sync_mask = sync_mask;
        meta.policy.staleness = staleness[7:0];
        meta.policy.quorum = quorum[7:0];
        meta.policy.read_mode = read_mode;
        meta.policy.members = members;
    }

    table policy {
        key = { hdr.serene.job: exact @name("job"); }
        actions = { set_policy; NoAction; }
        const default_action = NoAction();
        size = 8;                  // MAX_JOBS
    }

    action to_controller() {
        ig_tm_md.ucast_egress_port = CPU_PORT;
    }

    action refuse(refusal_t reason) {
        meta.refusal = reason;
    }

    action subtract_lengths() {
        meta.other_bytes = hdr.ipv4.total_length - hdr.udp.length;
    }

    // The complement of ADMITTED, with reasons. A packet without a destination is dropped in the end.
    table refused {
        key = {
            meta.request: ternary;
            meta.member: ternary;
            meta.known_job: ternary;
            meta.known_policy: ternary;
            meta.session_gap: ternary;
            meta.room: ternary;
            meta.other_bytes: ternary;
        }
        actions = { refuse; to_controller; NoAction; }
        const default_action = NoAction();
        const entries = {
            (request_t.BAD_CHECKSUM, _, _, _, _, _, _): refuse(refusal_t.BAD_CHECKSUM);
            (request_t.MALFORMED, _, _, _, _, _, _): refuse(refusal_t.MALFORMED);
            (request_t.REPORT, 1, _, _, _, _, IPV4_BYTES): to_controller();
            (request_t.REPORT, 0, _, _, _, _, IPV4_BYTES): refuse(refusal_t.STRANGER);
            (request_t.REPORT, _, _, _, _, _, _): refuse(refusal_t.MALFORMED);
            // With a HELLO a stranger asks to join, for the first time or after a restart.
            (request_t.HELLO, 0, _, _, _, _, _): to_controller();
            (request_t.PULL, 0, _, _, _, _, _): refuse(refusal_t.STRANGER);
            (request_t.PUSH, 0, _, _, _, _, _): refuse(refusal_t.STRANGER);
            (request_t.WRONG_ROUND, 0, _, _, _, _, _): refuse(refusal_t.STRANGER);
            (request_t.WRONG_SLOT, 0, _, _, _, _, _): refuse(refusal_t.STRANGER);
            (_, _, 0, _, _, _, _): refuse(refusal_t.NO_POLICY);
            (_, _, _, 0, _, _, _): refuse(refusal_t.NO_POLICY);
            (request_t.HELLO, _, _, _, _, _, _): NoAction();
            (request_t.WRONG_SLOT, _, _, _, 0, _, _): refuse(refusal_t.WRONG_SLOT);
            (_, _, _, _, 0, 0, _): refuse(refusal_t.WRONG_SLOT);
            (_, _, _, _, 0, 0x80000000 &&& 0x80000000, _): refuse(refusal_t.WRONG_SLOT);
            (_, _, _, _, 0, _, _): NoAction();
            (_, _, _, _, _, _, _): refuse(refusal_t.WRONG_SESSION);
        }
        size = 32;
    }

    apply {
        subtract_lengths();
        verdict.apply();
        member.apply();
        job.apply();
        policy.apply();
        refused.apply();
    }
}

// Admission's counters. They are placed late, because nothing waits for them.
control Refusal(in metadata_t meta) {
#define REASON(reason) \
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_##reason; \
    action count_##reason() { dropped_##reason.count(0); }
    REASON(malformed)              // truncated, or not a known request
    REASON(bad_checksum)
    REASON(stranger)               // no entry in the table `member`
    REASON(no_policy)              // the job has ended or never began
    REASON(wrong_session)
    REASON(wrong_slot)
#undef REASON

    apply {
        if (meta.refusal == refusal_t.MALFORMED) {
            count_malformed();
        }
        if (meta.refusal == refusal_t.BAD_CHECKSUM) {
            count_bad_checksum();
        }
        if (meta.refusal == refusal_t.STRANGER) {
            count_stranger();
        }
        if (meta.refusal == refusal_t.NO_POLICY) {
            count_no_policy();
        }
        if (meta.refusal == refusal_t.WRONG_SESSION) {
            count_wrong_session();
        }
        if (meta.refusal == refusal_t.WRONG_SLOT) {
            count_wrong_slot();
        }
    }
}
