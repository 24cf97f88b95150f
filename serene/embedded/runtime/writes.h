/* Decodes and performs the plain updates of P4Runtime's WriteRequest. A plain update is an INSERT, MODIFY or DELETE of
 * a table entry with a match and an action, which the table accepts. Each field of its message occurs at most once. For
 * any other update, and if one fails, nothing changes here, and Python performs it
 * (serene/embedded/p4runtime/entities.py). So this file has no error messages, and its effect has to be the same as
 * Python's.
 *
 * https://protobuf.dev/programming-guides/encoding, and p4/v1/p4runtime.proto for the numbers of the fields.
 */
#ifndef SERENE_WRITES_H
#define SERENE_WRITES_H

enum { MOST_GIVEN = 64 };        /* most match fields, and most parameters, of a plain update */
enum { UPDATES_AT_ONCE = 64 };   /* before packets are processed again */
enum { MOST_ENTRY_LIMBS = 1024 };        /* of key, mask and data, for plain updates */
enum update_type { UPDATE_INSERT = 1, UPDATE_MODIFY = 2, UPDATE_DELETE = 3 };

/* Match types, by their field numbers in p4.v1.FieldMatch. */
enum match_kind { MATCH_EXACT = 2, MATCH_TERNARY = 3, MATCH_LPM = 4, MATCH_RANGE = 6, MATCH_OPTIONAL = 7 };

/* Tables of the P4Info for which updates may be plain, as p4runtime/plain.py writes them. `at`: the first limb. */
struct plain_field {
    uint32_t id, kind, width, at;
};

struct plain_param {
    uint32_t id, width, at;
};

struct plain_action {
    uint32_t id, action, param_count, first_param;
};

struct plain_table {
    uint32_t id, table, needs_priority, field_count, first_field, action_count, first_action;
};

struct plain_tables {
    uint32_t count;
    const struct plain_table *tables;
    const struct plain_field *fields;
    const struct plain_action *actions;
    const struct plain_param *params;
};

/* -- the encoding ------------------------------------------------------------------------------------------- */

struct wire {
    const uint8_t *at, *end;
};

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct wire_field {
    uint32_t number, type;
    uint64_t value;              /* of a WIRE_VARINT */
    struct wire bytes;           /* of WIRE_BYTES */
};

static int wire_varint(struct wire *wire, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (wire->at == wire->end) return 0;
        uint8_t byte = *wire->at++;
        if (shift == 63 && byte > 1) return 0;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return 1;
    }
    return 0;
}

/* Reads the next field. Returns 0 if it is malformed. */
static int wire_next(struct wire *wire, struct wire_field *field) {
    uint64_t tag, length = 0;
    if (!wire_varint(wire, &tag) || tag > UINT32_MAX || tag < 8) return 0;
    *field = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = tag & 7};
    switch (field->type) {
    case WIRE_VARINT: return wire_varint(wire, &field->value);
    case WIRE_64: length = 8; break;
    case WIRE_32: length = 4; break;
    case WIRE_BYTES:
        if (!wire_varint(wire, &length)) return 0;
        break;
    default: return 0;
    }
    if (length > (uint64_t)(wire->end - wire->at)) return 0;
    field->bytes = (struct wire){wire->at, wire->at + length};
    wire->at += length;
    return 1;
}

/* As wire_next, for messages whose field numbers are at most 31. Fields may occur only once, except those in
 * `repeated`. */
static int wire_next_once(struct wire *wire, struct wire_field *field, uint32_t *seen, uint32_t repeated) {
    if (!wire_next(wire, field) || field->number > 31) return 0;
    uint32_t bit = 1u << field->number;
    if (*seen & bit & ~repeated) return 0;
    *seen |= bit;
    return 1;
}

INLINE int is_number(const struct wire_field *field, uint64_t most) {
    return field->type == WIRE_VARINT && field->value <= most;
}

INLINE int is_bytes(const struct wire_field *field) { return field->type == WIRE_BYTES; }

/* Converts a number's big-endian bytes to limbs. Returns 0 if there are none or they do not fit. */
static int wire_limbs(struct wire bytes, uint32_t width, uint64_t *to) {
    if (bytes.at == bytes.end) return 0;
    while (bytes.at < bytes.end && !*bytes.at) bytes.at++;
    size_t length = (size_t)(bytes.end - bytes.at);
    uint32_t limbs = (width + 63) / 64;
    if (length > (width + 7) / 8) return 0;
    if (length == (width + 7) / 8 && width % 8 && *bytes.at >> width % 8) return 0;
    for (uint32_t i = 0; i < limbs; i++) to[i] = 0;
    for (size_t i = 0; i < length; i++) to[i / 8] |= (uint64_t)bytes.end[-1 - (ptrdiff_t)i] << i % 8 * 8;
    return 1;
}

/* -- an update ---------------------------------------------------------------------------------------------- */

struct given_field {
    uint32_t id, kind, prefix;
    struct wire value, second;   /* value and mask, or low and high */
};

struct given_param {
    uint32_t id;
    struct wire value;
};

struct given {
    uint32_t type, table_id, action_id, field_count, param_count;
    int32_t priority;
    int has_action;
    uint64_t metadata;
    struct given_field fields[MOST_GIVEN];
    struct given_param params[MOST_GIVEN];
};

static int given_match(struct wire wire, struct given_field *given) {
    struct wire_field field, inner = {0};
    uint32_t seen = 0;
    *given = (struct given_field){0};
    while (wire.at < wire.end) {
        if (!wire_next_once(&wire, &field, &seen, 0)) return 0;
        if (field.number == 1 && is_number(&field, UINT32_MAX)) {
            given->id = (uint32_t)field.value;
        } else if (field.number > 1 && is_bytes(&field) && !given->kind) {
            given->kind = field.number;
            inner = field;
        } else {
            return 0;
        }
    }
    if (!given->kind) return 0;
    int second = given->kind == MATCH_TERNARY || given->kind == MATCH_RANGE;
    for (seen = 0; inner.bytes.at < inner.bytes.end;) {
        if (!wire_next_once(&inner.bytes, &field, &seen, 0)) return 0;
        if (field.number == 1 && is_bytes(&field)) given->value = field.bytes;
        else if (field.number == 2 && second && is_bytes(&field)) given->second = field.bytes;
        else if (field.number == 2 && given->kind == MATCH_LPM && is_number(&field, INT32_MAX))
            given->prefix = (uint32_t)field.value;
        else return 0;
    }
    return 1;
}

/* Reads a p4.v1.TableAction that has an action. */
static int given_action(struct wire wire, struct given *given) {
    struct wire_field field;
    uint32_t seen = 0;
    if (!wire_next(&wire, &field) || field.number != 1 || !is_bytes(&field) || wire.at != wire.end) return 0;
    given->has_action = 1;
    for (wire = field.bytes; wire.at < wire.end;) {
        if (!wire_next_once(&wire, &field, &seen, 1u << 4)) return 0;
        if (field.number == 1 && is_number(&field, UINT32_MAX)) {
            given->action_id = (uint32_t)field.value;
        } else if (field.number == 4 && is_bytes(&field) && given->param_count < MOST_GIVEN) {
            struct given_param *param = &given->params[given->param_count++];
            *param = (struct given_param){0};
            struct wire inner = field.bytes;
            for (uint32_t of_param = 0; inner.at < inner.end;) {
                if (!wire_next_once(&inner, &field, &of_param, 0)) return 0;
                if (field.number == 2 && is_number(&field, UINT32_MAX)) param->id = (uint32_t)field.value;
                else if (field.number == 3 && is_bytes(&field)) param->value = field.bytes;
                else return 0;
            }
        } else {
            return 0;
        }
    }
    return 1;
}

static int given_entry(struct wire wire, struct given *given) {
    struct wire_field field;
    uint32_t seen = 0;
    while (wire.at < wire.end) {
        if (!wire_next_once(&wire, &field, &seen, 1u << 2)) return 0;
        switch (field.number) {
        case 1:
            if (!is_number(&field, UINT32_MAX)) return 0;
            given->table_id = (uint32_t)field.value;
            break;
        case 2:
            if (!is_bytes(&field) || given->field_count == MOST_GIVEN
                || !given_match(field.bytes, &given->fields[given->field_count++]))
                return 0;
            break;
        case 3:
            if (!is_bytes(&field) || !given_action(field.bytes, given)) return 0;
            break;
        case 4:
            if (!is_number(&field, INT32_MAX)) return 0;
            given->priority = (int32_t)field.value;
            break;
        case 5:
            if (!is_number(&field, UINT64_MAX)) return 0;
            given->metadata = field.value;
            break;
        default: return 0;
        }
    }
    return 1;
}

/* Whether a p4.v1.Update is plain; `given` then has its contents. */
static int given_update(struct wire wire, struct given *given) {
    struct wire_field field;
    struct wire entry = {0};
    uint32_t seen = 0;
    given->type = given->table_id = given->action_id = given->field_count = given->param_count = 0;
    given->priority = given->has_action = 0;
    given->metadata = 0;
    while (wire.at < wire.end) {
        if (!wire_next_once(&wire, &field, &seen, 0)) return 0;
        if (field.number == 1 && is_number(&field, UPDATE_DELETE)) given->type = (uint32_t)field.value;
        else if (field.number == 2 && is_bytes(&field)) entry = field.bytes;
        else return 0;
    }
    if (!entry.at || !wire_next(&entry, &field) || field.number != 2 || !is_bytes(&field)) return 0;
    return entry.at == entry.end && given_entry(field.bytes, given);
}

/* Writes a match field's key and mask, or a range's low and high. Returns 0 if P4Runtime does not allow them. */
static int field_limbs(const struct plain_field *field, const struct given_field *given, uint64_t *key,
                       uint64_t *mask, int32_t *bits) {
    uint32_t limbs = (field->width + 63) / 64, width = field->width;
    if (given && given->kind != field->kind) return 0;
    if (!given && field->kind == MATCH_EXACT) return 0;
    for (uint32_t i = 0; i < limbs; i++) key[i] = mask[i] = 0;
    if (!given) {
        if (field->kind == MATCH_RANGE) mask[0] = MASK(width);
        return 1;
    }
    if (!wire_limbs(given->value, width, key)) return 0;
    if (field->kind == MATCH_RANGE)
        return wire_limbs(given->second, width, mask) && key[0] <= mask[0] && (key[0] || mask[0] != MASK(width));
    if (field->kind == MATCH_TERNARY) {
        uint64_t any = 0, beyond = 0;
        if (!wire_limbs(given->second, width, mask)) return 0;
        for (uint32_t i = 0; i < limbs; i++) {
            any |= mask[i];
            beyond |= key[i] & ~mask[i];
        }
        return any && !beyond;
    }
    uint32_t low = 0;            /* bits that are not in the mask */
    if (field->kind == MATCH_LPM) {
        if (!given->prefix || given->prefix > width) return 0;
        low = width - given->prefix;
        *bits += (int32_t)given->prefix;
    }
    for (uint32_t i = 0; i < limbs; i++) {
        uint32_t from = 64 * i, wide = width - from < 64 ? width - from : 64;
        mask[i] = MASK(wide);
        if (low > from) mask[i] &= low - from >= 64 ? 0 : ~0ull << (low - from);
        if (key[i] & ~mask[i]) return 0;
    }
    return 1;
}

static int match_limbs(const struct plain_tables *plain, const struct plain_table *table, const struct given *given,
                       uint64_t *key, uint64_t *mask, int32_t *bits) {
    uint32_t found = 0;
    *bits = 0;
    for (uint32_t i = 0; i < table->field_count; i++) {
        const struct plain_field *field = &plain->fields[table->first_field + i];
        const struct given_field *one = NULL;
        for (uint32_t j = 0; j < given->field_count; j++) {
            if (given->fields[j].id != field->id) continue;
            if (one) return 0;
            one = &given->fields[j];
        }
        found += one != NULL;
        if (!field_limbs(field, one, key + field->at, mask + field->at, bits)) return 0;
    }
    return found == given->field_count;
}

/* Writes the action's parameters. Returns the engine's number of the action, or NO_ACTION. */
static uint32_t action_limbs(const struct plain_tables *plain, const struct plain_table *table,
                             const struct given *given, uint64_t *data, int data_limbs) {
    for (uint32_t i = 0; i < table->action_count; i++) {
        const struct plain_action *action = &plain->actions[table->first_action + i];
        if (action->id != given->action_id) continue;
        if (action->param_count != given->param_count) return NO_ACTION;
        memset(data, 0, (size_t)data_limbs * 8);
        for (uint32_t j = 0; j < action->param_count; j++) {
            const struct plain_param *param = &plain->params[action->first_param + j];
            uint32_t at = 0;
            while (at < given->param_count && given->params[at].id != param->id) at++;
            if (at == given->param_count || !wire_limbs(given->params[at].value, param->width, data + param->at))
                return NO_ACTION;
        }
        return action->action;
    }
    return NO_ACTION;
}

/* Performs a plain update. Returns 0 if it is not plain, or fails. `limbs`: room for data and twice the longest key. */
static int make_update(struct state *state, const struct plain_tables *plain, struct wire wire, struct given *given,
                       uint64_t *limbs) {
    if (!given_update(wire, given)) return 0;
    const struct plain_table *info = NULL;
    for (uint32_t i = 0; i < plain->count && !info; i++)
        if (plain->tables[i].id == given->table_id) info = &plain->tables[i];
    if (!info || (given->priority > 0) != info->needs_priority) return 0;
    struct table *table = &state->tables[info->table];
    uint64_t *key = limbs, *mask = key + table->key_limbs, *data = mask + table->key_limbs;
    int32_t rank;
    if (!match_limbs(plain, info, given, key, mask, &rank)) return 0;
    rank = table->kind == TABLE_TERNARY ? given->priority : table->kind == TABLE_LPM ? rank : 0;
    uint32_t action = NO_ACTION;
    if (given->type != UPDATE_DELETE) {
        if (given->has_action) action = action_limbs(plain, info, given, data, table->data_limbs);
        if (action == NO_ACTION) return 0;
    }
    int handle;
    switch (given->type) {
    case UPDATE_INSERT:
        handle = table_insert(table, key, mask, rank, action, data);
        break;
    case UPDATE_MODIFY:
    case UPDATE_DELETE:
        handle = table_find(table, key, mask, rank);
        if (handle < 0 || table->entries[handle].noted) return 0;
        if (given->type == UPDATE_DELETE) return table_remove(table, (uint32_t)handle) == 0;
        table_change(table, (uint32_t)handle, action, data);
        break;
    default: return 0;
    }
    if (handle < 0) return 0;
    table->entries[handle].metadata = given->metadata;
    return 1;
}

struct write_place {
    size_t byte;                 /* of the message */
    uint32_t update;
};

/* Performs the updates of a WriteRequest from `place` on, in order, up to one that is not plain. Returns that update's
 * number, and `place` is then after it. -1: there are no more updates. -2: the message is malformed from `place` on. */
EXPORT int switch_write(struct state *state, const struct plain_tables *plain, const uint8_t *data, size_t length,
                        struct write_place *place) {
    uint64_t limbs[MOST_ENTRY_LIMBS];
    struct given given;
    struct wire wire = {data + place->byte, data + length};
    int result = -1;
    lock_for_control(&state->runtime);
    for (uint32_t done = 0; wire.at < wire.end && result == -1;) {
        struct wire_field field;
        if (!wire_next(&wire, &field)) {
            result = -2;
            break;
        }
        if (field.number == 4 && field.type == WIRE_BYTES) {
            if (!make_update(state, plain, field.bytes, &given, limbs)) result = (int)place->update;
            place->update++;
            if (++done % UPDATES_AT_ONCE == 0) {
                pthread_mutex_unlock(&state->runtime.lock);
                lock_for_control(&state->runtime);
            }
        }
        place->byte = (size_t)(wire.at - data);
    }
    pthread_mutex_unlock(&state->runtime.lock);
    return result;
}

#endif
