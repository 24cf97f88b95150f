// Decides when a PUSH is answered. The barrier keeps a few words per slot. "What a PUSH does" in docs/protocol.md
// describes it. docs/tofino.md describes how this program differs.
//
// A packet reads and writes a register once, at the register's place in the pipeline. Only later is it known that a
// round is complete. So the packet that completed it passes a second time, as a COMPLETION. In that pass the round
// becomes complete: the packet changes every copy of `base` and takes the snapshot.
//
// State belongs to a session and an epoch. The first packet of either at a slot only opens it, and must be sent again.
// A session older than the slot's newest was given out by a controller that had forgotten the newer ones.

struct base_t {
    int<32> era;                  // session and epoch in one word; signed because the other word is
    int<32> minus_base;           // compared with minus the bound, because table data cannot be subtracted
}

struct seen_t {
    session_t session;
    seq_t seq;
}

struct arrivals_t {
    bit<32> era;
    bit<32> word;                 // 24 bits of round ++ 8 bits of arrivals in it
}

control Barrier(inout headers_t hdr, inout metadata_t meta) {
    // -- the sender and its policy ---------------------------------------------------------------------------

    action set_sender(worker_bitmap_t sender) {
        meta.sender = sender;
    }

#define SENDER(worker) worker: set_sender(32w1 << worker);
    table sender_bit {
        key = { hdr.serene.worker: exact; }
        actions = { set_sender; }
        const default_action = set_sender(0);
        const entries = { FOR_EACH_WORKER(SENDER) }
        size = 32;
    }
#undef SENDER

    action count_sender() {
        meta.counted = 1;
    }

    // Nobody waits under an unbounded policy, or with a quorum of 0. Then no worker is counted.
#define COUNTED(worker) (32w1 << worker &&& 32w1 << worker, worker, _, _): count_sender();
    table counted_in {
        key = {
            meta.policy.sync_mask: ternary;
            hdr.serene.worker: ternary;
            meta.policy.staleness: ternary;
            meta.policy.quorum: ternary;
        }
        actions = { count_sender; NoAction; }
        const default_action = NoAction;
        const entries = {
            (_, _, UNBOUNDED, _): NoAction();
            (_, _, _, 0): NoAction();
            FOR_EACH_WORKER(COUNTED)
        }
        size = 34;
    }
#undef COUNTED

    Hash<bit<32>>(HashAlgorithm_t.CRC32) era_hash;

    action set_era() {
        meta.era = era_hash.get({ hdr.serene.session, hdr.serene.epoch });
    }

    action set_mark() {
        meta.mark = hdr.serene.round << 8;
    }

    action set_target() {
        meta.target = meta.target + meta.mark;
    }

    // -- the slot's state ------------------------------------------------------------------------------------

    Register<session_t, bit<SLOT_BITS>>(SLOTS) session_of;   // the newest session
    RegisterAction<session_t, bit<SLOT_BITS>, bit<8>>(session_of) enter_session = {
        void apply(inout session_t value, out bit<8> age) {
            age = this.predicate(value < hdr.serene.session, value > hdr.serene.session);
            if (value < hdr.serene.session) {
                value = hdr.serene.session;
            }
        }
    };

    // The complete rounds of this epoch. There are three copies, because a register gives one word to a packet. The
    // first tells whether the epoch differs, and whether the round is beyond the bound. The second tells whether the
    // sender may continue. The third is base itself.
#define NEXT_EPOCH \
    if (value.era != (int<32>)meta.era) { \
        value.era = (int<32>)meta.era; \
        value.minus_base = 0; \
    }
#define COMPLETE_ROUND \
    if (value.era == (int<32>)meta.era && value.minus_base >= (int<32>)meta.allowance) { \
        value.minus_base = (int<32>)meta.allowance - 1; \
    }
    Register<base_t, bit<SLOT_BITS>>(SLOTS) base_below;
    RegisterAction<base_t, bit<SLOT_BITS>, bit<8>>(base_below) compare_ahead = {
        void apply(inout base_t value, out bit<8> ahead) {
            ahead = this.predicate(value.era != (int<32>)meta.era, value.minus_base > (int<32>)meta.allowance);
            NEXT_EPOCH
        }
    };
    RegisterAction<base_t, bit<SLOT_BITS>, bit<8>>(base_below) complete_below = {
        void apply(inout base_t value, out bit<8> moved) {
            moved = this.predicate(value.era != (int<32>)meta.era, value.minus_base >= (int<32>)meta.allowance);
            COMPLETE_ROUND
        }
    };

    Register<base_t, bit<SLOT_BITS>>(SLOTS) base_beyond;
    RegisterAction<base_t, bit<SLOT_BITS>, bit<8>>(base_beyond) compare_behind = {
        void apply(inout base_t value, out bit<8> behind) {
            behind = 0;
            if (value.era == (int<32>)meta.era && value.minus_base < (int<32>)meta.allowance) {
                behind = 1;
            }
            NEXT_EPOCH
        }
    };
    RegisterAction<base_t, bit<SLOT_BITS>, bit<8>>(base_beyond) complete_beyond = {
        void apply(inout base_t value) {
            COMPLETE_ROUND
        }
    };

    Register<base_t, bit<SLOT_BITS>>(SLOTS) base_of;
    RegisterAction<base_t, bit<SLOT_BITS>, bit<32>>(base_of) current_base = {
        void apply(inout base_t value, out bit<32> minus_base) {
            NEXT_EPOCH
            minus_base = (bit<32>)value.minus_base;
        }
    };
    RegisterAction<base_t, bit<SLOT_BITS>, bit<32>>(base_of) some_base = {
        void apply(inout base_t value, out bit<32> minus_base) {
            minus_base = (bit<32>)value.minus_base;
        }
    };
    RegisterAction<base_t, bit<SLOT_BITS>, bit<32>>(base_of) complete_base = {
        void apply(inout base_t value, out bit<32> minus_base) {
            COMPLETE_ROUND
            minus_base = (bit<32>)value.minus_base;
        }
    };

    action look_at_session() {
        meta.age_of_slot = enter_session.execute(PLACE);
        meta.admitted = 1;
    }

    // -- the decision ----------------------------------------------------------------------------------------

    Register<seen_t, bit<(SLOT_BITS + WORKER_BITS)>>(SLOTS * MAX_WORKERS) seen_of;    // highest seq accepted

    RegisterAction<seen_t, bit<(SLOT_BITS + WORKER_BITS)>, bit<32>>(seen_of) accept_seq = {
        void apply(inout seen_t value, out bit<32> known) {
            known = 0;
            if (value.session == hdr.serene.session && value.seq >= hdr.serene.seq) {
                known = value.seq;
            } else {
                value.session = hdr.serene.session;
                value.seq = hdr.serene.seq;
            }
        }
    };
    RegisterAction<seen_t, bit<(SLOT_BITS + WORKER_BITS)>, bit<32>>(seen_of) read_seq = {
        void apply(inout seen_t value, out bit<32> seen) {
            seen = 0;
            if (value.session == hdr.serene.session) {
                seen = value.seq;
            }
        }
    };

    Hash<bit<(SLOT_BITS + WORKER_BITS)>>(HashAlgorithm_t.IDENTITY) seen_place;
#define SEEN_PLACE { meta.slot[(SLOT_BITS - 1):0], hdr.serene.worker[(WORKER_BITS - 1):0] }

    action accept(verdict_t verdict, lanes_do_t lanes_do) {
        meta.verdict = verdict;
        meta.lanes_do = lanes_do;
        bit<(SLOT_BITS + WORKER_BITS)> place = seen_place.get(SEEN_PLACE);
        meta.known = accept_seq.execute(place);
    }

    action look(verdict_t verdict, lanes_do_t lanes_do, bit<32> known) {
        meta.verdict = verdict;
        meta.lanes_do = lanes_do;
        meta.known = known;
        bit<(SLOT_BITS + WORKER_BITS)> place = seen_place.get(SEEN_PLACE);
        meta.seen = read_seq.execute(place);
    }

    action settle(verdict_t verdict, lanes_do_t lanes_do) {
        meta.verdict = verdict;
        meta.lanes_do = lanes_do;
        meta.known = 1;
    }

#define NOT_NEGATIVE 0 &&& 0x80000000
    // One bit of four is set: 1 if neither comparison holds, 2 or 4 if the first or the second does, 8 if both do.
#define NEW_SESSION 2
#define OLDER_THAN_SLOT 4
#define NEW_EPOCH 0 &&& 0b0101
#define AHEAD 4
#define MOVED 4
    table decide {
        key = {
            meta.admitted: ternary;
            meta.request: ternary;
            meta.current: ternary;
            meta.counted: ternary;
            meta.age_of_slot: ternary;
            meta.ahead: ternary;
            meta.behind: ternary;
            meta.policy.staleness: ternary;
            meta.policy.read_mode: ternary;
            hdr.serene.seq: ternary;
        }
        actions = { accept; look; settle; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            (1, request_t.COMPLETION, 1, _, _, MOVED, _, _, _, _): settle(verdict_t.COMPLETED, lanes_do_t.STORE);
            (1, request_t.COMPLETION, _, _, _, _, _, _, _, _): settle(verdict_t.OVERTAKEN, lanes_do_t.NOTHING);
            (1, _, _, _, OLDER_THAN_SLOT, _, _, _, _, _): settle(verdict_t.OLD_SESSION, lanes_do_t.NOTHING);
            (1, request_t.PULL, _, _, NEW_SESSION, _, _, _, _, _): look(verdict_t.READ, lanes_do_t.OPEN, 0);
            (1, request_t.PULL, _, _, _, _, _, _, _, _): look(verdict_t.READ, lanes_do_t.ADD, 1);
            (1, request_t.WRONG_ROUND, _, _, _, _, _, _, _, _): look(verdict_t.WRONG_ROUND, lanes_do_t.NOTHING, 1);
            (1, request_t.PUSH, _, _, _, _, _, _, _, 0): look(verdict_t.WRONG_ROUND, lanes_do_t.NOTHING, 1);
            (1, request_t.PUSH, _, _, NEW_SESSION, _, _, _, _, _): look(verdict_t.OPENING, lanes_do_t.OPEN, 0);
            (1, request_t.PUSH, 1, _, _, NEW_EPOCH, _, _, _, _): look(verdict_t.OPENING, lanes_do_t.OPEN, 1);
            (1, request_t.PUSH, 1, 1, _, AHEAD, _, _, _, _): look(verdict_t.WRONG_ROUND, lanes_do_t.NOTHING, 1);
            // An old round under staleness bound 0. Others may have read its snapshot.
            (1, request_t.PUSH, 1, 1, _, _, 1, 0, read_mode_t.SNAPSHOT, _):
                accept(verdict_t.FREE, lanes_do_t.ADD_READ_SNAPSHOT);
            (1, request_t.PUSH, 1, 1, _, _, 1, _, _, _): accept(verdict_t.GO, lanes_do_t.ADD);
            (1, request_t.PUSH, 1, 1, _, _, _, _, _, _): accept(verdict_t.WAIT, lanes_do_t.ADD);
            (1, request_t.PUSH, _, _, _, _, _, _, _, _): accept(verdict_t.FREE, lanes_do_t.ADD);
        }
        size = 16;
    }

    // -- waiting workers -------------------------------------------------------------------------------------

    Register<worker_bitmap_t, bit<SLOT_BITS>>(SLOTS) waiting_of;     // workers whose PUSH is blocked

    RegisterAction<worker_bitmap_t, bit<SLOT_BITS>, worker_bitmap_t>(waiting_of) call_everybody = {
        void apply(inout worker_bitmap_t value, out worker_bitmap_t waiting) {
            waiting = value;
            value = 0;
        }
    };
    RegisterAction<worker_bitmap_t, bit<SLOT_BITS>, worker_bitmap_t>(waiting_of) join_waiting = {
        void apply(inout worker_bitmap_t value) {
            value = value | meta.sender;
        }
    };
    RegisterAction<worker_bitmap_t, bit<SLOT_BITS>, worker_bitmap_t>(waiting_of) leave_waiting = {
        void apply(inout worker_bitmap_t value) {
            value = value & ~meta.sender;
        }
    };

    action call() {
        meta.waiting = call_everybody.execute(PLACE);
    }

    action forget() {
        call_everybody.execute(PLACE);
    }

    action join() {
        join_waiting.execute(PLACE);
    }

    action leave() {
        leave_waiting.execute(PLACE);
    }

    table queue {
        key = {
            meta.admitted: ternary;
            meta.request: ternary;
            meta.current: ternary;
            meta.counted: ternary;
            meta.age_of_slot: ternary;
            meta.ahead: ternary;
            meta.behind: ternary;
        }
        actions = { call; forget; join; leave; NoAction; }
        const default_action = NoAction;
        const entries = {
            (1, request_t.COMPLETION, 1, _, _, MOVED, _): call();
            (1, _, _, _, OLDER_THAN_SLOT, _, _): NoAction();
            (1, request_t.PULL, _, _, NEW_SESSION, _, _): forget();
            (1, request_t.PUSH, _, _, NEW_SESSION, _, _): forget();
            (1, request_t.PUSH, 1, _, _, NEW_EPOCH, _): call();
            (1, request_t.PUSH, 1, 1, _, AHEAD, _): NoAction();
            (1, request_t.PUSH, 1, 1, _, _, 0): join();
            (1, request_t.PUSH, _, _, _, _, _): leave();
        }
        size = 16;
    }

    // -- rounds in progress ----------------------------------------------------------------------------------

    // A ring of counters, by round. Arrivals of old rounds do not get here, nor those of rounds beyond the bound. So an
    // entry belongs to this round or an older one.
    Register<arrivals_t, bit<(SLOT_BITS + RING_BITS)>>(SLOTS * RING) arrivals_of;

    RegisterAction<arrivals_t, bit<(SLOT_BITS + RING_BITS)>, bit<32>>(arrivals_of) count_arrival = {
        void apply(inout arrivals_t value, out bit<32> arrived) {
            if (value.era == meta.era && value.word > meta.mark) {
                value.word = value.word + 1;
            } else {
                value.era = meta.era;
                value.word = meta.mark + 1;
            }
            arrived = value.word;
        }
    };
    RegisterAction<arrivals_t, bit<(SLOT_BITS + RING_BITS)>, bit<32>>(arrivals_of) read_arrivals = {
        void apply(inout arrivals_t value, out bit<32> arrived) {
            arrived = 0;
            if (value.era == meta.era && value.word > meta.mark) {
                arrived = value.word;
            }
        }
    };

    Hash<bit<(SLOT_BITS + RING_BITS)>>(HashAlgorithm_t.IDENTITY) ring_place;
#define RING_PLACE { meta.slot[(SLOT_BITS - 1):0], hdr.serene.round[(RING_BITS - 1):0] }

    action arrive() {
        bit<(SLOT_BITS + RING_BITS)> place = ring_place.get(RING_PLACE);
        meta.arrived = count_arrival.execute(place);
        meta.round_counted = 1;
    }

    action arrive_again() {
        bit<(SLOT_BITS + RING_BITS)> place = ring_place.get(RING_PLACE);
        meta.arrived = read_arrivals.execute(place);
        meta.round_counted = 1;
    }

    table arrival {
        key = {
            meta.verdict: ternary;
            meta.before_base: ternary;
            meta.known: ternary;
        }
        actions = { arrive; arrive_again; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            (verdict_t.GO, NOT_NEGATIVE, 0): arrive();
            (verdict_t.GO, NOT_NEGATIVE, _): arrive_again();
            (verdict_t.WAIT, NOT_NEGATIVE, 0): arrive();
            (verdict_t.WAIT, NOT_NEGATIVE, _): arrive_again();
        }
        size = 4;
    }

    action find_old_round() {
        meta.before_base = hdr.serene.round + meta.minus_base;
    }

    action find_lacking() {
        meta.lacking = meta.target |-| meta.arrived;
    }

    action complete_round_below() {
        meta.admitted = 1;
        meta.current = 1;
        meta.ahead = complete_below.execute(PLACE);
    }

    action complete_round_beyond() {
        complete_beyond.execute(PLACE);
    }

    action complete_round() {
        meta.minus_base = complete_base.execute(PLACE);
    }

    action look_ahead() {
        meta.current = 1;
        meta.ahead = compare_ahead.execute(PLACE);
    }

    action look_behind() {
        meta.behind = compare_behind.execute(PLACE);
    }

    action look_at_base() {
        meta.minus_base = current_base.execute(PLACE);
    }

    action look_at_any_base() {
        meta.minus_base = some_base.execute(PLACE);
    }

    // Flat, because the compiler places the statements after a branch behind the whole branch.
    apply {
        // None of these results is stored, so they need not wait for Admission.
        sender_bit.apply();
        set_era();
        set_mark();
        counted_in.apply();
        set_target();

        if (ADMITTED) {
            if (meta.request == request_t.COMPLETION) {
                if (meta.epoch_gap == 0) {
                    complete_round_below();
                    complete_round_beyond();
                    complete_round();
                }
            } else {
                look_at_session();
                if (meta.request == request_t.PUSH && meta.epoch_gap == 0) {
                    look_ahead();
                    look_behind();
                    look_at_base();
                } else {
                    look_at_any_base();
                }
            }
        }
        decide.apply();
        queue.apply();
        find_old_round();

        arrival.apply();
        find_lacking();
    }
}
