// Sizes of the Tofino program; included by ../include/sizes.p4. docs/tofino.md says how the chip limits them.
#ifndef SERENE_TNA_SIZES_P4
#define SERENE_TNA_SIZES_P4

// A field is one lane: one register each, beside its snapshot.
#ifndef FIELDS
#define FIELDS 32
#endif
#define FIELD_LANES 1

#define FIELDS_0_7(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define FIELDS_8_15(DO) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define FIELDS_16_23(DO) DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23)
#define FIELDS_24_27(DO) DO(24) DO(25) DO(26) DO(27)
#define FIELDS_28_31(DO) DO(28) DO(29) DO(30) DO(31)
#define FIELDS_32_35(DO) DO(32) DO(33) DO(34) DO(35)
#if FIELDS == 16
#define FOR_EACH_FIELD(DO) FIELDS_0_7(DO) FIELDS_8_15(DO)
#elif FIELDS == 24
#define FOR_EACH_FIELD(DO) FIELDS_0_7(DO) FIELDS_8_15(DO) FIELDS_16_23(DO)
#elif FIELDS == 28
#define FOR_EACH_FIELD(DO) FIELDS_0_7(DO) FIELDS_8_15(DO) FIELDS_16_23(DO) FIELDS_24_27(DO)
#elif FIELDS == 32
#define FOR_EACH_FIELD(DO) FIELDS_0_7(DO) FIELDS_8_15(DO) FIELDS_16_23(DO) FIELDS_24_27(DO) FIELDS_28_31(DO)
#elif FIELDS == 36
#define FOR_EACH_FIELD(DO) \
    FIELDS_0_7(DO) FIELDS_8_15(DO) FIELDS_16_23(DO) FIELDS_24_27(DO) FIELDS_28_31(DO) FIELDS_32_35(DO)
#else
#error "FIELDS must be 16, 24, 28, 32 or 36: add the new variant to FOR_EACH_FIELD"
#endif

// Powers of two: indices into registers are put together from bits.
#ifndef WORKER_BITS
#define WORKER_BITS 4
#endif
#ifndef SLOT_BITS
#define SLOT_BITS 12
#endif
#ifndef SLOTS_IN_USE
#define SLOTS_IN_USE 3584
#endif
#define RING_BITS 4
#define WORKERS_0_15(DO) \
    DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define WORKERS_16_31(DO) \
    DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) DO(24) DO(25) DO(26) DO(27) DO(28) DO(29) DO(30) DO(31)
#if WORKER_BITS == 4
#define FOR_EACH_WORKER(DO) WORKERS_0_15(DO)
#elif WORKER_BITS == 5
#define FOR_EACH_WORKER(DO) WORKERS_0_15(DO) WORKERS_16_31(DO)
#else
#error "WORKER_BITS must be 4 or 5: add the new variant to FOR_EACH_WORKER"
#endif
const bit<32> MAX_WORKERS = 1 << WORKER_BITS;     // of one job; a bit each in worker_bitmap_t
const bit<32> SLOTS = SLOTS_IN_USE;               // shared by all jobs; at most 1 << SLOT_BITS

const bit<9> CPU_PORT = 192;
const bit<9> LOOP_PORT = 68;      // the pipeline's own recirculation port: a completed round passes twice

#endif
