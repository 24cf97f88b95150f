/* Received frames in memory that the kernel shares with us (PACKET_RX_RING, TPACKET_V2). A frame takes no system call
 * and no socket buffer. A frame that does not fit into a slot waits at the socket, such as a large buffer of a sender
 * with segmentation offload. Its slot is marked, so frames stay in order. */
#ifndef SERENE_FRAME_RING_H
#define SERENE_FRAME_RING_H

#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { SLOT_HEAD = 128 };        /* at least the bytes before a frame: the kernel's headers, and room for a VLAN tag */
enum { LEAST_SLOT = 2048, MOST_SLOT = 16384, MOST_SLOTS = 1024, MOST_RING_BYTES = 4 << 20, RING_BLOCK = 65536 };

struct frame_ring {
    uint8_t *memory;             /* NULL: no ring; every frame is read from the socket */
    uint32_t slots, slot_bytes;  /* powers of two */
    uint32_t at;                 /* the next slot */
};

static struct tpacket2_hdr *frame_slot(const struct frame_ring *ring, uint32_t ahead) {
    return (void *)(ring->memory + (size_t)((ring->at + ahead) & (ring->slots - 1)) * ring->slot_bytes);
}

/* A slot's status; 0: the kernel has not filled it yet. */
static uint32_t frame_status(const struct frame_ring *ring, uint32_t ahead) {
    uint32_t status = __atomic_load_n(&frame_slot(ring, ahead)->tp_status, __ATOMIC_ACQUIRE);
    return status & TP_STATUS_USER ? status : 0;
}

/* Returns the next slot to the kernel. */
static void frame_release(struct frame_ring *ring) {
    __atomic_store_n(&frame_slot(ring, 0)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    ring->at++;
}

static void frame_ring_close(struct frame_ring *ring) {
    if (ring->memory) munmap(ring->memory, (size_t)ring->slots * ring->slot_bytes);
    ring->memory = NULL;
}

/* Creates slots for the largest frame of this interface. If there is not enough memory, the socket stays unchanged. */
static void frame_ring_open(struct frame_ring *ring, int socket, const char *interface) {
    struct ifreq asked = {0};
    strncpy(asked.ifr_name, interface, sizeof asked.ifr_name - 1);
    uint32_t mtu = ioctl(socket, SIOCGIFMTU, &asked) ? 0 : (uint32_t)asked.ifr_mtu;
    int version = TPACKET_V2, copies = 1;
    ring->slot_bytes = LEAST_SLOT;
    while (ring->slot_bytes < MOST_SLOT && ring->slot_bytes < mtu + SLOT_HEAD) ring->slot_bytes *= 2;
    ring->slots = MOST_RING_BYTES / ring->slot_bytes < MOST_SLOTS ? MOST_RING_BYTES / ring->slot_bytes : MOST_SLOTS;
    size_t size = (size_t)ring->slots * ring->slot_bytes;
    struct tpacket_req wanted = {RING_BLOCK, (unsigned)(size / RING_BLOCK), ring->slot_bytes, ring->slots}, none = {0};
    if (setsockopt(socket, SOL_PACKET, PACKET_VERSION, &version, sizeof version)
        || setsockopt(socket, SOL_PACKET, PACKET_COPY_THRESH, &copies, sizeof copies)
        || setsockopt(socket, SOL_PACKET, PACKET_RX_RING, &wanted, sizeof wanted))
        return;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, socket, 0);
    if (memory == MAP_FAILED) setsockopt(socket, SOL_PACKET, PACKET_RX_RING, &none, sizeof none);
    else ring->memory = memory;
}

#endif
