/* The part of a switch's state that is the same for all programs: ports, replication, outputs, and queues to the
 * control plane. */
#ifndef SERENE_SWITCH_H
#define SERENE_SWITCH_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shm.h"

/* Attributes of the program's functions. They are not inlined: otherwise every nested pass would have all their
 * variables on the stack. */
#define STAGE_FUNCTION static __attribute__((noinline))

/* Whether a packet may jump back in its program. The number of steps is limited, because an endless loop would block
 * the switch. */
#define STEP(packet) ((packet)->state->runtime.steps_left-- > 0)

#define EXPORT __attribute__((visibility("default"), unused))

enum { MAX_PORTS = 512, MAX_GROUPS = 65536, MAX_SESSIONS = 32768, MAX_FRAME = 65536 };
enum { MAX_PASSES = 64 };        /* passes of one packet through the pipeline */
enum { MAX_STEPS = 1 << 18 };    /* of one received packet, with all its copies: see STEP and may_run */
enum { MAX_COPIES = 5 * MAX_PASSES + 8 };     /* of one packet at the same time */
enum { OUTPUT_BYTES = 64 << 20, MOST_OUTPUT_BYTES = 1 << 30 };   /* sent from here on; dropped beyond */
enum { OUTPUT_LEAD = 10 };        /* zeros before each output: an empty virtio_net_hdr, for messages of one piece */
enum { RING_BYTES = 4 << 20 };

/* Stages whose cycles are counted, only if compiled with -DPROFILE. */
enum stage {
    STAGE_OUTSIDE, STAGE_RECEIVE, STAGE_PARSE, STAGE_CHECKSUM, STAGE_MATCH, STAGE_REPLICATE, STAGE_DEPARSE, STAGE_SEND,
    STAGE_ACTIONS                /* followed by one for each action, by its id */
};
enum { MAX_STAGES = STAGE_ACTIONS + 1024 };

#ifdef PROFILE
#include <x86intrin.h>
#define STAGE(runtime, stage) stage_enter(runtime, stage)
#else
#define STAGE(runtime, stage) ((void)0)
#endif

struct packet;
struct trace;

struct replica {
    uint32_t port;
    uint32_t instance;
};

struct replicas {
    uint32_t count;
    uint32_t truncate;           /* clone sessions: bytes that are kept; 0: all */
    struct replica items[];
};

struct output {
    uint32_t port;
    uint32_t length;
    size_t offset;
};

/* Packets to be sent, collected for each batch. */
struct outputs {
    uint8_t *bytes;
    size_t used, capacity;
    struct output *items;
    uint32_t count, items_capacity;
};

/* Records for the control plane: packets on the CPU port and digests. The size is bounded; records that do not fit are
 * counted. */
struct ring {
    uint8_t *bytes;              /* [RING_BYTES], records of {uint32 length, payload} end to end */
    size_t used;
    uint64_t lost;
};

struct port_counts {
    uint64_t received, sent, dropped;
};

struct runtime {
    int cpu_port;                /* -1: none */
    uint32_t drop_port;
    uint64_t random;
    uint64_t started_ns;
    int64_t steps_left;          /* of MAX_STEPS, for the packet that is being processed */
    int was_cut_off;             /* whether that packet was dropped for it, and counted */
    uint32_t came_by;            /* its ingress port */
    struct packet *copies[MAX_COPIES];   /* allocated when they are first needed */
    int copies_used;
    struct replicas *groups[MAX_GROUPS];
    struct replicas *sessions[MAX_SESSIONS];
    struct outputs outputs;
    struct ring cpu, digests;
    pthread_mutex_t lock;        /* for a batch of packets, or for one control-plane call */
    int control_waiting;         /* calls that wait for the lock: they have priority over packets */
    pthread_cond_t events;
    struct port_counts counts[MAX_PORTS];
    uint8_t *loops;              /* [MAX_PASSES][MAX_FRAME], allocated for the first recirculated packet */
    void *ports;                 /* ports.h */
    struct shm_end *rings[MAX_PORTS];    /* outputs of such a port are written there; while the ports' thread runs */
    struct trace *trace;         /* trace.h; allocated when packets are first traced */
#ifdef PROFILE
    uint64_t stage_cycles[MAX_STAGES], stage_entered[MAX_STAGES], stage_since;
    uint32_t stage;
#endif
};

#ifdef PROFILE
static inline void stage_enter(struct runtime *runtime, uint32_t stage) {
    uint64_t now = __rdtsc();
    runtime->stage_cycles[runtime->stage] += now - runtime->stage_since;
    runtime->stage_since = now;
    runtime->stage = stage = stage < MAX_STAGES ? stage : STAGE_OUTSIDE;
    runtime->stage_entered[stage]++;
}
#endif

static void lock_for_control(struct runtime *runtime) {
    __atomic_fetch_add(&runtime->control_waiting, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&runtime->lock);
    __atomic_fetch_sub(&runtime->control_waiting, 1, __ATOMIC_RELAXED);
}

static void lock_for_packets(struct runtime *runtime) {
    while (__atomic_load_n(&runtime->control_waiting, __ATOMIC_RELAXED)) sched_yield();
    pthread_mutex_lock(&runtime->lock);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* xorshift64*: P4's random() need not be cryptographically secure. */
static inline uint64_t random_next(struct runtime *runtime) {
    uint64_t x = runtime->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    runtime->random = x;
    return x * 0x2545f4914f6cdd1dull;
}

static inline uint64_t random_between(struct runtime *runtime, uint64_t low, uint64_t high) {
    uint64_t span = high - low + 1;
    return high <= low ? low : low + (span ? random_next(runtime) % span : random_next(runtime));
}

/* Room for a packet of `length` bytes; NULL if there is not enough memory. */
static uint8_t *outputs_reserve(struct outputs *outputs, size_t length) {
    length += OUTPUT_LEAD;
    if (outputs->used + length > MOST_OUTPUT_BYTES) return NULL;
    if (outputs->used + length > outputs->capacity) {
        size_t capacity = outputs->capacity ? outputs->capacity : 1 << 20;
        while (capacity < outputs->used + length) capacity *= 2;
        uint8_t *bytes = realloc(outputs->bytes, capacity);
        if (!bytes) return NULL;
        outputs->bytes = bytes;
        outputs->capacity = capacity;
    }
    if (outputs->count == outputs->items_capacity) {
        uint32_t capacity = outputs->items_capacity ? 2 * outputs->items_capacity : 1024;
        struct output *items = realloc(outputs->items, capacity * sizeof *items);
        if (!items) return NULL;
        outputs->items = items;
        outputs->items_capacity = capacity;
    }
    return memset(outputs->bytes + outputs->used, 0, OUTPUT_LEAD) + OUTPUT_LEAD;
}

static inline void outputs_commit(struct outputs *outputs, uint32_t port, uint32_t length) {
    outputs->items[outputs->count++] = (struct output){port, length, outputs->used + OUTPUT_LEAD};
    outputs->used += OUTPUT_LEAD + length;
}

static inline void outputs_clear(struct outputs *outputs) {
    outputs->used = 0;
    outputs->count = 0;
}

static void ring_push(struct ring *ring, const void *head, uint32_t head_length, const void *body,
                      uint32_t body_length) {
    uint32_t length = head_length + body_length;
    if (ring->used + 4 + length > RING_BYTES) {
        ring->lost++;
        return;
    }
    memcpy(ring->bytes + ring->used, &length, 4);
    memcpy(ring->bytes + ring->used + 4, head, head_length);
    memcpy(ring->bytes + ring->used + 4 + head_length, body, body_length);
    ring->used += 4 + length;
}

/* Replaces *slot by a list of `count` (port, instance) pairs. Returns 0 on success. */
static int replicas_set(struct replicas **slot, const uint32_t *pairs, uint32_t count, uint32_t truncate) {
    struct replicas *list = malloc(sizeof *list + count * sizeof list->items[0]);
    if (!list) return -1;
    list->count = count;
    list->truncate = truncate;
    for (uint32_t i = 0; i < count; i++) list->items[i] = (struct replica){pairs[2 * i], pairs[2 * i + 1]};
    free(*slot);
    *slot = list;
    return 0;
}

#endif
