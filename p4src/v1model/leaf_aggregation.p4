// The rack's sum, and the root's last DOWN: in a latest epoch the other racks' sum, otherwise the root's snapshot.

#include "lanes.p4"

control LeafAggregation(inout headers_t hdr, inout metadata_t meta) {
#define REGISTERS(i) register<lanes_t>(SLOTS) sum_##i; register<lanes_t>(SLOTS) down_##i;
    FOR_EACH_FIELD(REGISTERS)
#undef REGISTERS

    action clear() {
#define CLEAR(i) sum_##i.write(meta.decision.slot, 0);
        FOR_EACH_FIELD(CLEAR)
#undef CLEAR
    }

    action add() {
        lanes_t sum;
#define ADD(i) \
        sum_##i.read(sum, meta.decision.slot); \
        hdr.values.lanes_##i = ADD_LANES(sum, hdr.values.lanes_##i); \
        sum_##i.write(meta.decision.slot, hdr.values.lanes_##i);
        FOR_EACH_FIELD(ADD)
#undef ADD
    }

    action read() {
#define READ(i) sum_##i.read(hdr.values.lanes_##i, meta.decision.slot);
        FOR_EACH_FIELD(READ)
#undef READ
    }

    // Keeps the rack's sum for the UP, because the packet's values become the answer's.
    action set_aside() {
#define ASIDE(i) meta.leaf.sum_##i = hdr.values.lanes_##i;
        FOR_EACH_FIELD(ASIDE)
#undef ASIDE
    }

    action read_down() {
#define READ(i) down_##i.read(hdr.values.lanes_##i, meta.decision.slot);
        FOR_EACH_FIELD(READ)
#undef READ
    }

    action add_down() {
        lanes_t down;
#define ADD(i) \
        down_##i.read(down, meta.decision.slot); \
        hdr.values.lanes_##i = ADD_LANES(down, hdr.values.lanes_##i);
        FOR_EACH_FIELD(ADD)
#undef ADD
    }

    action keep_down() {
#define KEEP(i) down_##i.write(meta.decision.slot, hdr.values.lanes_##i);
        FOR_EACH_FIELD(KEEP)
#undef KEEP
    }

    action add_sum() {
        lanes_t sum;
#define ADD(i) \
        sum_##i.read(sum, meta.decision.slot); \
        hdr.values.lanes_##i = ADD_LANES(sum, hdr.values.lanes_##i);
        FOR_EACH_FIELD(ADD)
#undef ADD
    }

    apply {
        if (meta.decision.clear) {
            clear();
        }
        if (hdr.serene.op == op_t.DOWN) {
            if (meta.leaf.keep) {
                keep_down();
            }
            if (meta.leaf.latest) {
                add_sum();
            }
        } else {
            if (meta.decision.fresh) {
                add();
            } else {
                read();
            }
            if (meta.decision.go) {
                set_aside();
                if (meta.leaf.latest) {
                    add_down();
                } else {
                    read_down();
                }
            }
        }
    }
}
