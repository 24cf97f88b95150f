// The racks' sums, their sum, and its snapshot.

#include "lanes.p4"

control RootAggregation(inout headers_t hdr, in metadata_t meta) {
#define REGISTERS(i) \
    register<lanes_t>(SLOTS) sum_##i; \
    register<lanes_t>(SLOTS) snapshot_##i; \
    register<lanes_t>(SLOTS * LEAVES) rack_##i;
    FOR_EACH_FIELD(REGISTERS)
#undef REGISTERS

    action clear() {
#define CLEAR(i) sum_##i.write(meta.decision.slot, 0);
        FOR_EACH_FIELD(CLEAR)
#undef CLEAR
    }

    action clear_rack() {
#define CLEAR(i) rack_##i.write(meta.root.place, 0);
        FOR_EACH_FIELD(CLEAR)
#undef CLEAR
    }

    // One action changes both, so that the sum always includes the rack's stored sum.
    action replace_rack() {
        lanes_t sum;
        lanes_t before;
#define REPLACE(i) \
        sum_##i.read(sum, meta.decision.slot); \
        rack_##i.read(before, meta.root.place); \
        before = SUBTRACT_LANES(hdr.values.lanes_##i, before); \
        sum = ADD_LANES(sum, before); \
        sum_##i.write(meta.decision.slot, sum); \
        rack_##i.write(meta.root.place, hdr.values.lanes_##i);
        FOR_EACH_FIELD(REPLACE)
#undef REPLACE
    }

    action read() {
#define READ(i) sum_##i.read(hdr.values.lanes_##i, meta.decision.slot);
        FOR_EACH_FIELD(READ)
#undef READ
    }

    action take_snapshot() {
#define TAKE(i) snapshot_##i.write(meta.decision.slot, hdr.values.lanes_##i);
        FOR_EACH_FIELD(TAKE)
#undef TAKE
    }

    action read_snapshot() {
#define READ(i) snapshot_##i.read(hdr.values.lanes_##i, meta.decision.slot);
        FOR_EACH_FIELD(READ)
#undef READ
    }

    action leave_out_rack() {
        lanes_t own;
#define LEAVE_OUT(i) \
        rack_##i.read(own, meta.root.place); \
        hdr.values.lanes_##i = SUBTRACT_LANES(hdr.values.lanes_##i, own);
        FOR_EACH_FIELD(LEAVE_OUT)
#undef LEAVE_OUT
    }

    apply {
        if (meta.decision.clear) {
            clear();
        }
        if (meta.root.clear_rack) {
            clear_rack();
        }
        if (meta.root.newer) {
            replace_rack();
        }
        read();
        if (meta.decision.take_snapshot) {
            take_snapshot();
        }
        if (meta.root.latest) {
            leave_out_rack();
        } else if (!meta.root.echo) {
            read_snapshot();
        }
    }
}
