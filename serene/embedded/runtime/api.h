/* The functions of the shared library for Python (serene/embedded/engine.py). They take the lock themselves. */
#ifndef SERENE_API_H
#define SERENE_API_H

EXPORT void switch_destroy(struct state *state);

EXPORT struct state *switch_create(int cpu_port, uint32_t drop_port, uint64_t seed) {
    struct state *state = calloc(1, sizeof *state);
    if (!state) return NULL;
    struct runtime *runtime = &state->runtime;
    runtime->cpu_port = cpu_port;
    runtime->drop_port = drop_port;
    runtime->random = seed * 2 + 1;
    runtime->started_ns = now_ns();
    runtime->cpu.bytes = malloc(RING_BYTES);
    runtime->digests.bytes = malloc(RING_BYTES);
    pthread_mutex_init(&runtime->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&runtime->events, &attributes);
    if (ports_init(runtime) || !runtime->cpu.bytes || !runtime->digests.bytes || !state_init(state)) {
        switch_destroy(state);
        return NULL;
    }
    return state;
}

EXPORT int switch_start(struct state *state) {
    struct ports *ports = ports_of(&state->runtime);
    if (ports->running) return 0;
    ports->running = 1;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = pthread_create(&ports->thread, &attributes, ports_thread, state);
    pthread_attr_destroy(&attributes);
    if (error) ports->running = 0;
    return -error;
}

EXPORT void switch_stop(struct state *state) {
    struct ports *ports = ports_of(&state->runtime);
    if (!ports->running) return;
    ports->running = 0;
    ports_wake(&state->runtime);
    pthread_join(ports->thread, NULL);
}

EXPORT int switch_port_remove(struct state *state, uint32_t number) {
    struct runtime *runtime = &state->runtime;
    int removed = 0;
    lock_for_control(runtime);
    for (struct port **link = &ports_of(runtime)->first; *link;) {
        struct port *port = *link;
        if (port->number == number) {
            *link = port->next;
            port_close(port);
            removed++;
        } else {
            link = &port->next;
        }
    }
    pthread_mutex_unlock(&runtime->lock);
    ports_wake(runtime);
    return removed;
}

EXPORT void switch_destroy(struct state *state) {
    struct runtime *runtime = &state->runtime;
    struct ports *ports = ports_of(runtime);
    if (ports) {
        switch_stop(state);
        while (ports->first) switch_port_remove(state, ports->first->number);
        if (ports->wake >= 0) close(ports->wake);
        free(ports->frames);
        free(ports->next);
        free(ports->injected.bytes);
        free(ports);
    }
    state_free(state);
    free(runtime->trace);
    for (int i = 0; i < MAX_GROUPS; i++) free(runtime->groups[i]);
    for (int i = 0; i < MAX_SESSIONS; i++) free(runtime->sessions[i]);
    free(runtime->loops);
    for (int i = 0; i < MAX_COPIES; i++) free(runtime->copies[i]);
    free(runtime->outputs.bytes);
    free(runtime->outputs.items);
    free(runtime->cpu.bytes);
    free(runtime->digests.bytes);
    free(state);
}

EXPORT int switch_port_interface(struct state *state, uint32_t number, const char *interface, int joins) {
    lock_for_control(&state->runtime);
    int error = port_open_interface(&state->runtime, number, interface, joins);
    pthread_mutex_unlock(&state->runtime.lock);
    ports_wake(&state->runtime);
    return error;
}

EXPORT int switch_port_udp(struct state *state, uint32_t number, const char *host, uint16_t port,
                           const char *peer_host, uint16_t peer_port) {
    lock_for_control(&state->runtime);
    int error = port_open_udp(&state->runtime, number, host, port, peer_host, peer_port);
    pthread_mutex_unlock(&state->runtime.lock);
    ports_wake(&state->runtime);
    return error;
}

EXPORT int switch_port_shm(struct state *state, uint32_t number, const char *path) {
    lock_for_control(&state->runtime);
    int error = port_open_shm(&state->runtime, number, path);
    pthread_mutex_unlock(&state->runtime.lock);
    ports_wake(&state->runtime);
    return error;
}

EXPORT void switch_port_counts(struct state *state, uint32_t number, struct port_counts *counts) {
    *counts = state->runtime.counts[number];
}

/* Processes `count` packets, which are end to end in `data`. The outputs stay valid until the next call. `until[i]` is
 * their number after packet i. */
EXPORT void switch_process(struct state *state, uint32_t count, const uint32_t *ports, const uint32_t *lengths,
                           const uint8_t *data, uint32_t *until) {
    lock_for_control(&state->runtime);
    STAGE(&state->runtime, STAGE_OUTSIDE);
    outputs_clear(&state->runtime.outputs);
    for (uint32_t i = 0; i < count; i++) {
        process_packet(state, ports[i], data, lengths[i]);
        data += lengths[i];
        until[i] = state->runtime.outputs.count;
    }
    pthread_mutex_unlock(&state->runtime.lock);
}

EXPORT const struct output *switch_output_items(struct state *state) { return state->runtime.outputs.items; }
EXPORT const uint8_t *switch_output_bytes(struct state *state) { return state->runtime.outputs.bytes; }

EXPORT void switch_inject(struct state *state, const uint8_t *data, uint32_t length) {
    lock_for_control(&state->runtime);
    ring_push(&ports_of(&state->runtime)->injected, "", 0, data, length);
    pthread_mutex_unlock(&state->runtime.lock);
    ports_wake(&state->runtime);
}

static struct timespec later(int timeout_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000l;
    if (until.tv_nsec >= 1000000000l) {
        until.tv_nsec -= 1000000000l;
        until.tv_sec++;
    }
    return until;
}

/* Moves the waiting records into the two buffers (RING_BYTES each). Waits up to `timeout_ms` for the first record. */
EXPORT void switch_events(struct state *state, int timeout_ms, uint8_t *cpu, size_t *cpu_used, uint8_t *digests,
                          size_t *digests_used) {
    struct runtime *runtime = &state->runtime;
    struct timespec until = later(timeout_ms);
    lock_for_control(runtime);
    while (!runtime->cpu.used && !runtime->digests.used)
        if (pthread_cond_timedwait(&runtime->events, &runtime->lock, &until)) break;
    memcpy(cpu, runtime->cpu.bytes, *cpu_used = runtime->cpu.used);
    memcpy(digests, runtime->digests.bytes, *digests_used = runtime->digests.used);
    runtime->cpu.used = runtime->digests.used = 0;
    pthread_mutex_unlock(&runtime->lock);
}

EXPORT int switch_table_insert(struct state *state, uint32_t table, const uint64_t *key, const uint64_t *mask,
                               int32_t rank, uint32_t action, const uint64_t *data) {
    lock_for_control(&state->runtime);
    int handle = table_insert(&state->tables[table], key, mask, rank, action, data);
    pthread_mutex_unlock(&state->runtime.lock);
    return handle;
}

EXPORT int switch_table_change(struct state *state, uint32_t table, uint32_t handle, uint32_t action,
                               const uint64_t *data) {
    lock_for_control(&state->runtime);
    int error = table_change(&state->tables[table], handle, action, data);
    pthread_mutex_unlock(&state->runtime.lock);
    return error;
}

EXPORT int switch_table_remove(struct state *state, uint32_t table, uint32_t handle) {
    lock_for_control(&state->runtime);
    int error = table_remove(&state->tables[table], handle);
    pthread_mutex_unlock(&state->runtime.lock);
    return error;
}

/* The handle of the entry with exactly this match and rank, or TABLE_NO_ENTRY. */
EXPORT int switch_table_find(struct state *state, uint32_t table, const uint64_t *key, const uint64_t *mask,
                             int32_t rank) {
    lock_for_control(&state->runtime);
    int handle = table_find(&state->tables[table], key, mask, rank);
    pthread_mutex_unlock(&state->runtime.lock);
    return handle;
}

/* Sets an entry's metadata (the controller's number), and whether Python stores more about it (writes.h). */
EXPORT int switch_table_notes(struct state *state, uint32_t table, uint32_t handle, uint64_t metadata, int noted) {
    struct table *at = &state->tables[table];
    lock_for_control(&state->runtime);
    int error = handle >= at->size || !at->entries[handle].used ? TABLE_NO_ENTRY : 0;
    if (!error) {
        at->entries[handle].metadata = metadata;
        at->entries[handle].noted = (uint8_t)noted;
    }
    pthread_mutex_unlock(&state->runtime.lock);
    return error;
}

struct row {
    uint32_t handle, action;
    int32_t rank;
    uint32_t noted;
    uint64_t metadata, packets, bytes;
};

/* Reads at most `most` entries from handle `from` on. `limbs` gets each entry's limbs of key, mask and data. Returns
 * their number, which is less than `most` only at the table's end. */
EXPORT uint32_t switch_table_rows(struct state *state, uint32_t table, uint32_t from, uint32_t most, struct row *rows,
                                  uint64_t *limbs) {
    struct table *at = &state->tables[table];
    uint32_t count = 0;
    lock_for_control(&state->runtime);
    for (uint32_t i = from; i < at->fresh && count < most; i++) {
        const struct entry *entry = &at->entries[i];
        if (!entry->used) continue;
        rows[count++] = (struct row){i, entry->action, entry->rank, entry->noted,
                                     entry->metadata, entry->packets, entry->bytes};
        memcpy(limbs, entry_key(at, i), (size_t)at->key_limbs * 8);
        limbs += at->key_limbs;
        for (int j = 0; j < at->key_limbs; j++) *limbs++ = entry_mask(at, i, j);
        memcpy(limbs, table_data(at, entry), (size_t)at->data_limbs * 8);
        limbs += at->data_limbs;
    }
    pthread_mutex_unlock(&state->runtime.lock);
    return count;
}

/* Whether each entry was hit since the last call: a byte for each handle. Returns the number of handles that were ever
 * used. */
EXPORT uint32_t switch_table_touched(struct state *state, uint32_t table, uint8_t *touched) {
    struct table *at = &state->tables[table];
    lock_for_control(&state->runtime);
    uint32_t fresh = at->fresh;
    for (uint32_t i = 0; i < fresh; i++) {
        touched[i] = at->entries[i].touched;
        at->entries[i].touched = 0;
    }
    pthread_mutex_unlock(&state->runtime.lock);
    return fresh;
}

EXPORT void switch_table_default(struct state *state, uint32_t table, uint32_t action, const uint64_t *data) {
    lock_for_control(&state->runtime);
    state->tables[table].standard.action = action;
    memcpy(state->tables[table].standard_data, data, state->tables[table].data_limbs * 8);
    pthread_mutex_unlock(&state->runtime.lock);
}

/* Reads (set 0) or writes a table entry's direct counter. Handle -1 means the default entry. */
EXPORT int switch_direct_count(struct state *state, uint32_t table, int handle, int set, struct count *count) {
    struct table *at = &state->tables[table];
    if (handle >= 0 && ((uint32_t)handle >= at->size || !at->entries[handle].used)) return TABLE_NO_ENTRY;
    struct entry *entry = handle < 0 ? &at->standard : &at->entries[handle];
    lock_for_control(&state->runtime);
    if (set) {
        entry->packets = count->packets;
        entry->bytes = count->bytes;
    } else {
        *count = (struct count){entry->packets, entry->bytes};
    }
    pthread_mutex_unlock(&state->runtime.lock);
    return 0;
}

/* Reads a counter's cells (set 0), sets all to one value (1), or each to its own value (2). */
EXPORT void switch_count(struct state *state, uint32_t counter, uint32_t index, uint32_t number, int set,
                         struct count *counts) {
    struct count *items = state->counters[counter].items + index;
    lock_for_control(&state->runtime);
    if (set == 1)
        for (uint32_t i = 0; i < number; i++) items[i] = *counts;
    else if (set)
        memcpy(items, counts, number * sizeof *items);
    else
        memcpy(counts, items, number * sizeof *items);
    pthread_mutex_unlock(&state->runtime.lock);
}

/* set: 0 reads `number` cells, 1 sets all of them to one value, 2 sets each to its own value. */
EXPORT void switch_register(struct state *state, uint32_t which, uint32_t index, uint32_t number, int set,
                            void *values) {
    struct register_array *array = &state->registers[which];
    uint8_t *item = (uint8_t *)array->items + (size_t)index * array->row_bytes, *value = values;
    lock_for_control(&state->runtime);
    for (uint32_t i = 0; i < number; i++) {
        memcpy(set ? item : value, set ? value : item, array->element_bytes);
        item += array->row_bytes;
        if (set != 1) value += array->element_bytes;
    }
    pthread_mutex_unlock(&state->runtime.lock);
}

/* Configures `number` cells of a meter with the same rates. */
EXPORT void switch_meter(struct state *state, uint32_t which, uint32_t index, uint32_t number, const double *rates,
                         const double *bursts) {
    lock_for_control(&state->runtime);
    struct meter meter = {.configured = rates != NULL, .last_us = (now_ns() - state->runtime.started_ns) / 1000};
    for (int i = 0; rates && i < 2; i++) {
        meter.rate[i] = rates[i];
        meter.burst[i] = meter.tokens[i] = bursts[i];
    }
    for (uint32_t i = 0; i < number; i++) state->meters[which].items[index + i] = meter;
    pthread_mutex_unlock(&state->runtime.lock);
}

/* Sets a member of an action profile, or (data NULL) removes it. */
EXPORT void switch_member(struct state *state, uint32_t which, uint32_t number, uint32_t action, const uint64_t *data) {
    struct profile *profile = &state->action_profiles[which];
    lock_for_control(&state->runtime);
    profile->members[number].used = data != NULL;
    profile->members[number].action = action;
    if (data) memcpy(profile->members[number].data, data, profile->data_limbs * 8);
    pthread_mutex_unlock(&state->runtime.lock);
}

/* Replaces a value set's values. There have to be at most as many as it has room for. */
EXPORT void switch_value_set(struct state *state, uint32_t which, const uint64_t *values, uint32_t count) {
    struct table *set = state->value_sets[which];
    lock_for_control(&state->runtime);
    for (uint32_t i = 0; i < set->size; i++)
        if (set->entries[i].used) table_remove(set, i);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t *value = values + (size_t)i * set->key_limbs;
        table_insert(set, value, value, 0, 0, value);
    }
    pthread_mutex_unlock(&state->runtime.lock);
}

/* Sets a group's `count` members, in this order; `count` -1 removes the group. Returns 0 on success. */
EXPORT int switch_group(struct state *state, uint32_t which, uint32_t number, const uint32_t *members, int count) {
    struct group *group = &state->action_profiles[which].groups[number];
    uint32_t *copy = count > 0 ? malloc((size_t)count * sizeof *copy) : NULL;
    if (count > 0 && !copy) return -1;
    if (count > 0) memcpy(copy, members, (size_t)count * sizeof *copy);
    lock_for_control(&state->runtime);
    free(group->members);
    *group = (struct group){.used = count >= 0, .count = count > 0 ? (uint32_t)count : 0, .members = copy};
    pthread_mutex_unlock(&state->runtime.lock);
    return 0;
}

#ifdef TRACE
/* From now on, records packets that arrive at these ports (NULL: none), with at most `bytes` of their bytes. Unread
 * records stay if packets were recorded before. Returns -1 if there is not enough memory. */
EXPORT int switch_trace(struct state *state, const uint8_t *ports, uint32_t bytes) {
    struct runtime *runtime = &state->runtime;
    lock_for_control(runtime);
    if (!runtime->trace) runtime->trace = calloc(1, sizeof *runtime->trace);
    struct trace *trace = runtime->trace;
    if (trace) {
        if (!trace->active || !ports) trace->used = trace->lost = 0;
        trace->active = ports != NULL;
        trace->bytes = bytes;
        if (ports) memcpy(trace->ports, ports, sizeof trace->ports);
    }
    pthread_mutex_unlock(&runtime->lock);
    return trace ? 0 : -1;
}

/* Moves the waiting records into `words` (TRACE_RING_WORDS), and counts the packets that were lost since the last call.
 * Waits up to `timeout_ms` for the first record. */
EXPORT void switch_trace_read(struct state *state, int timeout_ms, uint64_t *words, size_t *used, uint64_t *lost) {
    struct runtime *runtime = &state->runtime;
    struct trace *trace = runtime->trace;
    struct timespec until = later(timeout_ms);
    lock_for_control(runtime);
    while (!trace->used && timeout_ms)
        if (pthread_cond_timedwait(&runtime->events, &runtime->lock, &until)) break;
    memcpy(words, trace->words, trace->used * sizeof *words);
    *used = trace->used;
    *lost = trace->lost;
    trace->used = trace->lost = 0;
    pthread_mutex_unlock(&runtime->lock);
}

/* From now on, writes the packets that arrive and leave at a port to these files; `further`: appends to them. Returns
 * 0, or a negative errno. */
EXPORT int switch_capture(struct state *state, uint32_t number, const char *in, const char *out, int further) {
    struct capture files[2] = {capture_open(in, further), {0}};
    if (files[0].file) files[1] = capture_open(out, further);
    if (!files[1].file) {
        int error = errno;
        if (files[0].file) fclose(files[0].file);
        return -error;
    }
    lock_for_control(&state->runtime);
    for (struct port *port = ports_of(&state->runtime)->first; port; port = port->next) {
        for (int i = 0; i < 2 && port->number == number; i++) {
            if (port->captures[i].file) fclose(port->captures[i].file);
            port->captures[i] = files[i];
            files[i].file = NULL;
        }
    }
    pthread_mutex_unlock(&state->runtime.lock);
    for (int i = 0; i < 2; i++)
        if (files[i].file) fclose(files[i].file);
    return 0;
}

/* The errno with which the port's captures of arriving and leaving packets have ended since the last call; 0 if a
 * capture has not ended. */
EXPORT void switch_capture_ended(struct state *state, uint32_t number, int *errors) {
    errors[0] = errors[1] = 0;
    lock_for_control(&state->runtime);
    for (struct port *port = ports_of(&state->runtime)->first; port; port = port->next) {
        for (int i = 0; i < 2 && port->number == number; i++) {
            if (port->captures[i].error) errors[i] = port->captures[i].error;
            port->captures[i].error = 0;
        }
    }
    pthread_mutex_unlock(&state->runtime.lock);
}
#endif

#ifdef PROFILE
/* Cycles and visits of each stage since the last call. The arrays have room for MAX_STAGES. */
EXPORT void switch_profile(struct state *state, uint64_t *cycles, uint64_t *entered) {
    struct runtime *runtime = &state->runtime;
    lock_for_control(runtime);
    memcpy(cycles, runtime->stage_cycles, sizeof runtime->stage_cycles);
    memcpy(entered, runtime->stage_entered, sizeof runtime->stage_entered);
    memset(runtime->stage_cycles, 0, sizeof runtime->stage_cycles);
    memset(runtime->stage_entered, 0, sizeof runtime->stage_entered);
    pthread_mutex_unlock(&runtime->lock);
}
#endif

/* kind 0: multicast group, 1: clone session. `count` -1 removes it. Returns 0 on success. */
EXPORT int switch_replicas(struct state *state, int kind, uint32_t id, const uint32_t *pairs, int count,
                           uint32_t truncate) {
    struct runtime *runtime = &state->runtime;
    struct replicas **slot = kind ? &runtime->sessions[id] : &runtime->groups[id];
    int error = 0;
    lock_for_control(runtime);
    if (count < 0) {
        free(*slot);
        *slot = NULL;
    } else {
        error = replicas_set(slot, pairs, (uint32_t)count, truncate);
    }
    pthread_mutex_unlock(&runtime->lock);
    return error;
}

EXPORT void switch_crc(struct state *state, uint32_t which, uint64_t polynomial, uint64_t initial, uint64_t final,
                       int data_reflected, int remainder_reflected) {
    lock_for_control(&state->runtime);
    state->crcs[which] = (struct crc){state->crcs[which].bits, polynomial, initial, final, (uint64_t)data_reflected,
                                      (uint64_t)remainder_reflected};
    pthread_mutex_unlock(&state->runtime.lock);
}

EXPORT uint64_t switch_lost_events(struct state *state) {
    return state->runtime.cpu.lost + state->runtime.digests.lost + ports_of(&state->runtime)->injected.lost;
}

#endif
