/* Match-action tables. A key is an array of limbs, each key field starting a limb of its own.
 *
 * EXACT   one hash probe.
 * LPM     one hash probe per prefix length in use, longest first.
 * TERNARY entries in order of priority; a field matches under a mask, or between two bounds (ranges).
 */
#ifndef SERENE_TABLE_H
#define SERENE_TABLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "wide.h"

enum table_kind { TABLE_EXACT, TABLE_LPM, TABLE_TERNARY };
enum table_error { TABLE_FULL = -1, TABLE_DUPLICATE = -2, TABLE_NO_ENTRY = -3, TABLE_NO_MEMORY = -4 };
enum { MAX_PREFIX = 4096 };

struct entry {
    int used;
    int priority;                /* larger wins */
    int prefix;                  /* significant bits of an LPM key */
    uint32_t action;
    uint32_t next;               /* in its hash chain, index + 1 */
    uint32_t touched;            /* hit since somebody looked: tables with idle timeouts only */
    uint64_t packets, bytes;
};

struct table {
    enum table_kind kind;
    uint32_t size;
    int key_limbs, data_limbs;
    const uint8_t *ranges;       /* per limb: compare as a range (ternary tables only) */
    struct entry *entries;       /* [size] */
    uint64_t *keys, *masks;      /* [size][key_limbs]; ranges: low, high */
    uint64_t *data;              /* [size][data_limbs] */
    uint32_t *chains;            /* [chain_mask + 1], index + 1 */
    uint32_t chain_mask;
    uint32_t *order;             /* ternary: by priority, then by age */
    uint32_t count;
    uint32_t first_free;         /* no entry below it is free */
    uint32_t prefixes[MAX_PREFIX + 1];   /* LPM: entries per length */
    int lengths[MAX_PREFIX + 1], length_count;
    uint64_t (*length_masks)[8]; /* LPM: mask of the key per length in use */
    struct entry standard;       /* the default entry */
    uint64_t *standard_data;
};

INLINE uint64_t table_hash(const uint64_t *key, int limbs, uint64_t seed) {
    uint64_t hash = seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull;
    for (int i = 0; i < limbs; i++) {
        hash = (hash ^ key[i]) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 32;
    }
    return hash;
}

static int table_init(struct table *table, enum table_kind kind, uint32_t size, int key_limbs, int data_limbs,
                      const uint8_t *ranges) {
    memset(table, 0, sizeof *table);
    uint32_t chains = 16;
    while (chains < size && chains < 1u << 30) chains *= 2;
    table->kind = kind;
    table->size = size ? size : 1;
    table->key_limbs = key_limbs;
    table->data_limbs = data_limbs;
    table->ranges = ranges;
    table->chain_mask = chains - 1;
    table->entries = calloc(table->size, sizeof *table->entries);
    table->keys = calloc((size_t)table->size * (key_limbs ? key_limbs : 1), 8);
    table->masks = calloc((size_t)table->size * (key_limbs ? key_limbs : 1), 8);
    table->data = calloc((size_t)table->size * (data_limbs ? data_limbs : 1), 8);
    table->standard_data = calloc(data_limbs ? data_limbs : 1, 8);
    table->chains = calloc(chains, sizeof *table->chains);
    table->order = calloc(table->size, sizeof *table->order);
    table->length_masks = calloc(kind == TABLE_LPM ? MAX_PREFIX + 1 : 1, sizeof *table->length_masks);
    return table->entries && table->keys && table->masks && table->data && table->standard_data && table->chains
           && table->order && table->length_masks;
}

static void table_free(struct table *table) {
    free(table->entries);
    free(table->keys);
    free(table->masks);
    free(table->data);
    free(table->standard_data);
    free(table->chains);
    free(table->order);
    free(table->length_masks);
}

INLINE uint32_t table_probe(const struct table *table, const uint64_t *key, int limbs, int prefix) {
    uint32_t at = table->chains[table_hash(key, limbs, (uint64_t)prefix) & table->chain_mask];
    for (; at; at = table->entries[at - 1].next)
        if (table->entries[at - 1].prefix == prefix
            && wide_equal(table->keys + (size_t)(at - 1) * limbs, key, limbs))
            return at;
    return 0;
}

INLINE int table_matches(const struct table *table, uint32_t index, const uint64_t *key, int limbs) {
    const uint64_t *low = table->keys + (size_t)index * limbs, *high = table->masks + (size_t)index * limbs;
    for (int i = 0; i < limbs; i++) {
        if (table->ranges[i] ? key[i] < low[i] || key[i] > high[i] : (key[i] & high[i]) != low[i]) return 0;
    }
    return 1;
}

/* The entry that matches, or NULL; `kind` and `limbs` repeat the table's as constants. */
INLINE struct entry *table_lookup(struct table *table, enum table_kind kind, const uint64_t *key, int limbs) {
    uint32_t at = 0;
    if (kind == TABLE_EXACT) {
        at = table_probe(table, key, limbs, 0);
    } else if (kind == TABLE_LPM) {
        for (int i = 0; i < table->length_count && !at; i++) {
            uint64_t masked[8];
            for (int j = 0; j < limbs; j++) masked[j] = key[j] & table->length_masks[i][j];
            at = table_probe(table, masked, limbs, table->lengths[i]);
        }
    } else {
        for (uint32_t i = 0; i < table->count && !at; i++)
            if (table_matches(table, table->order[i], key, limbs)) at = table->order[i] + 1;
    }
    return at ? &table->entries[at - 1] : NULL;
}

/* An LPM key has one prefix field; the mask of the whole key belongs to its length. */
static void table_update_lengths(struct table *table, int prefix, const uint64_t *mask) {
    int i = 0;
    while (i < table->length_count && table->lengths[i] > prefix) i++;
    int present = i < table->length_count && table->lengths[i] == prefix;
    if (table->prefixes[prefix] && !present) {
        memmove(table->lengths + i + 1, table->lengths + i, (table->length_count - i) * sizeof *table->lengths);
        memmove(table->length_masks + i + 1, table->length_masks + i,
                (table->length_count - i) * sizeof *table->length_masks);
        table->lengths[i] = prefix;
        memcpy(table->length_masks[i], mask, table->key_limbs * 8);
        table->length_count++;
    } else if (!table->prefixes[prefix] && present) {
        table->length_count--;
        memmove(table->lengths + i, table->lengths + i + 1, (table->length_count - i) * sizeof *table->lengths);
        memmove(table->length_masks + i, table->length_masks + i + 1,
                (table->length_count - i) * sizeof *table->length_masks);
    }
}

static int table_same_entry(const struct table *table, uint32_t index, const uint64_t *key, const uint64_t *mask,
                            int priority) {
    int limbs = table->key_limbs;
    return table->entries[index].priority == priority
           && !memcmp(table->keys + (size_t)index * limbs, key, limbs * 8)
           && !memcmp(table->masks + (size_t)index * limbs, mask, limbs * 8);
}

/* The new entry's handle, or a table_error. */
static int table_insert(struct table *table, const uint64_t *key, const uint64_t *mask, int prefix, int priority,
                        uint32_t action, const uint64_t *data) {
    int limbs = table->key_limbs;
    if (table->kind == TABLE_TERNARY) {
        for (uint32_t i = 0; i < table->count; i++)
            if (table_same_entry(table, table->order[i], key, mask, priority)) return TABLE_DUPLICATE;
    } else if (table_probe(table, key, limbs, prefix)) {
        return TABLE_DUPLICATE;
    }
    if (table->count == table->size) return TABLE_FULL;
    uint32_t index = table->first_free;
    while (table->entries[index].used) index++;
    table->first_free = index + 1;

    struct entry *entry = &table->entries[index];
    memset(entry, 0, sizeof *entry);
    entry->used = 1;
    entry->priority = priority;
    entry->prefix = prefix;
    entry->action = action;
    memcpy(table->keys + (size_t)index * limbs, key, limbs * 8);
    memcpy(table->masks + (size_t)index * limbs, mask, limbs * 8);
    memcpy(table->data + (size_t)index * table->data_limbs, data, table->data_limbs * 8);

    if (table->kind == TABLE_TERNARY) {
        uint32_t at = table->count;
        while (at > 0 && table->entries[table->order[at - 1]].priority < priority) at--;
        memmove(table->order + at + 1, table->order + at, (table->count - at) * sizeof *table->order);
        table->order[at] = index;
    } else {
        uint32_t *chain = &table->chains[table_hash(key, limbs, (uint64_t)prefix) & table->chain_mask];
        entry->next = *chain;
        *chain = index + 1;
        if (table->kind == TABLE_LPM) {
            table->prefixes[prefix]++;
            table_update_lengths(table, prefix, mask);
        }
    }
    table->count++;
    return (int)index;
}

static int table_remove(struct table *table, uint32_t index) {
    if (index >= table->size || !table->entries[index].used) return TABLE_NO_ENTRY;
    struct entry *entry = &table->entries[index];
    int limbs = table->key_limbs;
    const uint64_t *key = table->keys + (size_t)index * limbs;
    if (table->kind == TABLE_TERNARY) {
        uint32_t at = 0;
        while (table->order[at] != index) at++;
        memmove(table->order + at, table->order + at + 1, (table->count - at - 1) * sizeof *table->order);
    } else {
        uint32_t *link = &table->chains[table_hash(key, limbs, (uint64_t)entry->prefix) & table->chain_mask];
        while (*link != index + 1) link = &table->entries[*link - 1].next;
        *link = entry->next;
        if (table->kind == TABLE_LPM) {
            table->prefixes[entry->prefix]--;
            table_update_lengths(table, entry->prefix, table->masks + (size_t)index * limbs);
        }
    }
    entry->used = 0;
    if (index < table->first_free) table->first_free = index;
    table->count--;
    return 0;
}

static int table_change(struct table *table, uint32_t index, uint32_t action, const uint64_t *data) {
    if (index >= table->size || !table->entries[index].used) return TABLE_NO_ENTRY;
    table->entries[index].action = action;
    memcpy(table->data + (size_t)index * table->data_limbs, data, table->data_limbs * 8);
    return 0;
}

INLINE const uint64_t *table_data(const struct table *table, const struct entry *entry) {
    if (entry == &table->standard) return table->standard_data;
    return table->data + (size_t)(entry - table->entries) * table->data_limbs;
}

#endif
