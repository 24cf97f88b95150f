/* Encodes table entries for P4Runtime. This is the counterpart of writes.h, for the same tables. */
#ifndef SERENE_READS_H
#define SERENE_READS_H

struct buffer {
    uint8_t *bytes;
    size_t used, size;           /* `used` also counts bytes beyond `size`, which are not written */
};

static void put_byte(struct buffer *to, uint8_t byte) {
    if (to->used < to->size) to->bytes[to->used] = byte;
    to->used++;
}

static void put_varint(struct buffer *to, uint64_t value) {
    for (; value >= 0x80; value >>= 7) put_byte(to, (uint8_t)(value | 0x80));
    put_byte(to, (uint8_t)value);
}

/* Writes a number that is not 0 as a field. */
static void put_number(struct buffer *to, uint32_t field, uint64_t value) {
    if (!value) return;
    put_varint(to, field << 3 | WIRE_VARINT);
    put_varint(to, value);
}

static uint32_t bytes_of(const uint64_t *limbs, uint32_t count) {
    while (count > 1 && !limbs[count - 1]) count--;
    uint64_t top = limbs[count - 1];
    return top ? 8 * count - (uint32_t)__builtin_clzll(top) / 8 : 8 * (count - 1) + 1;
}

/* Writes a number as a field, in big-endian bytes without leading zeros. */
static void put_limbs(struct buffer *to, uint32_t field, const uint64_t *limbs, uint32_t width) {
    uint32_t length = bytes_of(limbs, (width + 63) / 64);
    put_varint(to, field << 3 | WIRE_BYTES);
    put_varint(to, length);
    while (length--) put_byte(to, (uint8_t)(limbs[length / 8] >> length % 8 * 8));
}

/* Begins a message of at most 16,383 bytes as a field. Returns its offset. */
static size_t put_begin(struct buffer *to, uint32_t field) {
    put_varint(to, field << 3 | WIRE_BYTES);
    to->used += 2;
    return to->used;
}

/* Ends the message. Returns 0 if it is too long. */
static int put_end(struct buffer *to, size_t begun) {
    size_t length = to->used - begun;
    if (length > 0x3fff) return 0;
    if (begun <= to->size) {
        to->bytes[begun - 2] = (uint8_t)(length | 0x80);
        to->bytes[begun - 1] = (uint8_t)(length >> 7);
    }
    return 1;
}

static int put_match(struct buffer *to, const struct plain_field *field, const uint64_t *key, const uint64_t *mask) {
    uint32_t limbs = (field->width + 63) / 64, bits = 0;
    uint64_t any = 0;
    for (uint32_t i = 0; i < limbs; i++) {
        any |= mask[i];
        bits += (uint32_t)__builtin_popcountll(mask[i]);
    }
    if (field->kind == MATCH_RANGE ? !key[0] && mask[0] == MASK(field->width) : field->kind != MATCH_EXACT && !any)
        return 1;                /* the field matches any value */
    size_t match = put_begin(to, 2);
    put_number(to, 1, field->id);
    size_t kind = put_begin(to, field->kind);
    put_limbs(to, 1, key, field->width);
    if (field->kind == MATCH_TERNARY || field->kind == MATCH_RANGE) put_limbs(to, 2, mask, field->width);
    if (field->kind == MATCH_LPM) put_number(to, 2, bits);
    return put_end(to, kind) && put_end(to, match);
}

/* Writes a plain entry as an entity of a ReadResponse. Returns 0 if that is not possible. */
static int put_entry(struct buffer *to, const struct plain_tables *plain, const struct plain_table *info,
                     const struct table *table, uint32_t index, uint64_t *mask) {
    const struct entry *entry = &table->entries[index];
    const struct plain_action *action = NULL;
    for (uint32_t i = 0; i < info->action_count && !action; i++)
        if (plain->actions[info->first_action + i].action == entry->action)
            action = &plain->actions[info->first_action + i];
    if (entry->noted || !action) return 0;
    for (int i = 0; i < table->key_limbs; i++) mask[i] = entry_mask(table, index, i);
    int fits = 1;
    size_t entity = put_begin(to, 1), whole = put_begin(to, 2);
    put_number(to, 1, info->id);
    for (uint32_t i = 0; i < info->field_count; i++) {
        const struct plain_field *field = &plain->fields[info->first_field + i];
        fits &= put_match(to, field, entry_key(table, index) + field->at, mask + field->at);
    }
    size_t both = put_begin(to, 3), one = put_begin(to, 1);
    put_number(to, 1, action->id);
    for (uint32_t i = 0; i < action->param_count; i++) {
        const struct plain_param *held = &plain->params[action->first_param + i];
        size_t param = put_begin(to, 4);
        put_number(to, 2, held->id);
        put_limbs(to, 3, table_data(table, entry) + held->at, held->width);
        fits &= put_end(to, param);
    }
    fits &= put_end(to, one) & put_end(to, both);
    if (info->needs_priority) put_number(to, 4, (uint64_t)(int64_t)entry->rank);
    put_number(to, 5, entry->metadata);
    return fits & put_end(to, whole) & put_end(to, entity);
}

/* Writes entries of the P4Info's table `id`, from handle *from on, as entities of a ReadResponse. It stops after `most`
 * entries, when `bytes` is full, or at an entry that Python has to write. *from is then the handle of that entry, or
 * the one after the last. *count is their number. Returns the number of bytes, which is 0 for a table that is not
 * plain. */
EXPORT size_t switch_read(struct state *state, const struct plain_tables *plain, uint32_t id, uint32_t *from,
                          uint32_t most, uint8_t *bytes, size_t size, uint32_t *count) {
    struct buffer to = {bytes, 0, size};
    uint64_t mask[MOST_ENTRY_LIMBS];
    const struct plain_table *info = NULL;
    for (uint32_t i = 0; i < plain->count && !info; i++)
        if (plain->tables[i].id == id) info = &plain->tables[i];
    *count = 0;
    if (!info) return 0;
    const struct table *table = &state->tables[info->table];
    lock_for_control(&state->runtime);
    for (; *from < table->fresh && *count < most; (*from)++) {
        if (!table->entries[*from].used) continue;
        size_t before = to.used;
        if (!put_entry(&to, plain, info, table, *from, mask) || to.used > size) {
            to.used = before;
            break;
        }
        (*count)++;
    }
    pthread_mutex_unlock(&state->runtime.lock);
    return to.used;
}

#endif
