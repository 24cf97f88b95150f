/* Match-action tables. A key is an array of limbs. Each key field begins a new limb.
 *
 * Entries with equal masks form a group. One hash probe finds the entries of a group that a key may match. This is
 * tuple space search (Srinivasan, Suri, Varghese, "Packet classification using tuple space search", SIGCOMM 1999).
 *
 * EXACT   one group, whose mask has all bits set.
 * LPM     a group for each prefix length; an entry's rank is its length.
 * TERNARY an entry's rank is its priority.
 *
 * Groups are searched in the order of their largest rank, until the best entry found outranks all remaining groups. Of
 * entries with equal ranks the older one wins. If a range's bounds are equal, its limb is part of the group's mask.
 * Other ranges are compared entry by entry.
 */
#ifndef SERENE_TABLE_H
#define SERENE_TABLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "wide.h"

enum table_kind { TABLE_EXACT, TABLE_LPM, TABLE_TERNARY };
enum table_error { TABLE_FULL = -1, TABLE_DUPLICATE = -2, TABLE_NO_ENTRY = -3, TABLE_NO_MEMORY = -4 };
enum { NO_ACTION = 0xffffffff };
enum { MOST_BUCKETS = 4096 };    /* of groups by their masks */
enum { FIRST_SLOTS = 16, CACHED_SLOTS = 1 << 17 };

/* Flags: in use; hit since the last query (only in tables with idle timeouts); Python stores more about the entry. */
struct entry {
    uint8_t used, touched, noted;
    int32_t rank;                /* larger wins */
    uint32_t action;
    uint32_t next;               /* with the same masked key, by rank, then by age; or the next free one: index + 1 */
    uint32_t place;              /* its index in its group's heap */
    struct table_group *group;
    uint64_t age;                /* smaller is older */
    uint64_t metadata;           /* the controller's own number */
    uint64_t packets, bytes;
};

struct masked_limb {
    uint64_t mask;
    uint64_t only;               /* of a group with one entry: this limb of its masked key, for locality */
    uint32_t at;
};

struct table_group {
    int32_t top;                 /* the largest rank of its entries */
    uint32_t count, capacity;
    uint32_t *heap;              /* [capacity] entries; none outranks its parent */
    uint32_t place;              /* its index among the groups by rank */
    struct table_group *next;    /* the next one in the same bucket */
    uint64_t seed;               /* of its hashes */
    uint64_t *mask;              /* [key_limbs] */
    uint32_t on_count;
    struct masked_limb on[];     /* the limbs whose mask is not 0 */
};

/* One slot for each masked key of a group, with linear probing. At least half of the slots are empty. Their number
 * grows with the entries, not with the table's size. Most probes find an empty slot, and few slots stay in the
 * processor's cache. */
struct slot {
    uint32_t hash;
    uint32_t head;               /* the first entry with this key, index + 1; 0: empty */
};

struct table {
    enum table_kind kind;
    uint32_t size;
    int key_limbs, data_limbs;
    const uint8_t *ranges;       /* for each limb: whether it is compared as a range (only in ternary tables) */
    int ranged;                  /* whether one of them is set */
    struct entry *entries;       /* [size] */
    uint64_t *keys;              /* [size][key_limbs]; for ranges the low bounds */
    uint64_t *highs;             /* the same, for ranges the high bounds; NULL without ranges */
    uint64_t *data;              /* [size][data_limbs] */
    struct slot *slots;          /* [slot_mask + 1] */
    uint32_t slot_mask, home_mask;
    uint64_t *homes;             /* [home_mask + 1] bits: whether a masked key has this hash. Smaller than the slots, so
                                    that most probes, which find nothing, stay in the L1 cache. */
    struct table_group **groups; /* [group_count], by their largest rank */
    uint32_t group_count, group_capacity;
    struct table_group **buckets;        /* [bucket_mask + 1] */
    uint32_t bucket_mask;
    uint64_t *scratch;           /* [key_limbs], for the control plane */
    uint64_t ages, seeds;
    uint32_t count;
    uint32_t free;               /* an unused entry, index + 1; 0: those from `fresh` on */
    uint32_t fresh;              /* no entry from here on was ever used */
    struct entry standard;       /* the default entry */
    uint64_t *standard_data;
};

INLINE uint64_t hash_step(uint64_t hash, uint64_t limb) {
    hash = (hash ^ limb) * 0xff51afd7ed558ccdull;
    return hash ^ hash >> 32;
}

INLINE uint64_t hash_seed(uint64_t seed) { return seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull; }

INLINE const uint64_t *entry_key(const struct table *table, uint32_t index) {
    return table->keys + (size_t)index * (size_t)table->key_limbs;
}

/* A limb of an entry's mask; for a range, its high bound. */
INLINE uint64_t entry_mask(const struct table *table, uint32_t index, int limb) {
    if (table->ranged && table->ranges[limb]) return table->highs[(size_t)index * (size_t)table->key_limbs + limb];
    return table->entries[index].group->mask[limb];
}

INLINE uint32_t entry_index(const struct table *table, const struct entry *entry) {
    return (uint32_t)(entry - table->entries);
}

INLINE uint64_t group_hash(const struct table_group *group, const uint64_t *key) {
    uint64_t hash = group->seed;
    for (uint32_t i = 0; i < group->on_count; i++) hash = hash_step(hash, key[group->on[i].at] & group->on[i].mask);
    return hash;
}

INLINE int group_equal(const struct table_group *group, const uint64_t *held, const uint64_t *key) {
    for (uint32_t i = 0; i < group->on_count; i++)
        if (held[group->on[i].at] != (key[group->on[i].at] & group->on[i].mask)) return 0;
    return 1;
}

INLINE uint64_t *home(const struct table *table, uint64_t hash) { return &table->homes[(hash & table->home_mask) / 64]; }

INLINE uint64_t home_bit(uint64_t hash) { return 1ull << (hash & 63); }

/* The slot of the group's entries with this masked key, or the empty slot for that key. */
INLINE struct slot *group_slot(const struct table *table, const struct table_group *group, const uint64_t *key,
                               uint64_t hash) {
    for (uint32_t at = (uint32_t)hash;; at++) {
        struct slot *slot = &table->slots[at & table->slot_mask];
        if (!slot->head) return slot;
        if (slot->hash == (uint32_t)hash && table->entries[slot->head - 1].group == group
            && group_equal(group, entry_key(table, slot->head - 1), key))
            return slot;
    }
}

/* EXACT: the entry with this key, index + 1; 0: none. */
INLINE uint32_t table_probe(const struct table *table, const uint64_t *key, int limbs) {
    uint64_t hash = hash_seed(0);
    for (int i = 0; i < limbs; i++) hash = hash_step(hash, key[i]);
    for (uint32_t at = (uint32_t)hash;; at++) {
        struct slot slot = table->slots[at & table->slot_mask];
        if (!slot.head) return 0;
        if (slot.hash == (uint32_t)hash && wide_equal(table->keys + (size_t)(slot.head - 1) * limbs, key, limbs))
            return slot.head;
    }
}

INLINE int within_ranges(const struct table *table, uint32_t index, const uint64_t *key) {
    const uint64_t *low = entry_key(table, index), *high = table->highs + (low - table->keys);
    for (int i = 0; i < table->key_limbs; i++)
        if (table->ranges[i] && (key[i] < low[i] || key[i] > high[i])) return 0;
    return 1;
}

/* The group's entry that matches, index + 1; 0: none. */
INLINE uint32_t group_lookup(const struct table *table, const struct table_group *group, const uint64_t *key) {
    uint32_t at;
    if (group->count == 1) {
        for (uint32_t i = 0; i < group->on_count; i++)
            if ((key[group->on[i].at] & group->on[i].mask) != group->on[i].only) return 0;
        at = group->heap[0] + 1;
    } else {
        uint64_t hash = group_hash(group, key);
        if (!(*home(table, hash) & home_bit(hash))) return 0;
        at = group_slot(table, group, key, hash)->head;
    }
    while (at && table->ranged && !within_ranges(table, at - 1, key)) at = table->entries[at - 1].next;
    return at;
}

INLINE int outranks(const struct entry *a, const struct entry *b) {
    return a->rank > b->rank || (a->rank == b->rank && a->age < b->age);
}

/* The entry that matches, or NULL; `kind` and `limbs` repeat the table's as constants. */
INLINE struct entry *table_lookup(struct table *table, enum table_kind kind, const uint64_t *key, int limbs) {
    struct entry *best = NULL;
    if (kind == TABLE_EXACT) {
        uint32_t at = table_probe(table, key, limbs);
        return at ? &table->entries[at - 1] : NULL;
    }
    for (uint32_t i = 0; i < table->group_count; i++) {
        const struct table_group *group = table->groups[i];
        if (best && best->rank > group->top) break;
        uint32_t at = group_lookup(table, group, key);
        if (at && (!best || outranks(&table->entries[at - 1], best))) best = &table->entries[at - 1];
    }
    return best;
}

INLINE const uint64_t *table_data(const struct table *table, const struct entry *entry) {
    if (entry == &table->standard) return table->standard_data;
    return table->data + (size_t)entry_index(table, entry) * (size_t)table->data_limbs;
}

#endif
