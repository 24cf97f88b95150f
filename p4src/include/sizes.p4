// All sizes of the data plane, and the numbers that both ends of a link must agree on.
#ifndef SERENE_SIZES_P4
#define SERENE_SIZES_P4

const bit<32> MAX_JOBS = 8;

// Round counters of a slot. A counted worker is at most `staleness` rounds ahead of base. So the largest staleness
// bound is RING - 1.
const bit<32> RING = 16;
const bit<32> STALENESS_CLASSES = 16;      // of the telemetry's histogram: 0, 1, ... 15 rounds or more
const bit<8> UNBOUNDED = 255;     // the staleness bound of a policy under which nobody waits

// Racks of one job: leaf switches below a root (docs/hierarchy.md).
const bit<32> LEAVES = 8;
const bit<8> ROOT = 255;          // a leaf's root among its members; workers' ids end at 31

const bit<16> SERENE_UDP_PORT = 24142;
const bit<8> PROTOCOL_VERSION = 2;

// Multicast groups. One floods ordinary traffic. Each job has one with all its workers.
const bit<16> FLOOD_GROUP = 1;
const bit<16> JOB_GROUPS = 16;    // group of job j: JOB_GROUPS + j

// Values travel in FIELDS fields of FIELD_LANES lanes, 32 bits each. Variants differ only in FIELDS.
#ifdef __TARGET_TOFINO__
#include "../tna/sizes.p4"
#else

// 5 fields (320 lanes) fill a 1500-byte MTU, 14 (896 lanes) a jumbo frame of 3.7 kB.
#ifndef FIELDS
#define FIELDS 5
#endif
#define FIELD_LANES 64

#if FIELDS == 5
#define FOR_EACH_FIELD(DO) DO(0) DO(1) DO(2) DO(3) DO(4)
#elif FIELDS == 14
#define FOR_EACH_FIELD(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13)
#else
#error "FIELDS must be 5 (MTU 1500) or 14 (jumbo frames): add the new variant to FOR_EACH_FIELD"
#endif

const bit<32> MAX_WORKERS = 32;   // of one job; worker_bitmap_t has a bit for each
const bit<32> SLOTS = 8192;       // shared by all jobs
const bit<9> CPU_PORT = 255;

#endif

#endif
