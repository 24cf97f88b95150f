// The sums. A slot keeps the cumulative sum of all accepted contributions. It also keeps a snapshot, the sum when a
// round last completed. A worker uses the difference of two reads.

#include "lanes.p4"

control Aggregation(inout headers_t hdr, in decision_t decision) {
#define REGISTERS(i) register<lanes_t>(SLOTS) sum_##i; register<lanes_t>(SLOTS) snapshot_##i;
    FOR_EACH_FIELD(REGISTERS)
#undef REGISTERS

    action start() {
#define START(i) sum_##i.write(decision.slot, hdr.values.lanes_##i);
        FOR_EACH_FIELD(START)
#undef START
    }

    action start_empty() {
#define START(i) hdr.values.lanes_##i = 0; sum_##i.write(decision.slot, 0);
        FOR_EACH_FIELD(START)
#undef START
    }

    action add() {
        lanes_t sum;
#define ADD(i) \
        sum_##i.read(sum, decision.slot); \
        hdr.values.lanes_##i = ADD_LANES(sum, hdr.values.lanes_##i); \
        sum_##i.write(decision.slot, hdr.values.lanes_##i);
        FOR_EACH_FIELD(ADD)
#undef ADD
    }

    action read() {
#define READ(i) sum_##i.read(hdr.values.lanes_##i, decision.slot);
        FOR_EACH_FIELD(READ)
#undef READ
    }

    action take_snapshot() {
#define TAKE(i) snapshot_##i.write(decision.slot, hdr.values.lanes_##i);
        FOR_EACH_FIELD(TAKE)
#undef TAKE
    }

    action read_snapshot() {
#define READ(i) snapshot_##i.read(hdr.values.lanes_##i, decision.slot);
        FOR_EACH_FIELD(READ)
#undef READ
    }

    apply {
        if (decision.clear) {
            if (decision.fresh) {
                start();
            } else {
                start_empty();
            }
        } else if (decision.fresh) {
            add();
        } else {
            read();
        }
        if (decision.take_snapshot) {
            take_snapshot();
        } else if (decision.read_snapshot && decision.go) {
            read_snapshot();
        }
    }
}
