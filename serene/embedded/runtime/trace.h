/* Records a packet's processing, event by event. Only a program compiled with -DTRACE has this code. It is a second
 * compilation that uses the same state, so that an untraced switch has no overhead. serene/embedded/trace/steps.py
 * reads the records.
 *
 * An event is a header (kind, number of words that follow, id) and its words. A packet's record begins with two words:
 * the number of words that follow, and whether events are missing because the record was too long. */
#ifndef SERENE_TRACE_H
#define SERENE_TRACE_H

enum trace_kind {
    TRACE_END,                   /* ends what began last: a packet, a pass, the parser, an action, copies */
    TRACE_PACKET, TRACE_INGRESS, TRACE_EGRESS, TRACE_PARSER, TRACE_ACTION, TRACE_COPIES,     /* these have an end */
    TRACE_STATE, TRACE_SELECT, TRACE_HEADER, TRACE_PARSER_ERROR, TRACE_CHECKSUM, TRACE_TABLE, TRACE_MEMBER,
    TRACE_CONDITION, TRACE_REGISTER_READ, TRACE_REGISTER_WRITE, TRACE_COUNTER, TRACE_METER, TRACE_REQUEST,
    TRACE_EMIT, TRACE_OUTPUT, TRACE_DROP, TRACE_BYTES, TRACE_LOG,
    TRACE_DIGEST
};

enum trace_request { REQUEST_DROP, REQUEST_EXIT, REQUEST_CLONE, REQUEST_DIGEST, REQUEST_RESUBMIT, REQUEST_RECIRCULATE,
    REQUEST_TRUNCATE };

enum trace_copies { COPIES_MULTICAST, COPIES_INGRESS_CLONE, COPIES_EGRESS_CLONE };

enum trace_drop { DROPPED_INGRESS, DROPPED_EGRESS, DROPPED_NO_GROUP, DROPPED_CUT_OFF, DROPPED_NO_PORT };

enum { TRACE_RING_WORDS = 1 << 19, TRACE_PACKET_WORDS = 1 << 16 };

struct trace {
    int active;
    uint8_t ports[MAX_PORTS];    /* whose packets are traced */
    uint32_t bytes;              /* recorded bytes of each packet that arrives or leaves */
    size_t used, at;             /* words of finished records; end of the present one, 0 outside a packet */
    int cut;
    uint64_t lost;               /* packets for which there was no room */
    uint64_t words[TRACE_RING_WORDS];
};

#ifdef TRACE
#define TRACED(...) __VA_ARGS__

/* Room for an event's words; NULL if nothing is recorded. */
static uint64_t *trace_room(struct runtime *runtime, enum trace_kind kind, uint32_t id, uint32_t count) {
    struct trace *trace = runtime->trace;
    if (!trace || !trace->at) return NULL;
    if (trace->cut || trace->at + 1 + count > trace->used + TRACE_PACKET_WORDS) {
        trace->cut = 1;
        return NULL;
    }
    uint64_t *words = trace->words + trace->at;
    *words = (uint64_t)id << 32 | (uint64_t)count << 8 | kind;
    trace->at += 1 + count;
    return words + 1;
}

static void trace_words(struct runtime *runtime, enum trace_kind kind, uint32_t id, const uint64_t *words,
                        uint32_t count) {
    uint64_t *to = trace_room(runtime, kind, id, count);
    if (to && count) memcpy(to, words, count * sizeof *words);
}

#define TRACE_EVENT(packet, kind, id, ...) \
    trace_words(&(packet)->state->runtime, kind, id, (const uint64_t[]){__VA_ARGS__}, \
                sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
#define TRACE_POINT(packet, kind, id) trace_words(&(packet)->state->runtime, kind, id, NULL, 0)

/* The 128 most significant bits of a wide number. */
#define TRACE_TOP(value, bits) \
    ({ uint64_t top_[2]; \
       if ((bits) > 128) wide_shift_right(top_, 2, value, ((bits) + 63) / 64, (bits) - 128, 0); \
       else wide_copy(top_, 2, value, ((bits) + 63) / 64); \
       (struct trace_top){{top_[0], top_[1]}}; })
struct trace_top {
    uint64_t limbs[2];
};

static void trace_table(struct runtime *runtime, const struct table *table, uint32_t id, const struct entry *entry,
                        const uint64_t *key) {
    uint32_t limbs = (uint32_t)table->key_limbs, handle = entry ? entry_index(table, entry) : 0;
    uint64_t *to = trace_room(runtime, TRACE_TABLE, id, 2 + limbs + (entry ? 2 * limbs : 0));
    if (!to) return;
    to[0] = entry ? handle : ~0ull;
    to[1] = entry ? (uint64_t)(int64_t)entry->rank : 0;
    if (limbs) memcpy(to + 2, key, limbs * 8);
    if (!entry || !limbs) return;
    memcpy(to + 2 + limbs, entry_key(table, handle), limbs * 8);
    for (uint32_t i = 0; i < limbs; i++) to[2 + 2 * limbs + i] = entry_mask(table, handle, (int)i);
}

static void trace_bytes(struct runtime *runtime, uint32_t id, const uint8_t *data, uint32_t length) {
    uint32_t size = !runtime->trace ? 0 : length < runtime->trace->bytes ? length : runtime->trace->bytes;
    uint64_t *to = size ? trace_room(runtime, TRACE_BYTES, id, 1 + (size + 7) / 8) : NULL;
    if (!to) return;
    to[size / 8] = to[(size + 7) / 8] = 0;
    to[0] = size;
    memcpy(to + 1, data, size);
}

static void trace_begin(struct runtime *runtime, uint32_t port, const uint8_t *data, uint32_t length) {
    struct trace *trace = runtime->trace;
    if (!trace || !trace->active || port >= MAX_PORTS || !trace->ports[port]) return;
    if (trace->used + TRACE_PACKET_WORDS > TRACE_RING_WORDS) {   /* a record is truncated only for its own length */
        trace->lost++;
        return;
    }
    trace->at = trace->used + 2;
    trace->cut = 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    trace_words(runtime, TRACE_PACKET, port,
                (const uint64_t[]){length, (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec}, 2);
    trace_bytes(runtime, 0, data, length);
}

static void trace_end(struct runtime *runtime) {
    struct trace *trace = runtime->trace;
    if (!trace || !trace->at) return;
    trace->words[trace->used] = trace->at - trace->used - 2;
    trace->words[trace->used + 1] = (uint64_t)trace->cut;
    trace->used = trace->at;
    trace->at = 0;
}
#else
#define TRACED(...)
#define TRACE_EVENT(packet, kind, id, ...) ((void)0)
#define TRACE_POINT(packet, kind, id) ((void)0)
#endif

#endif
