/* The offloads of a network card: segments large buffers of a sender's kernel, and completes checksums. If requested,
 * merges runs of equal UDP packets into one buffer for the kernel.
 *
 * A program sees packets of the size on the wire, independent of the sender's offloads. */
#ifndef SERENE_OFFLOAD_H
#define SERENE_OFFLOAD_H

#include <linux/if_ether.h>
#include <linux/virtio_net.h>
#include <netinet/in.h>

#include "checksum.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

enum { ETHERNET_BYTES = 14, IPV4_BYTES = 20, IPV6_BYTES = 40, UDP_BYTES = 8, TCP_BYTES = 20 };
enum { RUN_HEADER_BYTES = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES };
enum { RUN_MOST_PACKETS = 64, RUN_MOST_BYTES = 65535 - IPV4_BYTES };     /* limits of one buffer in the kernel */

static inline uint16_t get16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

static inline void put16(uint8_t *at, uint64_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* The sum of 16-bit words, before the complement. */
static uint64_t word_sum(const uint8_t *data, size_t size) { return ~checksum_csum16(data, size) & 0xffff; }

static uint16_t finished(uint64_t sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

/* Completes a checksum that the sender left to its (virtual) hardware. Otherwise the receiver would drop the packet. */
static void complete_checksum(uint8_t *frame, uint32_t length, const struct virtio_net_hdr *virtio) {
    if (!(virtio->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)) return;
    uint32_t start = virtio->csum_start, at = start + virtio->csum_offset;
    if (start >= length || at + 2 > length) return;
    uint64_t sum = checksum_csum16(frame + start, length - start);
    put16(frame + at, sum ? sum : 0xffff);
}

/* The sum of the pseudo header in a UDP or TCP checksum. */
static uint64_t pseudo_header_sum(const uint8_t *frame, int is_ipv6, uint8_t protocol, uint32_t length) {
    const uint8_t *addresses = frame + ETHERNET_BYTES + (is_ipv6 ? 8 : 12);
    return word_sum(addresses, is_ipv6 ? 32 : 8) + protocol + (length >> 16) + (length & 0xffff);
}

struct large {
    int is_ipv6, is_udp;
    uint32_t l4, head;           /* offsets of the beginning and the end of the transport header */
};

/* Returns 0 if this switch cannot segment the buffer. */
static int large_parse(const uint8_t *frame, uint32_t length, uint8_t gso_type, struct large *large) {
    if (length < RUN_HEADER_BYTES) return 0;
    uint16_t type = get16(frame + 12);
    large->is_ipv6 = type == ETH_P_IPV6;
    large->is_udp = gso_type == VIRTIO_NET_HDR_GSO_UDP_L4;
    if (!large->is_ipv6 && type != ETH_P_IP) return 0;
    large->l4 = ETHERNET_BYTES + (large->is_ipv6 ? IPV6_BYTES : (frame[ETHERNET_BYTES] & 15u) * 4);
    uint8_t protocol = frame[ETHERNET_BYTES + (large->is_ipv6 ? 6 : 9)];
    if (protocol != (large->is_udp ? IPPROTO_UDP : IPPROTO_TCP)) return 0;
    if (length < large->l4 + (large->is_udp ? UDP_BYTES : TCP_BYTES)) return 0;
    large->head = large->l4 + (large->is_udp ? UDP_BYTES : (frame[large->l4 + 12] >> 4) * 4u);
    return large->head < length;
}

/* Completes packet `number` of a large buffer. `head` is the buffer's header, and `frame` begins with a copy of it. */
static void segment_finish(uint8_t *frame, uint32_t length, const struct large *large, uint32_t number, uint32_t size,
                           int last) {
    uint8_t *l3 = frame + ETHERNET_BYTES, *l4 = frame + large->l4;
    uint32_t transport = length - large->l4;
    if (large->is_ipv6) {
        put16(l3 + 4, transport);
    } else {
        put16(l3 + 2, length - ETHERNET_BYTES);
        put16(l3 + 4, get16(l3 + 4) + number);
        put16(l3 + 10, 0);
        put16(l3 + 10, finished(word_sum(l3, large->l4 - ETHERNET_BYTES)));
    }
    uint8_t *checksum = l4 + (large->is_udp ? 6 : 16);
    if (large->is_udp) {
        put16(l4 + 4, transport);
    } else {
        store_bytes(l4 + 4, 4, load_bytes(l4 + 4, 4) + (uint64_t)number * size);
        if (!last) l4[13] &= (uint8_t)~0x09;    /* only the last packet has FIN and PSH, only the first CWR */
        if (number) l4[13] &= (uint8_t)~0x80;
    }
    put16(checksum, 0);
    uint8_t protocol = large->is_udp ? IPPROTO_UDP : IPPROTO_TCP;
    uint16_t sum = finished(word_sum(l4, transport) + pseudo_header_sum(frame, large->is_ipv6, protocol, transport));
    put16(checksum, sum || !large->is_udp ? sum : 0xffff);
}

/* Whether a packet may begin a run: UDP over IPv4 without options, fragmentation, checksum or trailing bytes. */
static int run_begins(const uint8_t *frame, uint32_t length) {
    return length > RUN_HEADER_BYTES && get16(frame + 12) == ETH_P_IP && frame[14] == 0x45
           && frame[23] == IPPROTO_UDP && (get16(frame + 20) & 0x3fff) == 0
           && get16(frame + 16) == length - ETHERNET_BYTES
           && get16(frame + 38) == length - ETHERNET_BYTES - IPV4_BYTES && get16(frame + 40) == 0;
}

/* Whether `next` continues the run that `first` began, as its packet `number`. The kernel will write lengths, checksums
 * and an increasing id. `next` has to have these values already, or ones without meaning (the id under DF). */
static int run_continues(const uint8_t *first, const uint8_t *next, uint32_t number) {
    int same_id = get16(next + 18) == (uint16_t)(get16(first + 18) + number) || (first[20] & 0x40);
    return same_id && !memcmp(first, next, 16) && !memcmp(first + 20, next + 20, 4)
           && !memcmp(first + 26, next + 26, 12);
}

/* The header of a run of packets. Each carries `size` bytes, and all together carry `total`. */
static void run_header(uint8_t *head, struct virtio_net_hdr *virtio, const uint8_t *first, uint32_t size,
                       uint32_t total) {
    memcpy(head, first, RUN_HEADER_BYTES);
    uint32_t transport = UDP_BYTES + total;
    put16(head + 16, IPV4_BYTES + transport);
    put16(head + 24, 0);
    put16(head + 24, finished(word_sum(head + ETHERNET_BYTES, IPV4_BYTES)));
    put16(head + 38, transport);
    put16(head + 40, (uint16_t)~finished(pseudo_header_sum(head, 0, IPPROTO_UDP, transport)));
    *virtio = (struct virtio_net_hdr){
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4, .hdr_len = RUN_HEADER_BYTES,
        .gso_size = (uint16_t)size, .csum_start = ETHERNET_BYTES + IPV4_BYTES, .csum_offset = 6};
}

#endif
