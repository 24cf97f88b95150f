/* A shared-memory port: two rings of frames, one for each direction, in memory that the switch made and sealed, so that
 * nobody can take it away from the other. Used by both ends: ports.h, and serene/client/compiled/shm.c.
 *
 * A ring has one writer and one reader. Neither believes the other: each keeps its own index to itself, and what it
 * reads of the other's is read once and checked. A reader that is about to sleep says so, and is then woken by a byte
 * through the socket over which it got the memory; otherwise a frame takes no system call. */
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

enum { SHM_RING_BYTES = 4 << 20, SHM_ALIGN = 64, SHM_MOST_BYTES = 65536 };   /* of a ring, a record, a frame */
enum { SHM_RECORD_BYTES = 8, SHM_GREETING = 0x53724d31 };                    /* before a frame; with the memory */
enum { SHM_FETCHED_BYTES = 4096 };       /* ahead, at most */
enum { SHM_CACHED_BYTES = 512 << 10 };   /* of a ring, which are worth beginning it anew */
#define SHM_SKIP 0xffffffffu     /* for a length: the rest of the ring is not used */

struct shm_ring {
    _Alignas(SHM_ALIGN) uint64_t written;   /* bytes since the beginning: the writer's */
    _Alignas(SHM_ALIGN) uint64_t read;      /* the reader's */
    _Alignas(SHM_ALIGN) uint32_t asleep;    /* whether the reader has to be woken */
    _Alignas(SHM_ALIGN) uint8_t bytes[SHM_RING_BYTES];
};

struct shm_memory {
    struct shm_ring to_switch, to_host;
};

struct shm_end {                 /* serene.client.transport.shm.End */
    struct shm_memory *memory;   /* NULL: nobody is at the other end */
    struct shm_ring *in, *out;
    uint64_t written, read;      /* ours of out and in */
    uint64_t published;          /* up to where frames are the reader's */
    uint64_t out_read, in_written;          /* theirs, as last seen and found in order */
    uint64_t rewound, most_unread;          /* where our ring began anew; bytes of frames that waited there at once */
    int32_t socket;
    uint32_t closed;             /* the other end has gone */
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

/* Whether there is room for so many bytes; an index that cannot be is no room. */
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

/* The next frame, likely as long as this one, lies in the other processor's cache: has it on its way meanwhile. */
static inline __attribute__((always_inline)) void shm_fetch(const uint8_t *from, uint64_t size, const int to_write) {
    if (size > SHM_FETCHED_BYTES) size = SHM_FETCHED_BYTES;
    for (uint64_t i = 0; i < size; i += SHM_ALIGN) __builtin_prefetch(from + i, to_write);
}

/* Whether the next frame goes to the beginning of the ring, which both processors have in their caches. Until it is read
 * there is room for as much as lies before what is skipped: more than ever waited. */
static int shm_rewinds(const struct shm_end *end, uint64_t at) {
    return at >= SHM_CACHED_BYTES && at / 2 >= end->most_unread && end->written == end->published
           && __atomic_load_n(&end->out->read, __ATOMIC_ACQUIRE) == end->written;
}

/* Room in the ring for a frame of `most` bytes at most. NULL: it is full. */
static uint8_t *shm_reserve(struct shm_end *end, uint64_t most) {
    uint64_t size = shm_record_bytes(most), at = end->written % SHM_RING_BYTES;
    int rewinds = shm_rewinds(end, at);
    uint64_t skipped = rewinds || at + size > SHM_RING_BYTES ? SHM_RING_BYTES - at : 0;
    if (most > SHM_MOST_BYTES) return NULL;
    if (!shm_has_room(end, skipped + size)) {
        end->most_unread = SHM_RING_BYTES;       /* begins anew no more */
        return NULL;
    }
    if (rewinds) end->rewound = end->written + skipped;
    return end->out->bytes + (skipped ? 0 : at) + SHM_RECORD_BYTES;
}

/* A frame has been written where there was room; it is the reader's with shm_publish. 0: nothing is no frame. */
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

/* Copies a frame into the ring. 0: it is full. */
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

/* Hands over what was written, if anything was, and wakes the reader if it sleeps. */
static void shm_publish(struct shm_end *end) {
    if (end->published == end->written) return;
    uint64_t unread = end->written - __atomic_load_n(&end->out->read, __ATOMIC_RELAXED);
    if (end->written - end->rewound < unread) unread = end->written - end->rewound;
    if (unread > end->most_unread) end->most_unread = unread;
    end->published = end->written;
    __atomic_store_n(&end->out->written, end->written, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);     /* either we see that it sleeps, or it sees what was written */
    if (__atomic_load_n(&end->out->asleep, __ATOMIC_RELAXED)
        && __atomic_exchange_n(&end->out->asleep, 0, __ATOMIC_RELAXED))
        send(end->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);   /* a full queue wakes it as well */
}

/* The next frame, in the ring: 1; none: 0. -1: what is there makes no sense, and is thrown away.
 * The frame's bytes may change at any time, and are nobody's any more with shm_release. */
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
            if (left >= there) break;            /* only ever before a frame */
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

/* Gives the room of what was read back to the writer. */
static void shm_release(struct shm_end *end) { __atomic_store_n(&end->in->read, end->read, __ATOMIC_RELEASE); }

/* Says that the reader has to be woken from now on. 0: there is something to read. */
static int shm_sleep(struct shm_end *end) {
    __atomic_store_n(&end->in->asleep, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&end->in->written, __ATOMIC_ACQUIRE) == end->read) return 1;
    __atomic_store_n(&end->in->asleep, 0, __ATOMIC_RELAXED);
    return 0;
}

/* Takes the bytes that woke it; notices when the other end has gone. */
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
