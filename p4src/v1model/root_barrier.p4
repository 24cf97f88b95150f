// Decides when a round is complete. docs/hierarchy.md has the root's rules, tests/tree/model.py has them in Python.

control RootBarrier(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<64>>(SLOTS) era_of;                  // session ++ epoch last seen (epoch 0: none yet)
    register<round_t>(SLOTS) base_of;                 // rounds of this epoch that are complete
    register<bit<64>>(SLOTS) totals_of;               // contributions in the sum ++ in its snapshot
    register<bit<160>>(SLOTS * LEAVES) rack_of;       // session ++ epoch ++ base ++ arrivals ++ total

    counter(MAX_JOBS * LEAVES, CounterType.packets) contributions;          // UPs with new contributions, by rack
    counter(MAX_JOBS * LEAVES, CounterType.packets) repeats;                // other UPs
    counter(1, CounterType.packets_and_bytes) dropped_old_session;
    counter(1, CounterType.packets_and_bytes) dropped_wrong_epoch;          // later than the one in force

    action decide() {
        bool current = hdr.serene.epoch == meta.policy.epoch;
        rack_bitmap_t sender = (rack_bitmap_t)1 << meta.worker;
        rack_bitmap_t counted = meta.policy.sync_mask[7:0];
        bit<64> era_now = meta.policy.session ++ meta.policy.epoch;

        slot_t slot = meta.first_slot + hdr.serene.slot;
        bit<64> era; era_of.read(era, slot);
        round_t base; base_of.read(base, slot);
        bit<64> totals; totals_of.read(totals, slot);
        total_t total = totals[63:32];
        total_t snapshot_total = totals[31:0];
        slot_t place = (slot << 3) + (bit<32>)meta.worker;
        bit<160> rack; rack_of.read(rack, place);

        bool clear = era[63:32] != meta.policy.session;
        if (clear) {
            total = 0;
            snapshot_total = 0;
        }
        bool rebase = era != era_now;
        if (rebase) {
            base = 0;
        }

        // The rack's sum is cumulative. So an UP replaces every earlier one, also a lost one.
        bool clear_rack = rack[159:128] != meta.policy.session;
        if (clear_rack) {
            rack = meta.policy.session ++ (bit<128>)0;
        }
        total_t rack_total = rack[31:0];
        bool newer = hdr.serene.total > rack_total;
        if (newer) {
            total = total + (hdr.serene.total - rack_total);
            rack_total = hdr.serene.total;
        }
        bool heard_before = rack[127:96] == meta.policy.epoch;
        bool first = current && !heard_before && (counted & sender) != 0;
        bit<64> progress = hdr.serene.round ++ (bit<32>)hdr.serene.quorum;
        if (current && (!heard_before || progress > rack[95:32])) {
            rack = era_now ++ progress ++ rack_total;
        } else {
            rack = rack[159:32] ++ rack_total;
        }
        rack_of.write(place, rack);

        round_t least = 0xffffffff;
        bit<32> arrivals = 0;
        rack_bitmap_t heard = 0;
        bit<160> other;
#define LOOK(i) \
        rack_of.read(other, (slot << 3) + i); \
        if (other[159:96] == era_now) { heard[i:i] = 1; } \
        if (counted[i:i] == 1 && other[159:96] != era_now) { least = 0; } \
        if (counted[i:i] == 1 && other[159:96] == era_now && other[95:64] < least) { least = other[95:64]; } \
        if (counted[i:i] == 1 && other[159:96] == era_now && other[95:64] == base) { \
            arrivals = arrivals + other[63:32]; \
        }
        FOR_EACH_LEAF(LOOK)
#undef LOOK
        round_t complete = base;
        if (meta.policy.quorum == 0) {
            complete = counted == 0 ? 0 : least;
        } else if (arrivals >= (bit<32>)meta.policy.quorum) {
            complete = base + 1;
        }
        bool moved = complete > base;

        // A rack's first UP of an epoch also takes the snapshot (k-of-n): the rack may have read more than it holds.
        bool take_snapshot = clear || moved || complete == 0 || first;
        if (take_snapshot) {
            snapshot_total = total;
        }

        era_of.write(slot, era_now);
        base_of.write(slot, complete);
        totals_of.write(slot, total ++ snapshot_total);

        bool echo = hdr.serene.seq != 0;
        bool latest = meta.policy.read_mode == read_mode_t.LATEST;
        rack_bitmap_t down = 0;
        rack_bitmap_t grant = 0;
        if (moved) {
            down = counted & (latest ? sender : heard);
            grant = counted & ~down;
        } else if (!echo && !current) {
            grant = sender;
        } else if (!echo && hdr.serene.staleness != 0) {
            down = sender;
        }
        if (rebase) {
            grant = grant | (~sender & ~down);
        }

        meta.decision.slot = slot;
        meta.decision.clear = clear;
        meta.decision.take_snapshot = take_snapshot;
        meta.root.place = place;
        meta.root.sender = sender;
        meta.root.clear_rack = clear_rack;
        meta.root.newer = newer;
        meta.root.echo = echo;
        meta.root.latest = latest;
        meta.root.down = down;
        meta.root.grant = grant;

        hdr.serene.round = complete;
        if (latest) {
            hdr.serene.total = total - rack_total;
        } else {
            hdr.serene.total = echo ? total : snapshot_total;
        }
    }

    apply {
        bit<64> era;
        era_of.read(era, meta.first_slot + hdr.serene.slot);
        if (hdr.serene.epoch > meta.policy.epoch) {
            dropped_wrong_epoch.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        if (era[63:32] > meta.policy.session) {
            dropped_old_session.count(0);
            mark_to_drop(standard_metadata);
            exit;
        }
        decide();
        bit<32> who = ((bit<32>)meta.job << 3) + (bit<32>)meta.worker;
        if (meta.root.newer) {
            contributions.count(who);
        } else {
            repeats.count(who);
        }
    }
}
