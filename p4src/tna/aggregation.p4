// The sums. A slot keeps the cumulative sum of all accepted contributions. It also keeps a snapshot, the sum when a
// round last completed. A worker uses the difference of two reads.
//
// A lane is one register of pairs. Its four instructions are all that a register can have.

struct lane_t {
    bit<32> sum;
    bit<32> snapshot;
}

// meta.known is 0 if `term` is to be added. In OPEN it is 0 if the session is new.
#define LANE_ACTIONS(lanes, name, term, field) \
    RegisterAction<lane_t, bit<SLOT_BITS>, bit<32>>(lanes) add_##name = { \
        void apply(inout lane_t value, out bit<32> read) { \
            if (meta.known == 0) { \
                value.sum = value.sum + term; \
            } \
            read = value.sum; \
        } \
    }; \
    RegisterAction<lane_t, bit<SLOT_BITS>, bit<32>>(lanes) add_and_read_snapshot_##name = { \
        void apply(inout lane_t value, out bit<32> read) { \
            if (meta.known == 0) { \
                value.sum = value.sum + term; \
            } \
            read = value.snapshot; \
        } \
    }; \
    RegisterAction<lane_t, bit<SLOT_BITS>, bit<32>>(lanes) open_##name = { \
        void apply(inout lane_t value, out bit<32> read) { \
            if (meta.known == 0) { \
                value.sum = 0; \
                value.snapshot = 0; \
            } else { \
                value.snapshot = value.sum; \
            } \
            read = value.sum; \
        } \
    }; \
    RegisterAction<lane_t, bit<SLOT_BITS>, bit<32>>(lanes) store_##name = { \
        void apply(inout lane_t value) { \
            value.snapshot = field; \
        } \
    }; \
    action do_add_##name() { field = add_##name.execute(PLACE); } \
    action do_add_and_read_snapshot_##name() { field = add_and_read_snapshot_##name.execute(PLACE); } \
    action do_open_##name() { field = open_##name.execute(PLACE); } \
    action do_store_##name() { store_##name.execute(PLACE); } \
    table update_##name { \
        key = { meta.lanes_do: ternary; } \
        actions = { \
            do_add_##name; do_add_and_read_snapshot_##name; do_open_##name; do_store_##name; \
            @defaultonly NoAction; \
        } \
        const default_action = NoAction; \
        const entries = { \
            lanes_do_t.ADD: do_add_##name(); \
            lanes_do_t.ADD_READ_SNAPSHOT: do_add_and_read_snapshot_##name(); \
            lanes_do_t.OPEN: do_open_##name(); \
            lanes_do_t.STORE: do_store_##name(); \
        } \
        size = 4; \
    }

control Aggregation(inout headers_t hdr, in metadata_t meta) {
#define LANE(i) \
    Register<lane_t, bit<SLOT_BITS>>(SLOTS) lanes_of_##i; \
    LANE_ACTIONS(lanes_of_##i, lane_##i, hdr.values.lanes_##i, hdr.values.lanes_##i)
    FOR_EACH_FIELD(LANE)
#undef LANE

    apply {
#define UPDATE(i) update_lane_##i.apply();
        FOR_EACH_FIELD(UPDATE)
#undef UPDATE
    }
}
