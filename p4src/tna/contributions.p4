// Counts the contributions in a sum, their staleness, and what each worker sent and received. The barrier has decided
// before; nothing here changes its decision.

struct total_pair_t {
    total_t total;
    total_t unread;               // of the last packet: only a register's second word has room for a difference
}

control Contributions(inout headers_t hdr, inout metadata_t meta) {
    Register<total_pair_t, bit<SLOT_BITS>>(SLOTS) total_of;  // contributions in the sum, to compute `unread`
    RegisterAction<total_pair_t, bit<SLOT_BITS>, total_t>(total_of) count_contribution = {
        void apply(inout total_pair_t value, out total_t unread) {
            value.unread = value.total - hdr.serene.total;
            if (meta.known == 0) {
                value.total = value.total + 1;
            }
            unread = value.unread;
        }
    };
    RegisterAction<total_pair_t, bit<SLOT_BITS>, total_t>(total_of) keep_or_forget_total = {
        void apply(inout total_pair_t value) {
            if (meta.known == 0) {
                value.total = 0;
            }
        }
    };

    // The answer's `total`: the same number and its snapshot. It is one more lane, to which each contribution adds 1.
    Register<lane_t, bit<SLOT_BITS>>(SLOTS) totals_of;
    LANE_ACTIONS(totals_of, total, 1, hdr.serene.total)

    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) contributions;           // accepted, by worker
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) repeats;                 // recognised as seen before
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) blocked;                 // answered later, by a release
    Counter<bit<32>, bit<12>>(4096, CounterType_t.PACKETS) staleness;             // contributions, by worker
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_wrong_round;
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_old_session;

    // A contribution's staleness: the contributions accepted since the sender's read, in rounds. A round is one
    // contribution of each worker. To avoid a division, the table has a row for each number of workers and each class.
    action set_rounds_old(bit<4> rounds) {
        meta.rounds_old = rounds;
    }

    table rounds_unread {
        key = {
            meta.job.workers: exact;
            meta.unread[31:(WORKER_BITS + 4)]: ternary;
            meta.unread[(WORKER_BITS + 3):0]: range;
        }
        actions = { set_rounds_old; }
        const default_action = set_rounds_old(15);
#define CLASS(workers, rounds) (workers, 0, rounds * workers .. rounds * workers + workers - 1): set_rounds_old(rounds);
#define CLASSES(worker) \
    CLASS((worker + 1), 0) CLASS((worker + 1), 1) CLASS((worker + 1), 2) CLASS((worker + 1), 3) \
    CLASS((worker + 1), 4) CLASS((worker + 1), 5) CLASS((worker + 1), 6) CLASS((worker + 1), 7) \
    CLASS((worker + 1), 8) CLASS((worker + 1), 9) CLASS((worker + 1), 10) CLASS((worker + 1), 11) \
    CLASS((worker + 1), 12) CLASS((worker + 1), 13) CLASS((worker + 1), 14)
        const entries = { FOR_EACH_WORKER(CLASSES) }
        size = 512;
    }

    Hash<bit<12>>(HashAlgorithm_t.IDENTITY) staleness_index;

    action count_staleness() {
        bit<12> index = staleness_index.get({ hdr.serene.job[2:0], hdr.serene.worker[4:0], meta.rounds_old });
        staleness.count(index);
    }

    action see_fresh() {
        hdr.serene.seen = hdr.serene.seq;
    }

    action see_repeat() {
        hdr.serene.seen = meta.known;
    }

    action see_nothing_new() {
        hdr.serene.seen = meta.seen;
    }

    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) who;

    action count_fresh() {
        bit<8> index = who.get(BY_WORKER(hdr.serene.worker));
        contributions.count(index);
    }

    action count_repeat() {
        bit<8> index = who.get(BY_WORKER(hdr.serene.worker));
        repeats.count(index);
    }

    action count_blocked() {
        bit<8> index = who.get(BY_WORKER(hdr.serene.worker));
        blocked.count(index);
    }

    action count_wrong_round() {
        dropped_wrong_round.count(0);
    }

    action count_old_session() {
        dropped_old_session.count(0);
    }

    action count_total() {
        meta.unread = count_contribution.execute(PLACE);
    }

    action keep_total() {
        keep_or_forget_total.execute(PLACE);
    }

    table total {
        key = {
            meta.verdict: ternary;
            meta.lanes_do: ternary;
        }
        actions = { count_total; keep_total; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            (_, lanes_do_t.OPEN): keep_total();
            (verdict_t.FREE, _): count_total();
            (verdict_t.GO, _): count_total();
            (verdict_t.WAIT, _): count_total();
        }
        size = 4;
    }

    table say_seen {
        key = {
            meta.verdict: ternary;
            meta.known: ternary;
        }
        actions = { see_fresh; see_repeat; see_nothing_new; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            (verdict_t.FREE, 0): see_fresh();
            (verdict_t.GO, 0): see_fresh();
            (verdict_t.WAIT, 0): see_fresh();
            (verdict_t.FREE, _): see_repeat();
            (verdict_t.GO, _): see_repeat();
            (verdict_t.WAIT, _): see_repeat();
            (verdict_t.READ, _): see_nothing_new();
            (verdict_t.OPENING, _): see_nothing_new();
        }
        size = 8;
    }

    // Flat, as in Barrier, with a branch for each counter.
    apply {
        total.apply();
        update_total.apply();
        say_seen.apply();
        rounds_unread.apply();
        if (CONTRIBUTES(meta.verdict) && meta.known == 0) {
            count_fresh();
        }
        if (CONTRIBUTES(meta.verdict) && meta.known == 0) {
            count_staleness();
        }
        if (CONTRIBUTES(meta.verdict) && meta.known != 0) {
            count_repeat();
        }
        if (meta.verdict == verdict_t.WAIT && !COMPLETE) {
            count_blocked();
        }
        if (meta.verdict == verdict_t.WRONG_ROUND) {
            count_wrong_round();
        }
        if (meta.verdict == verdict_t.OLD_SESSION) {
            count_old_session();
        }
    }
}
