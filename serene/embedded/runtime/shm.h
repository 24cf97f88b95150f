/* A shared-memory port: two rings of frames, one for each direction. The switch creates and seals the memory, so that
 * neither end can shrink it. Both ends use this file: ports.h, and serene/client/compiled/shm.c.
 *
 * A ring has one writer and one reader, which do not trust each other. Each keeps a private copy of its own index, and
 * reads the other's index once and checks it. A reader sets a flag before it sleeps. The writer then wakes it with a
 * byte on the socket over which it got the memory. Otherwise a frame takes no system call. */
#ifndef SERENE_SHM_H
#define SERENE_SHM_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { SHM_RING_BYTES = 4 << 20, SHM_ALIGN = 64, SHM_MOST_BYTES = 65536 };   /* of a ring; of a record; of a frame */
enum { SHM_RECORD_BYTES = 8, SHM_GREETING = 0x53724d31 };                    /* frame's header; sent with the memory */
enum { SHM_FETCHED_BYTES = 4096 };       /* prefetched, at most */
enum { SHM_CACHED_BYTES = 512 << 10 };   /* used bytes of a ring from which the writer returns to its beginning */
#define SHM_SKIP 0xffffffffu     /* instead of a length: the rest of the ring is unused */

struct shm_ring {
    _Alignas(SHM_ALIGN) uint64_t written;   /* by the writer: bytes since the beginning */
    _Alignas(SHM_ALIGN) uint64_t read;      /* by the reader */
    _Alignas(SHM_ALIGN) uint32_t asleep;    /* whether the reader has to be woken */
    _Alignas(SHM_ALIGN) uint8_t bytes[SHM_RING_BYTES];
};

struct shm_memory {
    struct shm_ring to_switch, to_host;
};

struct shm_end {                 /* serene.client.transport.shm.End */
    struct shm_memory *memory;   /* NULL: there is no other end */
    struct shm_ring *in, *out;
    uint64_t written, read;      /* this end's indices, of `out` and `in` */
    uint64_t published;          /* the reader may read frames up to here */
    uint64_t out_read, in_written;          /* the other end's, last read and valid */
    uint64_t rewound, most_unread;          /* index at the last early return; most bytes that waited at once */
    int32_t socket;
    uint32_t closed;             /* the other end has closed */
};

static void shm_begin(struct shm_end *end, struct shm_memory *memory, int socket, int of_switch) {
    *end = (struct shm_end){.memory = memory, .socket = socket};
    end->in = of_switch ? &memory->to_switch : &memory->to_host;
    end->out = of_switch ? &memory->to_host : &memory->to_switch;
}

static void shm_end(struct shm_end *end) {
    if (end->memory) munmap(end->memory, sizeof *end->memory);
    if (end->memory) close(end->socket);
    *end = (struct shm_end){.socket = -1};
}

/* Whether there is room for this number of bytes. If the other end's index is invalid, there is none. */
static int shm_has_room(struct shm_end *end, uint64_t size) {
    if (end->written - end->out_read + size <= SHM_RING_BYTES) return 1;
    uint64_t read = __atomic_load_n(&end->out->read, __ATOMIC_ACQUIRE);
    if (end->written - read > SHM_RING_BYTES) return 0;
    end->out_read = read;
    return end->written - read + size <= SHM_RING_BYTES;
}

static uint64_t shm_record_bytes(uint64_t length) {
    return (SHM_RECORD_BYTES + length + SHM_ALIGN - 1) & ~(uint64_t)(SHM_ALIGN - 1);
}

/* Prefetches the next frame, which is in the other processor's cache and probably as long as this one. */
static inline __attribute__((always_inline)) void shm_fetch(const uint8_t *from, uint64_t size, const int to_write) {
    if (size > SHM_FETCHED_BYTES) size = SHM_FETCHED_BYTES;
    for (uint64_t i = 0; i < size; i += SHM_ALIGN) __builtin_prefetch(from + i, to_write);
}

/* Whether the next frame goes to the beginning of the ring, which both processors have in their caches. Until the
 * reader follows, there is room for the bytes before the skipped part, which are more than ever waited. */
static int shm_rewinds(const struct shm_end *end, uint64_t at) {
    return at >= SHM_CACHED_BYTES && at / 2 >= end->most_unread && end->written == end->published
           && __atomic_load_n(&end->out->read, __ATOMIC_ACQUIRE) == end->written;
}

/* Room in the ring for a frame of at most `most` bytes. NULL: the ring is full. */
static uint8_t *shm_reserve(struct shm_end *end, uint64_t most) {
    uint64_t size = shm_record_bytes(most), at = end->written % SHM_RING_BYTES;
    int rewinds = shm_rewinds(end, at);
    uint64_t skipped = rewinds || at + size > SHM_RING_BYTES ? SHM_RING_BYTES - at : 0;
    if (most > SHM_MOST_BYTES) return NULL;
    if (!shm_has_room(end, skipped + size)) {
        end->most_unread = SHM_RING_BYTES;       /* no early return to the beginning any more */
        return NULL;
    }
    if (rewinds) end->rewound = end->written + skipped;
    return end->out->bytes + (skipped ? 0 : at) + SHM_RECORD_BYTES;
}

/* Adds the frame that was written into the room. shm_publish makes it visible to the reader. Ignores 0 bytes. */
static int shm_commit(struct shm_end *end, uint8_t *frame, uint32_t length) {
    if (!length) return 0;
    uint8_t *record = frame - SHM_RECORD_BYTES, *at = end->out->bytes + end->written % SHM_RING_BYTES;
    if (record != at) {
        const uint32_t skip = SHM_SKIP;
        memcpy(at, &skip, sizeof skip);
        end->written += (uint64_t)(end->out->bytes + SHM_RING_BYTES - at);
    }
    memcpy(record, &length, sizeof length);
    end->written += shm_record_bytes(length);
    shm_fetch(end->out->bytes + end->written % SHM_RING_BYTES, length, 1);
    return 1;
}

/* Copies a frame into the ring. Returns 0 if the ring is full. */
static int shm_write(struct shm_end *end, const struct iovec *parts, size_t count) {
    uint64_t length = 0;
    for (size_t i = 0; i < count; i++) length += parts[i].iov_len;
    uint8_t *frame = shm_reserve(end, length), *to = frame;
    if (!frame) return 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(to, parts[i].iov_base, parts[i].iov_len);
        to += parts[i].iov_len;
    }
    shm_commit(end, frame, (uint32_t)length);
    return 1;
}

/* Makes new frames visible to the reader, and wakes the reader if it sleeps. */
static void shm_publish(struct shm_end *end) {
    if (end->published == end->written) return;
    uint64_t unread = end->written - __atomic_load_n(&end->out->read, __ATOMIC_RELAXED);
    if (end->written - end->rewound < unread) unread = end->written - end->rewound;
    if (unread > end->most_unread) end->most_unread = unread;
    end->published = end->written;
    __atomic_store_n(&end->out->written, end->written, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);     /* either we see that it sleeps, or it sees the new frames */
    if (__atomic_load_n(&end->out->asleep, __ATOMIC_RELAXED)
        && __atomic_exchange_n(&end->out->asleep, 0, __ATOMIC_RELAXED))
        send(end->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);   /* a full queue also wakes it */
}

/* Finds the next frame in the ring. Returns 1; 0: there is none; -1: the ring's contents are invalid and discarded. The
 * other end may change the frame's bytes at any time, and overwrites them after shm_release. */
static int shm_read(struct shm_end *end, const uint8_t **frame, uint32_t *length) {
    for (;;) {
        uint64_t there = end->in_written - end->read;
        if (!there) {
            end->in_written = __atomic_load_n(&end->in->written, __ATOMIC_ACQUIRE);
            there = end->in_written - end->read;
            if (!there) return 0;
            if (there > SHM_RING_BYTES || there % SHM_ALIGN) break;
        }
        uint64_t at = end->read % SHM_RING_BYTES, left = SHM_RING_BYTES - at;
        *length = __atomic_load_n((const uint32_t *)(end->in->bytes + at), __ATOMIC_RELAXED);
        if (*length == SHM_SKIP) {
            if (left >= there) break;            /* it can only be before a frame */
            end->read += left;
            continue;
        }
        uint64_t size = shm_record_bytes(*length);
        if (!*length || *length > SHM_MOST_BYTES || size > left || size > there) break;
        *frame = end->in->bytes + at + SHM_RECORD_BYTES;
        end->read += size;
        if (there > size) shm_fetch(end->in->bytes + end->read % SHM_RING_BYTES, size, 0);
        return 1;
    }
    end->read = end->in_written &= ~(uint64_t)(SHM_ALIGN - 1);
    return -1;
}

/* Returns the room of frames that were read to the writer. */
static void shm_release(struct shm_end *end) { __atomic_store_n(&end->in->read, end->read, __ATOMIC_RELEASE); }

/* Sets the flag that the reader has to be woken. Returns 0 if there is a frame to read. */
static int shm_sleep(struct shm_end *end) {
    __atomic_store_n(&end->in->asleep, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&end->in->written, __ATOMIC_ACQUIRE) == end->read) return 1;
    __atomic_store_n(&end->in->asleep, 0, __ATOMIC_RELAXED);
    return 0;
}

/* Reads the bytes that woke it, and detects that the other end has closed. */
static void shm_woken(struct shm_end *end) {
    uint8_t bytes[512];
    __atomic_store_n(&end->in->asleep, 0, __ATOMIC_RELAXED);
    ssize_t count = recv(end->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (!count || (count < 0 && errno != EAGAIN && errno != EINTR)) end->closed = 1;
}

/* The address of a path; 0 if it is too long. */
static socklen_t shm_address(const char *path, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof address->sun_path) return 0;
    strcpy(address->sun_path, path);
    return sizeof *address;
}

#endif
