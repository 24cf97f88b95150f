// A leaf's rules, which docs/hierarchy.md lists. tests/tree/model.py implements them in Python. A leaf decides nothing
// by itself. It answers from what the root has granted, and sends an UP for the rest.

control LeafBarrier(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<64>>(SLOTS) era_of;                  // session ++ epoch last seen (epoch 0: none yet)
    register<round_t>(SLOTS) base_of;                 // rounds that the rack has completed; k-of-n: as granted
    register<round_t>(SLOTS) granted_of;              // granted base + 1; 0: not heard in this epoch
    register<bit<32>>(SLOTS) arrived_of;              // k-of-n: counted contributions to the next round to be granted
    register<worker_bitmap_t>(SLOTS) waiting_of;      // workers whose PUSH is blocked
    register<bit<64>>(SLOTS) totals_of;               // contributions in the rack's sum ++ in the root's last DOWN
    register<bit<64>>(SLOTS * MAX_WORKERS) seen_of;   // session ++ highest seq accepted
    register<bit<128>>(SLOTS * RING) arrivals_of;     // session ++ epoch ++ round ++ arrivals in it
    register<bit<64>>(MAX_JOBS) known_of;             // session ++ newest epoch that the root has announced

    counter(MAX_JOBS * MAX_WORKERS, CounterType.packets) contributions;     // accepted, by worker
    counter(MAX_JOBS * MAX_WORKERS, CounterType.packets) repeats;           // recognised as seen before
    counter(MAX_JOBS * MAX_WORKERS, CounterType.packets) blocked;           // answered later, by a release
    counter(MAX_JOBS * MAX_WORKERS * STALENESS_CLASSES, CounterType.packets) staleness;   // contributions, by worker
    counter(1, CounterType.packets_and_bytes) dropped_wrong_round;
    counter(1, CounterType.packets_and_bytes) dropped_old_session;
    counter(1, CounterType.packets_and_bytes) dropped_wrong_epoch;          // the root has not announced it
    counter(1, CounterType.packets_and_bytes) dropped_unprepared;           // sent by the root; the epoch has no entry

    // The switch ignores member_mask: a controller that takes over reads it. `policy` may have an older epoch's.
    action set_prepared(worker_bitmap_t member_mask, worker_bitmap_t sync_mask, bit<8> staleness_bound,
                        bit<8> quorum, read_mode_t read_mode, bit<8> members, bit<8> enough, bit<1> by_arrivals,
                        bit<32> flush_mask) {
        meta.policy.epoch = hdr.serene.epoch;
        meta.policy.sync_mask = sync_mask;
        meta.policy.staleness = staleness_bound;
        meta.policy.quorum = quorum;
        meta.policy.read_mode = read_mode;
        meta.policy.members = members;
        meta.leaf.enough = enough;
        meta.leaf.by_arrivals = by_arrivals;
        meta.leaf.flush_mask = flush_mask;
    }

    // Policies, found by the epoch that a packet names. An entry is not in force until the root announces its epoch.
    table prepared {
        key = {
            meta.job: exact @name("job");
            meta.policy.session: exact @name("session");
            hdr.serene.epoch: exact @name("epoch");
        }
        actions = { set_prepared; NoAction; }
        const default_action = NoAction();
        size = 64;                 // MAX_JOBS, and some epochs each
    }

    // Handles a PUSH or PULL. prepared_epoch: whether its epoch has an entry.
    action request(in bool prepared_epoch) {
        bool push = hdr.serene.op == op_t.PUSH;
        bool known = push && prepared_epoch;
        worker_bitmap_t sender = (worker_bitmap_t)1 << meta.worker;
        slot_t slot = meta.first_slot + hdr.serene.slot;
        bit<64> era; era_of.read(era, slot);
        round_t base; base_of.read(base, slot);
        round_t granted_word; granted_of.read(granted_word, slot);
        bit<32> arrived; arrived_of.read(arrived, slot);
        worker_bitmap_t waiting; waiting_of.read(waiting, slot);
        bit<64> totals; totals_of.read(totals, slot);
        total_t total = totals[63:32];
        total_t down_total = totals[31:0];
        bit<32> seen_index = (slot << 5) + (bit<32>)meta.worker;
        bit<64> seen_entry; seen_of.read(seen_entry, seen_index);
        seq_t seen = seen_entry[63:32] == meta.policy.session ? seen_entry[31:0] : 0;

        bool clear = era[63:32] != meta.policy.session;
        if (clear) {
            era = meta.policy.session ++ (epoch_t)0;
            base = 0;
            granted_word = 0;
            arrived = 0;
            waiting = 0;
            total = 0;
            down_total = 0;
        }

        // The first packet of an epoch at this slot. What the root granted in an older epoch is no longer valid.
        worker_bitmap_t nudge = 0;
        bool adopt = known && hdr.serene.epoch > era[31:0];
        if (adopt) {
            era = meta.policy.session ++ hdr.serene.epoch;
            base = 0;
            granted_word = 0;
            arrived = 0;
            nudge = waiting & ~sender;
            waiting = 0;
        }
        bool current = known && hdr.serene.epoch == era[31:0];
        bool latest = known && meta.policy.read_mode == read_mode_t.LATEST;
        bool counted = current && (meta.policy.sync_mask & sender) != 0 && meta.policy.staleness != UNBOUNDED;
        bool heard = granted_word != 0;
        round_t granted = heard ? granted_word - 1 : 0;
        round_t bound = granted + (round_t)meta.policy.staleness;
        bool wrong_round = counted && hdr.serene.round > bound;

        // Staleness as in barrier.p4. Of the other racks the leaf knows the root's last DOWN.
        total_t job_total = latest ? down_total + total : down_total;
        total_t unread = job_total > hdr.serene.total ? job_total - hdr.serene.total : 0;
        meta.decision.staleness = (bit<32>)(STALENESS_CLASSES - 1);
        if (unread < 1024 && (unread * meta.share) >> 16 < STALENESS_CLASSES) {
            meta.decision.staleness = (unread * meta.share) >> 16;
        }

        bool fresh = push && !wrong_round && hdr.serene.seq > seen;
        if (fresh) {
            seen = hdr.serene.seq;
            total = total + 1;
        }

        bool tell = false;
        if (counted && fresh) {
            if (meta.leaf.by_arrivals == 1) {
                if (hdr.serene.round == granted) {
                    arrived = arrived + 1;
                    tell = arrived >= (bit<32>)meta.leaf.enough;
                }
            } else {
                bit<32> ring_index = (slot << 4) + (hdr.serene.round & (RING - 1));
                bit<128> entry; arrivals_of.read(entry, ring_index);
                bit<96> here = era ++ hdr.serene.round;
                bit<32> arrivals = 0;
                if (here > entry[127:32]) {
                    arrivals = 1;
                    arrivals_of.write(ring_index, here ++ arrivals);
                } else if (here == entry[127:32]) {
                    arrivals = entry[31:0] + 1;
                    arrivals_of.write(ring_index, here ++ arrivals);
                }
                tell = arrivals == (bit<32>)meta.leaf.enough;
                if (tell) {
                    base = hdr.serene.round + 1;
                }
            }
        }

        bool go = counted ? heard && hdr.serene.round < bound : heard && current && latest;
        if (counted && go) {
            waiting = waiting & ~sender;
        } else if (counted && !wrong_round) {
            waiting = waiting | sender;
        }

        bool echo = !go && !counted;
        bool again = counted && !go && !wrong_round && !fresh;
        bool unheard = counted && !wrong_round && !heard && meta.policy.staleness != 0;
        bool flush = latest && fresh && (total & meta.leaf.flush_mask) == 0;

        era_of.write(slot, era);
        base_of.write(slot, base);
        granted_of.write(slot, granted_word);
        arrived_of.write(slot, arrived);
        waiting_of.write(slot, waiting);
        totals_of.write(slot, total ++ down_total);
        seen_of.write(seen_index, meta.policy.session ++ seen);

        meta.decision.slot = slot;
        meta.decision.fresh = fresh;
        meta.decision.wrong_round = wrong_round;
        meta.decision.clear = clear;
        meta.decision.go = go;
        meta.decision.release = 0;
        meta.decision.nudge = nudge;
        meta.leaf.latest = latest;
        meta.leaf.keep = false;
        meta.leaf.echoed = false;
        meta.leaf.reply_port = standard_metadata.ingress_port;
        meta.leaf.release_base = 0;
        meta.leaf.up = echo || tell || again || unheard || flush;
        meta.leaf.ask = echo || again || unheard || latest;
        meta.leaf.up_epoch = era[31:0];
        meta.leaf.up_base = base;
        meta.leaf.up_arrivals = (bit<8>)arrived;
        meta.leaf.up_total = total;
        meta.leaf.echo_seq = echo ? hdr.serene.seq : 0;
        meta.leaf.echo_worker = echo ? meta.worker : 0;
        meta.leaf.echo_port = echo ? (bit<32>)standard_metadata.ingress_port : 0;

        // The answer's fields.
        hdr.serene.round = granted;
        hdr.serene.total = job_total;
        if (fresh && latest) {
            hdr.serene.total = job_total + 1;
        }
        hdr.serene.seen = seen;
    }

    // Handles a DOWN or GRANT.
    action hear() {
        bool down = hdr.serene.op == op_t.DOWN;
        bool echo = down && hdr.serene.seq != 0;
        meta.worker = hdr.serene.members;
        slot_t slot = meta.first_slot + hdr.serene.slot;
        bit<64> era; era_of.read(era, slot);
        round_t base; base_of.read(base, slot);
        round_t granted_word; granted_of.read(granted_word, slot);
        bit<32> arrived; arrived_of.read(arrived, slot);
        worker_bitmap_t waiting; waiting_of.read(waiting, slot);
        bit<64> totals; totals_of.read(totals, slot);
        total_t total = totals[63:32];
        total_t down_total = totals[31:0];
        bit<64> seen_entry; seen_of.read(seen_entry, (slot << 5) + (bit<32>)meta.worker);
        bit<64> newest; known_of.read(newest, (bit<32>)meta.job);
        bit<64> told = meta.policy.session ++ hdr.serene.epoch;
        if (told > newest) {
            newest = told;
        }

        bool clear = era[63:32] != meta.policy.session;
        if (clear) {
            era = meta.policy.session ++ (epoch_t)0;
            base = 0;
            granted_word = 0;
            arrived = 0;
            waiting = 0;
            total = 0;
            down_total = 0;
        }
        worker_bitmap_t nudge = 0;
        bool adopt = hdr.serene.epoch > era[31:0];
        if (adopt) {
            era = told;
            base = 0;
            granted_word = 0;
            arrived = 0;
            nudge = waiting;
            waiting = 0;
        }
        bool current = told == era;
        bool latest = meta.policy.read_mode == read_mode_t.LATEST;
        bool heard = granted_word != 0;
        round_t granted = heard ? granted_word - 1 : 0;
        bool forward = hdr.serene.round > granted || (hdr.serene.round == granted && hdr.serene.total >= down_total);
        bool keep = down && current && (latest || !echo) && (forward || !heard);

        worker_bitmap_t release = 0;
        if (keep) {
            down_total = hdr.serene.total;
            granted_word = hdr.serene.round + 1;
            if (hdr.serene.round > granted) {
                arrived = 0;
                if (meta.leaf.by_arrivals == 1) {
                    base = hdr.serene.round;
                }
            }
            // The first DOWN of an epoch may grant rounds that no worker waits for. So it nudges, unless the staleness
            // bound is 0: then all wait for the same round.
            if (!heard && meta.policy.staleness != 0) {
                nudge = nudge | waiting;
                waiting = 0;
            } else if (hdr.serene.round > granted) {
                release = waiting;
                waiting = 0;
            }
        }
        if (echo && !current) {
            nudge = nudge | (worker_bitmap_t)1 << meta.worker;
        }

        era_of.write(slot, era);
        base_of.write(slot, base);
        granted_of.write(slot, granted_word);
        arrived_of.write(slot, arrived);
        waiting_of.write(slot, waiting);
        totals_of.write(slot, total ++ down_total);
        known_of.write((bit<32>)meta.job, newest);

        meta.decision.slot = slot;
        meta.decision.fresh = false;
        meta.decision.wrong_round = false;
        meta.decision.clear = clear;
        meta.decision.go = echo && current;
        meta.decision.release = release;
        meta.decision.nudge = nudge;
        meta.leaf.latest = latest;
        meta.leaf.keep = keep;
        meta.leaf.echoed = echo;
        meta.leaf.reply_port = (bit<9>)hdr.serene.sync_mask;
        meta.leaf.release_base = release != 0 ? granted + 1 : 0;
        meta.leaf.up = !down && (adopt || (current && (!heard || hdr.serene.round > granted)));
        meta.leaf.ask = true;
        meta.leaf.up_epoch = era[31:0];
        meta.leaf.up_base = base;
        meta.leaf.up_arrivals = (bit<8>)arrived;
        meta.leaf.up_total = total;
        meta.leaf.echo_seq = 0;
        meta.leaf.echo_worker = 0;
        meta.leaf.echo_port = 0;
        if (latest) {
            hdr.serene.total = hdr.serene.total + total;
        }
        hdr.serene.seen = seen_entry[63:32] == meta.policy.session ? seen_entry[31:0] : 0;
    }

    apply {
        bool from_root = meta.worker == ROOT;
        bit<64> newest; known_of.read(newest, (bit<32>)meta.job);
        if (hdr.serene.op == op_t.PUSH && hdr.serene.epoch > meta.policy.epoch
            && (newest[63:32] != meta.policy.session || hdr.serene.epoch > newest[31:0])) {
            dropped_wrong_epoch.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        bool prepared_epoch = prepared.apply().hit;
        if (from_root && !prepared_epoch) {
            dropped_unprepared.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        bit<64> era; era_of.read(era, meta.first_slot + hdr.serene.slot);
        if (era[63:32] > meta.policy.session) {
            dropped_old_session.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        if (from_root) {
            hear();
        } else {
            bool push = hdr.serene.op == op_t.PUSH;
            request(prepared_epoch);
            bit<32> who = ((bit<32>)meta.job << 5) + (bit<32>)meta.worker;
            if (meta.decision.fresh) {
                contributions.count(who);
                staleness.count((who << 4) + meta.decision.staleness);
            } else if (meta.decision.wrong_round) {
                dropped_wrong_round.count(0);
            } else if (push) {
                repeats.count(who);
            }
            if (push && !meta.decision.go && !meta.decision.wrong_round && meta.leaf.echo_seq == 0) {
                blocked.count(who);
            }
        }
    }
}
