/* Creates tables, and writes their entries. */
#ifndef SERENE_TABLE_WRITES_H
#define SERENE_TABLE_WRITES_H

#include "table.h"

static uint32_t power_of_two(uint64_t least, uint32_t most) {
    uint32_t power = 16;
    while (power < least && power < most) power *= 2;
    return power;
}

/* The number of bits of `homes` for a number of slots. Most bits are 0. */
static uint32_t home_bits(uint32_t slots) {
    if (slots < 64) return 64;
    return slots <= CACHED_SLOTS || slots > 1u << 28 ? slots : 4 * slots;
}

static int table_init(struct table *table, enum table_kind kind, uint32_t size, int key_limbs, int data_limbs,
                      const uint8_t *ranges) {
    memset(table, 0, sizeof *table);
    table->kind = kind;
    table->size = size = size ? size : 1;
    table->key_limbs = key_limbs;
    table->data_limbs = data_limbs;
    table->ranges = ranges;
    for (int i = 0; ranges && i < key_limbs; i++) table->ranged |= ranges[i];
    uint32_t buckets = kind == TABLE_EXACT ? 1 : power_of_two(size, MOST_BUCKETS);
    size_t limbs = key_limbs ? (size_t)key_limbs : 1;
    table->slot_mask = FIRST_SLOTS - 1;
    table->home_mask = home_bits(FIRST_SLOTS) - 1;
    table->bucket_mask = buckets - 1;
    table->entries = calloc(size, sizeof *table->entries);
    table->keys = calloc(size * limbs, 8);
    table->highs = table->ranged ? calloc(size * limbs, 8) : NULL;
    table->data = calloc((size_t)size * (data_limbs ? data_limbs : 1), 8);
    table->standard_data = calloc(data_limbs ? data_limbs : 1, 8);
    table->slots = calloc(FIRST_SLOTS, sizeof *table->slots);
    table->homes = calloc(home_bits(FIRST_SLOTS) / 64, 8);
    table->buckets = calloc(buckets, sizeof *table->buckets);
    table->scratch = calloc(limbs, 8);
    table->standard.action = NO_ACTION;
    return table->entries && table->keys && (table->highs || !table->ranged) && table->data && table->standard_data
           && table->slots && table->homes && table->buckets && table->scratch;
}

static void group_free(struct table_group *group) {
    free(group->heap);
    free(group);
}

static void table_free(struct table *table) {
    for (uint32_t i = 0; i < table->group_count; i++) group_free(table->groups[i]);
    free(table->groups);
    free(table->buckets);
    free(table->entries);
    free(table->keys);
    free(table->highs);
    free(table->data);
    free(table->standard_data);
    free(table->slots);
    free(table->homes);
    free(table->scratch);
}

/* -- groups ------------------------------------------------------------------------------------------------- */

/* Writes the mask of the group for entries with these masks or ranges. */
static void group_mask(const struct table *table, const uint64_t *key, const uint64_t *mask, uint64_t *to) {
    for (int i = 0; i < table->key_limbs; i++)
        to[i] = table->kind == TABLE_EXACT ? ~0ull
                : table->ranged && table->ranges[i] ? (key[i] == mask[i] ? ~0ull : 0)
                : mask[i];
}

static struct table_group **group_bucket(const struct table *table, const uint64_t *mask) {
    uint64_t hash = hash_seed(1);
    for (int i = 0; i < table->key_limbs; i++) hash = hash_step(hash, mask[i]);
    return &table->buckets[hash & table->bucket_mask];
}

static struct table_group *group_find(const struct table *table, const uint64_t *mask) {
    struct table_group *group = *group_bucket(table, mask);
    while (group && memcmp(group->mask, mask, (size_t)table->key_limbs * 8)) group = group->next;
    return group;
}

/* Moves a group to its position among the others after its largest rank has changed. */
static void group_place(struct table *table, struct table_group *group) {
    struct table_group **groups = table->groups;
    uint32_t from = group->place, low = 0, high = table->group_count - 1;
    if ((!from || groups[from - 1]->top >= group->top) && (from == high || groups[from + 1]->top <= group->top)) return;
    memmove(groups + from, groups + from + 1, (high - from) * sizeof *groups);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (groups[middle]->top >= group->top) low = middle + 1;
        else high = middle;
    }
    memmove(groups + low + 1, groups + low, (table->group_count - 1 - low) * sizeof *groups);
    groups[low] = group;
    uint32_t first = low < from ? low : from, last = low < from ? from : low;
    for (uint32_t i = first; i <= last; i++) groups[i]->place = i;
}

/* Adds an empty group after all others. NULL if there is not enough memory. */
static struct table_group *group_make(struct table *table, const uint64_t *mask) {
    size_t limbs = (size_t)table->key_limbs;
    if (table->group_count == table->group_capacity) {
        uint32_t capacity = table->group_capacity ? 2 * table->group_capacity : 8;
        struct table_group **groups = realloc(table->groups, capacity * sizeof *groups);
        if (!groups) return NULL;
        table->groups = groups;
        table->group_capacity = capacity;
    }
    struct table_group *group = calloc(1, sizeof *group + limbs * (sizeof *group->on + sizeof *group->mask));
    if (!group) return NULL;
    group->mask = (uint64_t *)(group->on + limbs);
    for (uint32_t i = 0; i < limbs; i++) {
        group->mask[i] = mask[i];
        if (mask[i]) group->on[group->on_count++] = (struct masked_limb){.mask = mask[i], .at = i};
    }
    group->seed = hash_seed(table->kind == TABLE_EXACT ? 0 : ++table->seeds);
    group->top = INT32_MIN;
    group->place = table->group_count;
    table->groups[table->group_count++] = group;
    struct table_group **bucket = group_bucket(table, mask);
    group->next = *bucket;
    *bucket = group;
    return group;
}

static void group_remove(struct table *table, struct table_group *group) {
    struct table_group **link = group_bucket(table, group->mask);
    while (*link != group) link = &(*link)->next;
    *link = group->next;
    table->group_count--;
    memmove(table->groups + group->place, table->groups + group->place + 1,
            (table->group_count - group->place) * sizeof *table->groups);
    for (uint32_t i = group->place; i < table->group_count; i++) table->groups[i]->place = i;
    group_free(group);
}

static void heap_put(struct table *table, struct table_group *group, uint32_t place, uint32_t index) {
    group->heap[place] = index;
    table->entries[index].place = place;
}

/* Moves the entry up or down from `place` until the heap is ordered. */
static void heap_sift(struct table *table, struct table_group *group, uint32_t place, uint32_t index) {
    const struct entry *entries = table->entries;
    int32_t rank = entries[index].rank;
    while (place && entries[group->heap[(place - 1) / 2]].rank < rank) {
        heap_put(table, group, place, group->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (uint64_t child; (child = 2 * (uint64_t)place + 1) < group->count; place = (uint32_t)child) {
        if (child + 1 < group->count && entries[group->heap[child + 1]].rank > entries[group->heap[child]].rank) child++;
        if (entries[group->heap[child]].rank <= rank) break;
        heap_put(table, group, place, group->heap[child]);
    }
    heap_put(table, group, place, index);
}

/* Called when a group's number of entries becomes one. */
static void group_only(const struct table *table, struct table_group *group) {
    const uint64_t *key = entry_key(table, group->heap[0]);
    for (uint32_t i = 0; i < group->on_count; i++) group->on[i].only = key[group->on[i].at];
}

static int group_reserve(struct table_group *group) {
    if (group->count < group->capacity) return 1;
    uint32_t capacity = group->capacity ? 2 * group->capacity : 4;
    uint32_t *heap = realloc(group->heap, capacity * sizeof *heap);
    if (!heap) return 0;
    group->heap = heap;
    group->capacity = capacity;
    return 1;
}

/* -- writing ------------------------------------------------------------------------------------------------ */

static int same_ranges(const struct table *table, uint32_t index, const uint64_t *key, const uint64_t *mask) {
    const uint64_t *low = entry_key(table, index), *high = table->ranged ? table->highs + (low - table->keys) : NULL;
    for (int i = 0; high && i < table->key_limbs; i++)
        if (table->ranges[i] && (low[i] != key[i] || high[i] != mask[i])) return 0;
    return 1;
}

/* The entry with exactly this match and rank, index + 1, among those from `at` on; 0: none. */
static uint32_t same_entry(const struct table *table, uint32_t at, const uint64_t *key, const uint64_t *mask,
                           int32_t rank) {
    for (; at && table->entries[at - 1].rank >= rank; at = table->entries[at - 1].next)
        if (table->entries[at - 1].rank == rank && same_ranges(table, at - 1, key, mask)) return at;
    return 0;
}

/* The handle of the entry with exactly this match and rank, or TABLE_NO_ENTRY. */
static int table_find(const struct table *table, const uint64_t *key, const uint64_t *mask, int32_t rank) {
    group_mask(table, key, mask, table->scratch);
    const struct table_group *group = group_find(table, table->scratch);
    if (!group) return TABLE_NO_ENTRY;
    uint32_t at = same_entry(table, group_slot(table, group, key, group_hash(group, key))->head, key, mask, rank);
    return at ? (int)(at - 1) : TABLE_NO_ENTRY;
}

/* Makes room for one more masked key. Returns 0 if there is not enough memory. */
static int slots_reserve(struct table *table) {
    uint32_t mask = table->slot_mask, larger = 2 * mask + 1;
    if (table->count <= mask / (mask < CACHED_SLOTS ? 8 : 2)) return 1;
    struct slot *slots = calloc((size_t)larger + 1, sizeof *slots);
    uint64_t *homes = calloc(home_bits(larger + 1) / 64, 8);
    if (!slots || !homes) {
        free(slots);
        free(homes);
        return 0;
    }
    free(table->homes);
    table->homes = homes;
    table->home_mask = home_bits(larger + 1) - 1;
    for (uint32_t i = 0; i <= mask; i++) {
        uint32_t at = table->slots[i].hash;
        if (!table->slots[i].head) continue;
        *home(table, at) |= home_bit(at);
        while (slots[at & larger].head) at++;
        slots[at & larger] = table->slots[i];
    }
    free(table->slots);
    table->slots = slots;
    table->slot_mask = larger;
    return 1;
}

/* Adds an entry. Returns its handle, or a table_error. Bits of `key` that are not in `mask` have to be 0. */
static int table_insert(struct table *table, const uint64_t *key, const uint64_t *mask, int32_t rank, uint32_t action,
                        const uint64_t *data) {
    size_t limbs = (size_t)table->key_limbs, data_limbs = (size_t)table->data_limbs;
    group_mask(table, key, mask, table->scratch);
    struct table_group *group = group_find(table, table->scratch);
    if (group
        && same_entry(table, group_slot(table, group, key, group_hash(group, key))->head, key, mask, rank))
        return TABLE_DUPLICATE;
    if (table->count == table->size) return TABLE_FULL;
    if (!slots_reserve(table)) return TABLE_NO_MEMORY;
    if (!group && !(group = group_make(table, table->scratch))) return TABLE_NO_MEMORY;
    if (!group_reserve(group)) {
        if (!group->count) group_remove(table, group);
        return TABLE_NO_MEMORY;
    }
    uint32_t index = table->free ? table->free - 1 : table->fresh++;
    struct entry *entry = &table->entries[index];
    if (table->free) table->free = entry->next;
    *entry = (struct entry){.used = 1, .rank = rank, .action = action, .group = group, .age = table->ages++};
    memcpy(table->keys + index * limbs, key, limbs * 8);
    if (table->ranged) memcpy(table->highs + index * limbs, mask, limbs * 8);
    memcpy(table->data + index * data_limbs, data, data_limbs * 8);

    uint64_t hash = group_hash(group, key);
    struct slot *slot = group_slot(table, group, key, hash);
    slot->hash = (uint32_t)hash;
    *home(table, hash) |= home_bit(hash);
    uint32_t *link = &slot->head;
    while (*link && table->entries[*link - 1].rank >= rank) link = &table->entries[*link - 1].next;
    entry->next = *link;
    *link = index + 1;

    group->count++;
    heap_sift(table, group, group->count - 1, index);
    if (group->count == 1) group_only(table, group);
    if (rank > group->top) {
        group->top = rank;
        group_place(table, group);
    }
    table->count++;
    return (int)index;
}

/* Empties a slot. Later slots that would no longer be found move forward. */
static void slot_clear(struct table *table, uint32_t at) {
    uint32_t mask = table->slot_mask;
    for (uint32_t from = (at + 1) & mask; table->slots[from].head; from = (from + 1) & mask) {
        if (((from - table->slots[from].hash) & mask) < ((from - at) & mask)) continue;
        table->slots[at] = table->slots[from];
        at = from;
    }
    table->slots[at].head = 0;
}

/* Clears the bit of this hash, unless another key has the same hash. */
static void home_clear(struct table *table, uint32_t hash) {
    for (uint32_t at = hash; table->slots[at & table->slot_mask].head; at++)
        if (!((table->slots[at & table->slot_mask].hash ^ hash) & table->home_mask)) return;
    *home(table, hash) &= ~home_bit(hash);
}

static int table_remove(struct table *table, uint32_t index) {
    if (index >= table->size || !table->entries[index].used) return TABLE_NO_ENTRY;
    struct entry *entry = &table->entries[index];
    struct table_group *group = entry->group;
    const uint64_t *key = entry_key(table, index);
    uint64_t hash = group_hash(group, key);
    struct slot *slot = group_slot(table, group, key, hash);
    uint32_t *link = &slot->head;
    while (*link != index + 1) link = &table->entries[*link - 1].next;
    *link = entry->next;
    if (!slot->head) {
        slot_clear(table, (uint32_t)(slot - table->slots));
        home_clear(table, (uint32_t)hash);
    }

    uint32_t last = group->heap[--group->count], place = entry->place;
    if (last != index) heap_sift(table, group, place, last);
    if (group->count == 1) group_only(table, group);
    *entry = (struct entry){.next = table->free};
    table->free = index + 1;
    table->count--;
    if (!group->count) {
        group_remove(table, group);
    } else if (table->entries[group->heap[0]].rank != group->top) {
        group->top = table->entries[group->heap[0]].rank;
        group_place(table, group);
    }
    return 0;
}

static int table_change(struct table *table, uint32_t index, uint32_t action, const uint64_t *data) {
    if (index >= table->size || !table->entries[index].used) return TABLE_NO_ENTRY;
    table->entries[index].action = action;
    memcpy(table->data + (size_t)index * table->data_limbs, data, (size_t)table->data_limbs * 8);
    return 0;
}

#endif
