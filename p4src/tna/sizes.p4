// Sizes and ports of the Tofino program, included by ../include/sizes.p4. docs/tofino.md describes the chip's limits.
#ifndef SERENE_TNA_SIZES_P4
#define SERENE_TNA_SIZES_P4

// A field is one lane: one register each, beside its snapshot.
#if __TARGET_TOFINO__ == 2
#define CHIP_FIELDS 60
#define CHIP_SLOTS 2816
#else
#define CHIP_FIELDS 32
#define CHIP_SLOTS 3584
#endif
#ifndef FIELDS
#define FIELDS CHIP_FIELDS
#endif
#define FIELD_LANES 1

#if FIELDS < 16 || FIELDS > 64 || FIELDS % 4 != 0
#error "FIELDS must be a multiple of 4 from 16 to 64: add the new variant below"
#endif
#define FIELDS_16(DO) \
    DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define FIELDS_20(DO) FIELDS_16(DO) DO(16) DO(17) DO(18) DO(19)
#define FIELDS_24(DO) FIELDS_20(DO) DO(20) DO(21) DO(22) DO(23)
#define FIELDS_28(DO) FIELDS_24(DO) DO(24) DO(25) DO(26) DO(27)
#define FIELDS_32(DO) FIELDS_28(DO) DO(28) DO(29) DO(30) DO(31)
#define FIELDS_36(DO) FIELDS_32(DO) DO(32) DO(33) DO(34) DO(35)
#define FIELDS_40(DO) FIELDS_36(DO) DO(36) DO(37) DO(38) DO(39)
#define FIELDS_44(DO) FIELDS_40(DO) DO(40) DO(41) DO(42) DO(43)
#define FIELDS_48(DO) FIELDS_44(DO) DO(44) DO(45) DO(46) DO(47)
#define FIELDS_52(DO) FIELDS_48(DO) DO(48) DO(49) DO(50) DO(51)
#define FIELDS_56(DO) FIELDS_52(DO) DO(52) DO(53) DO(54) DO(55)
#define FIELDS_60(DO) FIELDS_56(DO) DO(56) DO(57) DO(58) DO(59)
#define FIELDS_64(DO) FIELDS_60(DO) DO(60) DO(61) DO(62) DO(63)
#define FIELDS_OF_(fields) FIELDS_##fields
#define FIELDS_OF(fields) FIELDS_OF_(fields)
#define FOR_EACH_FIELD(DO) FIELDS_OF(FIELDS)(DO)

// Powers of two, because indices into registers are concatenations of bits.
#ifndef WORKER_BITS
#define WORKER_BITS 4
#endif
#ifndef SLOT_BITS
#define SLOT_BITS 12
#endif
#ifndef SLOTS_IN_USE
#define SLOTS_IN_USE CHIP_SLOTS
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
const bit<32> MAX_WORKERS = 1 << WORKER_BITS;     // of one job; worker_bitmap_t has a bit for each
const bit<32> SLOTS = SLOTS_IN_USE;               // shared by all jobs; at most 1 << SLOT_BITS

// The chip's own ports: the CPU port, and the pipeline's recirculation port. A completed round passes twice.
#if __TARGET_TOFINO__ == 2
const bit<9> CPU_PORT = 0;
const bit<9> LOOP_PORT = 6;
#else
const bit<9> CPU_PORT = 192;
const bit<9> LOOP_PORT = 68;
#endif

#endif
