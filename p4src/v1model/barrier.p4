// Decides when a PUSH is answered. The barrier keeps a few words per slot. "What a PUSH does" in docs/protocol.md
// describes it in prose, tests/model.py in Python.
//
// State belongs to a session. The first packet of a newer session clears it. So the controller need not clear a job's
// slots.

control Barrier(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<64>>(SLOTS) era_of;                  // session ++ epoch last seen (epoch 0: none yet)
    register<round_t>(SLOTS) base_of;                 // rounds of this epoch that are complete
    register<worker_bitmap_t>(SLOTS) waiting_of;      // workers whose PUSH is blocked
    register<bit<64>>(SLOTS) totals_of;               // contributions in the sum ++ in its snapshot
    register<bit<64>>(SLOTS * MAX_WORKERS) seen_of;   // session ++ highest seq accepted
    register<bit<128>>(SLOTS * RING) arrivals_of;     // session ++ epoch ++ round ++ arrivals in it

    counter(MAX_JOBS * MAX_WORKERS, CounterType.packets) contributions;     // accepted, by worker
    counter(MAX_JOBS * MAX_WORKERS, CounterType.packets) repeats;           // recognised as seen before
    counter(MAX_JOBS * MAX_WORKERS, CounterType.packets) blocked;           // answered later, by a release
    counter(MAX_JOBS * MAX_WORKERS * STALENESS_CLASSES, CounterType.packets) staleness;   // contributions, by worker
    counter(1, CounterType.packets_and_bytes) dropped_wrong_round;
    counter(1, CounterType.packets_and_bytes) dropped_old_session;

    // This is one action, so that a slot's check and its change are one step for all packets.
    action decide() {
        bool push = hdr.serene.op == op_t.PUSH;
        bool current = push && hdr.serene.epoch == meta.policy.epoch;
        worker_bitmap_t sender = (worker_bitmap_t)1 << meta.worker;
        bool counted = (meta.policy.sync_mask & sender) != 0;
        bool unbounded = meta.policy.staleness == UNBOUNDED;
        bit<64> era_now = meta.policy.session ++ meta.policy.epoch;

        slot_t slot = meta.first_slot + hdr.serene.slot;
        bit<64> era; era_of.read(era, slot);
        round_t base; base_of.read(base, slot);
        worker_bitmap_t waiting; waiting_of.read(waiting, slot);
        bit<64> totals; totals_of.read(totals, slot);
        total_t total = totals[63:32];
        total_t snapshot_total = totals[31:0];
        bit<32> seen_index = (slot << 5) + (bit<32>)meta.worker;
        bit<64> seen_entry; seen_of.read(seen_entry, seen_index);
        seq_t seen = seen_entry[63:32] == meta.policy.session ? seen_entry[31:0] : 0;

        bool clear = era[63:32] != meta.policy.session;
        if (clear) {
            era = meta.policy.session ++ (epoch_t)0;
            base = 0;
            waiting = 0;
            total = 0;
            snapshot_total = 0;
        }

        // The first packet of an epoch at this slot. Rounds begin at 0 again, and blocked workers must retransmit.
        worker_bitmap_t nudge = 0;
        bool rebase = current && era != era_now;
        if (rebase) {
            era = era_now;
            base = 0;
            nudge = waiting & ~sender;
            waiting = 0;
        }

        // A wrong round. A worker that follows the protocol is never further ahead than the staleness bound. A packet
        // further ahead would overwrite a counter of the ring that other workers need.
        bool wrong_round = current && counted && !unbounded
                      && hdr.serene.round > base + (round_t)meta.policy.staleness;

        // A contribution's staleness: the contributions accepted since the sender's read, in rounds. A round is one
        // contribution of each worker. To avoid a division, share is 1 / workers as a fraction of 2^16.
        total_t unread = total - hdr.serene.total;
        meta.decision.staleness = (bit<32>)(STALENESS_CLASSES - 1);
        if (unread < 1024 && (unread * meta.share) >> 16 < STALENESS_CLASSES) {
            meta.decision.staleness = (unread * meta.share) >> 16;
        }

        bool fresh = push && !wrong_round && hdr.serene.seq > seen;
        if (fresh) {
            seen = hdr.serene.seq;
            total = total + 1;
        }

        worker_bitmap_t release = 0;
        bool complete = false;
        if (current && fresh && counted) {
            bit<32> ring_index = (slot << 4) + (hdr.serene.round & (RING - 1));
            bit<128> entry; arrivals_of.read(entry, ring_index);
            bit<96> here = era_now ++ hdr.serene.round;
            bit<32> arrivals = 0;
            if (here > entry[127:32]) {
                arrivals = 1;
                arrivals_of.write(ring_index, here ++ arrivals);
            } else if (here == entry[127:32]) {
                arrivals = entry[31:0] + 1;
                arrivals_of.write(ring_index, here ++ arrivals);
            }
            complete = arrivals == (bit<32>)meta.policy.quorum;
        }
        if (complete) {
            base = hdr.serene.round + 1;
            release = waiting & ~sender;
            waiting = 0;
        }

        bool go = !current || !counted || unbounded
                  || hdr.serene.round < base + (round_t)meta.policy.staleness;
        if (push && go) {
            waiting = waiting & ~sender;
        } else if (!go && !wrong_round) {
            waiting = waiting | sender;
        }

        meta.decision.take_snapshot = clear || rebase || complete;
        if (meta.decision.take_snapshot) {
            snapshot_total = total;
        }
        meta.decision.read_snapshot = current && counted && meta.policy.read_mode == read_mode_t.SNAPSHOT;

        era_of.write(slot, era);
        base_of.write(slot, base);
        waiting_of.write(slot, waiting);
        totals_of.write(slot, total ++ snapshot_total);
        seen_of.write(seen_index, meta.policy.session ++ seen);

        meta.decision.slot = slot;
        meta.decision.fresh = fresh;
        meta.decision.wrong_round = wrong_round;
        meta.decision.clear = clear;
        meta.decision.go = go;
        meta.decision.release = release;
        meta.decision.nudge = nudge;

        // The answer's fields. From here on nothing reads the request's own epoch and round.
        hdr.serene.round = base;
        hdr.serene.total = meta.decision.read_snapshot ? snapshot_total : total;
        hdr.serene.seen = seen;    // replaces the incarnation
    }

    apply {
        // Session numbers only grow. A controller that did not know the newer session has given out the older one. The
        // slot would treat its rounds as old, and its workers would wait for ever.
        bit<64> era;
        era_of.read(era, meta.first_slot + hdr.serene.slot);
        if (era[63:32] > meta.policy.session) {
            dropped_old_session.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        decide();
        bit<32> who = ((bit<32>)meta.job << 5) + (bit<32>)meta.worker;
        if (meta.decision.fresh) {
            contributions.count(who);
            staleness.count((who << 4) + meta.decision.staleness);
        } else if (meta.decision.wrong_round) {
            dropped_wrong_round.count(0);
        } else if (hdr.serene.op == op_t.PUSH) {
            repeats.count(who);
        }
        if (!meta.decision.go && !meta.decision.wrong_round) {
            blocked.count(who);
        }
    }
}
