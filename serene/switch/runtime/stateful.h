/* Counters, meters and registers: arrays that outlive packets. */
#ifndef SERENE_STATEFUL_H
#define SERENE_STATEFUL_H

#include <stdint.h>
#include <stdlib.h>
#include "wide.h"

struct count {
    uint64_t packets, bytes;
};

struct counter_array {
    uint32_t size;
    struct count *items;
};

struct register_array {
    uint32_t size, element_bytes;
    void *items;
};

/* Two rates, three colours (RFC 2698, colour-blind). Rates are units per microsecond, as BMv2 counts them. */
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

#endif
