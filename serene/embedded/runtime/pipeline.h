/* A packet's path, as in simple_switch: parser, ingress, replication, egress, deparser. Resubmitted, recirculated and
 * cloned packets pass parts of it again. Included after the generated program. */
#ifndef SERENE_PIPELINE_H
#define SERENE_PIPELINE_H

#include "port.h"

enum instance_type {
    INSTANCE_NORMAL = 0,
    INSTANCE_INGRESS_CLONE = 1,
    INSTANCE_EGRESS_CLONE = 2,
    INSTANCE_RECIRCULATED = 4,
    INSTANCE_REPLICATED = 5,
    INSTANCE_RESUBMITTED = 6
};

static void run_ingress(struct packet *packet, int passes);
static void run_egress(struct packet *packet, uint32_t port, uint32_t instance, int passes);

/* Drops a received packet that has caused too many copies or steps. It is counted once, at its ingress port. */
static void cut_off(struct runtime *runtime, const struct packet *packet) {
    uint32_t port = runtime->came_by;
    if (port < MAX_PORTS) runtime->counts[port].dropped += !runtime->was_cut_off;
    runtime->was_cut_off = 1;
    TRACE_POINT(packet, TRACE_DROP, DROPPED_CUT_OFF);
}

/* Each pass of each copy takes steps. Longer packets take more, because their copies take memory. When no steps are
 * left, no further copy is made. */
static int may_run(const struct packet *packet) {
    struct runtime *runtime = &packet->state->runtime;
    runtime->steps_left -= 1 + packet->length / 256;
    if (runtime->steps_left >= 0) return 1;
    cut_off(runtime, packet);
    return 0;
}

/* Memory for a copy until `copies_used` is reset; NULL: none is left. The stack would be too small for copies. */
static struct packet *copy_room(struct runtime *runtime) {
    if (runtime->copies_used == MAX_COPIES) return NULL;
    struct packet **room = &runtime->copies[runtime->copies_used];
    if (!*room) *room = calloc(1, sizeof **room);
    runtime->copies_used += *room != NULL;
    return *room;
}

static void begin_packet(struct packet *packet, struct state *state, uint32_t port, const uint8_t *data,
                         uint32_t length) {
    phv_clear(&packet->h);
    packet->state = state;
    packet->data = data;
    packet->length = length;
    packet->grown = 0;
    packet->requests = (struct requests){0};
    packet->h.standard_metadata.ingress_port = port;
    packet->h.standard_metadata.packet_length = length;
}

/* Starts a packet again with its own bytes. Of its metadata only a field list is kept. */
static void begin_again(struct packet *copy, const struct packet *packet, const uint8_t *data, uint32_t length,
                        uint32_t field_list, enum instance_type type) {
    begin_packet(copy, packet->state, 0, data, length);
    copy_fields(field_list, &copy->h, &packet->h);
    copy->h.standard_metadata.instance_type = type;
}

static void copy_packet(struct packet *to, const struct packet *from) {
    memcpy(to, from, offsetof(struct packet, h));
    phv_copy(&to->h, &from->h);
}

static void egress_pass(struct packet *packet, uint32_t port, uint32_t instance, int passes) {
    struct state *state = packet->state;
    struct runtime *runtime = &state->runtime;
    if (!may_run(packet)) return;
    STAGE(runtime, STAGE_REPLICATE);
    packet->h.standard_metadata.egress_port = port;
    packet->h.standard_metadata.egress_rid = instance;
    packet->h.standard_metadata.egress_spec = (runtime->drop_port + 1) & 0x1ff;
    packet->h.standard_metadata.packet_length = packet->length + (uint32_t)packet->grown;
    if (USES_EGRESS_TIME)
        packet->h.standard_metadata.egress_global_timestamp = (now_ns() - runtime->started_ns) / 1000;
    packet->requests = (struct requests){.truncate = packet->requests.truncate};

    STAGE(runtime, STAGE_MATCH);
    egress(packet);
    STAGE(runtime, STAGE_REPLICATE);

    if (packet->requests.clone && passes < MAX_PASSES) {
        struct replicas *replicas = runtime->sessions[packet->requests.clone_session % MAX_SESSIONS];
        struct packet *copy = replicas ? copy_room(runtime) : NULL;
        TRACE_EVENT(packet, TRACE_COPIES, COPIES_EGRESS_CLONE, packet->requests.clone_session,
                    copy ? replicas->count : 0);
        for (uint32_t i = 0; copy && runtime->steps_left >= 0 && i < replicas->count; i++) {
            copy_packet(copy, packet);
            metadata_clear(&copy->h);
            copy_fields(packet->requests.clone_fields, &copy->h, &packet->h);
            copy->h.standard_metadata.instance_type = INSTANCE_EGRESS_CLONE;
            copy->requests = (struct requests){.truncate = replicas->truncate};
            run_egress(copy, replicas->items[i].port, replicas->items[i].instance, passes + 1);
        }
        TRACE_POINT(packet, TRACE_END, 0);
        runtime->copies_used -= copy != NULL;
    }
    if (packet->h.standard_metadata.egress_spec == runtime->drop_port) {
        TRACE_POINT(packet, TRACE_DROP, DROPPED_EGRESS);
        return;
    }

    STAGE(runtime, STAGE_CHECKSUM);
    update_checksums(packet);
    STAGE(runtime, STAGE_DEPARSE);
    uint32_t payload = packet->length - packet->parsed;
    struct shm_end *ring = packet->requests.recirculate || port >= MAX_PORTS ? NULL : runtime->rings[port];
    uint8_t *to = ring ? shm_reserve(ring, (uint64_t)MAX_HEADERS + payload) : NULL;
    if (ring && !to) {
        runtime->rings[port] = ring = NULL;      /* also for later packets: they must not overtake this one */
    }
    if (!to) to = outputs_reserve(&runtime->outputs, MAX_HEADERS + payload);
    if (!to) {
        cut_off(runtime, packet);
        return;
    }
    uint32_t length = deparse(packet, to);
    memcpy(to + length, packet->data + packet->parsed, payload);
    length += payload;
    if (packet->requests.truncate && packet->requests.truncate < length) length = packet->requests.truncate;
    STAGE(runtime, STAGE_REPLICATE);

    if (!packet->requests.recirculate) {
        if (ring) {
            int sent = shm_commit(ring, to, length);
            runtime->counts[port].sent += sent;
            runtime->counts[port].dropped += !sent;
            TRACED(if (sent) capture_packet(runtime, port, to, length, CAPTURE_OUT);)
        } else {
            outputs_commit(&runtime->outputs, port, length);
        }
        TRACED(if (is_no_port(runtime, port)) TRACE_EVENT(packet, TRACE_DROP, DROPPED_NO_PORT, port);
               else TRACE_EVENT(packet, TRACE_OUTPUT, port, length, instance);)
        TRACED(trace_bytes(runtime, 1, to, length);)
        return;
    }
    /* It gets its own bytes, because the outputs grow and move during its next pass. */
    if (!runtime->loops) runtime->loops = malloc((size_t)MAX_PASSES * MAX_FRAME);
    struct packet *again = passes < MAX_PASSES && length <= MAX_FRAME && runtime->loops ? copy_room(runtime) : NULL;
    if (!again) {
        cut_off(runtime, packet);
        return;
    }
    uint8_t *bytes = runtime->loops + (size_t)passes * MAX_FRAME;
    memcpy(bytes, to, length);
    begin_again(again, packet, bytes, length, packet->requests.recirculate_fields, INSTANCE_RECIRCULATED);
    run_ingress(again, passes + 1);
    runtime->copies_used--;
}

/* Consumes `packet`. */
static void run_egress(struct packet *packet, uint32_t port, uint32_t instance, int passes) {
    TRACE_EVENT(packet, TRACE_EGRESS, port, instance, packet->h.standard_metadata.instance_type);
    egress_pass(packet, port, instance, passes);
    TRACE_POINT(packet, TRACE_END, 0);
}

/* Every replica but the last gets a copy; the last gets the packet itself. */
static void replicate(struct packet *packet, const struct replicas *replicas, int passes) {
    TRACE_EVENT(packet, TRACE_COPIES, COPIES_MULTICAST, packet->h.standard_metadata.mcast_grp,
                replicas ? replicas->count : 0);
    if (!replicas || !replicas->count) {
        TRACE_POINT(packet, TRACE_DROP, DROPPED_NO_GROUP);
        TRACE_POINT(packet, TRACE_END, 0);
        return;
    }
    struct runtime *runtime = &packet->state->runtime;
    struct packet *copy = replicas->count > 1 ? copy_room(runtime) : NULL;
    for (uint32_t i = 0; copy && runtime->steps_left >= 0 && i + 1 < replicas->count; i++) {
        copy_packet(copy, packet);
        run_egress(copy, replicas->items[i].port, replicas->items[i].instance, passes);
    }
    runtime->copies_used -= copy != NULL;
    const struct replica *last = &replicas->items[replicas->count - 1];
    run_egress(packet, last->port, last->instance, passes);
    TRACE_POINT(packet, TRACE_END, 0);
}

static void ingress_pass(struct packet *packet, int passes) {
    struct runtime *runtime = &packet->state->runtime;
    if (!may_run(packet)) return;
    if (USES_INGRESS_TIME)
        packet->h.standard_metadata.ingress_global_timestamp = (now_ns() - runtime->started_ns) / 1000;
    STAGE(runtime, STAGE_PARSE);
    parse(packet);
    STAGE(runtime, STAGE_CHECKSUM);
    verify_checksums(packet);
    STAGE(runtime, STAGE_MATCH);
    ingress(packet);
    STAGE(runtime, STAGE_REPLICATE);

    struct requests requests = packet->requests;
    if (requests.clone && passes < MAX_PASSES) {
        struct replicas *replicas = runtime->sessions[requests.clone_session % MAX_SESSIONS];
        struct packet *copy = replicas ? copy_room(runtime) : NULL;
        TRACE_EVENT(packet, TRACE_COPIES, COPIES_INGRESS_CLONE, requests.clone_session, copy ? replicas->count : 0);
        for (uint32_t i = 0; copy && runtime->steps_left >= 0 && i < replicas->count; i++) {
            begin_packet(copy, packet->state, runtime->came_by, packet->data, packet->length);
            parse(copy);
            metadata_clear(&copy->h);    /* also the port, which the parser may have read */
            copy_fields(requests.clone_fields, &copy->h, &packet->h);
            copy->h.standard_metadata.instance_type = INSTANCE_INGRESS_CLONE;
            copy->requests.truncate = replicas->truncate;
            run_egress(copy, replicas->items[i].port, replicas->items[i].instance, passes + 1);
        }
        TRACE_POINT(packet, TRACE_END, 0);
        runtime->copies_used -= copy != NULL;
    }
    if (requests.digest) learn(packet, requests.digest_list);
    if (requests.resubmit) {
        struct packet *again = passes < MAX_PASSES ? copy_room(runtime) : NULL;
        if (!again) {
            cut_off(runtime, packet);
            return;
        }
        begin_again(again, packet, packet->data, packet->length, requests.resubmit_fields, INSTANCE_RESUBMITTED);
        run_ingress(again, passes + 1);
        runtime->copies_used--;
        return;
    }
    packet->requests = (struct requests){.truncate = requests.truncate};
    uint32_t group = packet->h.standard_metadata.mcast_grp;
    uint32_t port = packet->h.standard_metadata.egress_spec;
    if (group) {
        packet->h.standard_metadata.instance_type = INSTANCE_REPLICATED;
        replicate(packet, runtime->groups[group % MAX_GROUPS], passes);
    } else if (port != runtime->drop_port) {
        packet->h.standard_metadata.instance_type = INSTANCE_NORMAL;
        run_egress(packet, port, 0, passes);
    } else {
        TRACE_POINT(packet, TRACE_DROP, DROPPED_INGRESS);
    }
}

static void run_ingress(struct packet *packet, int passes) {
    TRACE_EVENT(packet, TRACE_INGRESS, (uint32_t)packet->h.standard_metadata.ingress_port,
                packet->h.standard_metadata.instance_type, packet->length);
    ingress_pass(packet, passes);
    TRACE_POINT(packet, TRACE_END, 0);
}

/* Processes one packet. All its results are in the outputs afterwards. */
static void process_packet(struct state *state, uint32_t port, const uint8_t *data, uint32_t length) {
    struct runtime *runtime = &state->runtime;
    if (port < MAX_PORTS) runtime->counts[port].received++;
    runtime->steps_left = MAX_STEPS;
    runtime->was_cut_off = 0;
    runtime->came_by = port;
    runtime->copies_used = 0;
    struct packet *packet = length <= MAX_FRAME ? copy_room(runtime) : NULL;
    if (!packet) {
        if (port < MAX_PORTS) runtime->counts[port].dropped++;
        return;
    }
    STAGE(&state->runtime, STAGE_PARSE);
    TRACED(trace_begin(runtime, port, data, length);)
    TRACED(capture_packet(runtime, port, data, length, CAPTURE_IN);)
    begin_packet(packet, state, port, data, length);
    run_ingress(packet, 0);
    TRACED(trace_end(runtime);)
    STAGE(&state->runtime, STAGE_OUTSIDE);
}

#endif
