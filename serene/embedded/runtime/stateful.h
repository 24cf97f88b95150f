/* Counters, meters and registers: arrays that keep their values between packets. */
#ifndef SERENE_STATEFUL_H
#define SERENE_STATEFUL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "wide.h"

struct count {
    uint64_t packets, bytes;
};

struct counter_array {
    uint32_t size;
    struct count *items;
};

/* A register: a column of the rows that registers of the same size share. */
struct register_array {
    uint32_t size, element_bytes, row_bytes;
    void *items;                 /* element 0 */
};

enum { HUGE_PAGE = 2 << 20 };

static size_t rows_bytes(size_t count, size_t row_bytes) {
    size_t size = (count ? count : 1) * row_bytes;
    return (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

/* Zeroed memory, aligned to a page. Large arrays are in huge pages if the kernel has them, so that a packet that
 * accesses a few rows causes fewer TLB misses. NULL if there is not enough memory. */
static void *rows_make(size_t count, size_t row_bytes) {
    size_t size = rows_bytes(count, row_bytes);
    void *rows = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (rows == MAP_FAILED) return NULL;
    if (count * row_bytes >= HUGE_PAGE) madvise(rows, size, MADV_HUGEPAGE);
    return rows;
}

static void rows_free(void *rows, size_t count, size_t row_bytes) {
    if (rows) munmap(rows, rows_bytes(count, row_bytes));
}

/* Two rates, three colours (RFC 2698, colour-blind). Rates are in units per microsecond, as in BMv2. */
struct meter {
    int configured;
    double rate[2], burst[2], tokens[2];     /* committed, peak */
    uint64_t last_us;
};

struct meter_array {
    uint32_t size;
    int counts_bytes;
    struct meter *items;
};

enum colour { GREEN, YELLOW, RED };

INLINE uint64_t meter_execute(struct meter *meter, int counts_bytes, uint32_t length, uint64_t now_us) {
    if (!meter->configured) return GREEN;
    double cost = counts_bytes ? length : 1;
    for (int i = 0; i < 2; i++) {
        meter->tokens[i] += meter->rate[i] * (double)(now_us - meter->last_us);
        if (meter->tokens[i] > meter->burst[i]) meter->tokens[i] = meter->burst[i];
    }
    meter->last_us = now_us;
    if (meter->tokens[1] < cost) return RED;
    meter->tokens[1] -= cost;
    if (meter->tokens[0] < cost) return YELLOW;
    meter->tokens[0] -= cost;
    return GREEN;
}

/* Action profiles: members that table entries share, and groups of them. An entry's data is {is a group, number}. */
enum { PROFILE_ENTRY = 0xfffffffe };

struct member {
    int used;
    uint32_t action;
    uint64_t *data;
};

struct group {
    int used;
    uint32_t count;
    uint32_t *members;
};

struct profile {
    uint32_t size;               /* of both arrays */
    int data_limbs;
    struct member *members;
    struct group *groups;
    uint64_t *data;
};

static int profile_init(struct profile *profile, uint32_t size, int data_limbs) {
    profile->size = size = size ? size : 1;
    profile->data_limbs = data_limbs;
    profile->members = calloc(size, sizeof *profile->members);
    profile->groups = calloc(size, sizeof *profile->groups);
    profile->data = calloc((size_t)size * (data_limbs ? data_limbs : 1), 8);
    if (!profile->members || !profile->groups || !profile->data) return 0;
    for (uint32_t i = 0; i < size; i++) profile->members[i].data = profile->data + (size_t)i * data_limbs;
    return 1;
}

static void profile_free(struct profile *profile) {
    for (uint32_t i = 0; profile->groups && i < profile->size; i++) free(profile->groups[i].members);
    free(profile->members);
    free(profile->groups);
    free(profile->data);
}

/* The member that an entry names, or the group's member that the hash selects. NULL: there is none. */
static inline struct member *profile_choose(struct profile *profile, const uint64_t *entry, uint64_t hash) {
    uint64_t number = entry[1];
    if (number >= profile->size) return NULL;
    if (entry[0]) {
        struct group *group = &profile->groups[number];
        if (!group->count) return NULL;
        number = group->members[hash % group->count];
    }
    return profile->members[number].used ? &profile->members[number] : NULL;
}

#endif
