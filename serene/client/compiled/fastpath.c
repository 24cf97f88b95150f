/* A worker's packets without Python in between: numbers to packets and back, and an exchange without anything unusual.
 *
 * The common case: slots are sent for the first time, answers and releases of the worker's own epoch come in. All else
 * (a nudge, another epoch, another session, a loss, silence) ends the call, and serene.client.protocol.protocol decides. It
 * works on the same arrays, so it can take over in the middle of an iteration. Rules that both have are the same, and
 * tests/client/test_fastpath.py plays the same packets to both. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { HEADER_BYTES = 40, BATCH = 128, LARGEST_LANES = 2304 };
enum { OP_PUSH = 0x02, OP_ANSWER = 0x82, UNBOUNDED = 255, LARGEST_READ_MODE = 1 };
enum state { UNSENT, IN_FLIGHT, ANSWERED };
enum outcome { ALL_ANSWERED, SILENCE, ODD_PACKETS, OVERTAKEN, WOKEN, BROKEN, DISAGREEMENT, NO_MORE, TIME_UP, GO_ON };

/* Offsets in a packet (serene.wire.SERENE_FIELDS). */
enum { AT_OP = 1, AT_JOB = 2, AT_WORKER = 3, AT_SESSION = 4, AT_EPOCH = 8, AT_ROUND = 12, AT_SEQ = 16, AT_SLOT = 20,
       AT_TOTAL = 24, AT_SEEN = 28, AT_STALENESS = 36, AT_READ_MODE = 38 };

struct exchange {                /* serene.client.compiled.fastpath._Exchange */
    uint8_t *state, *in_network; /* an element for each slot, down to `totals` */
    int32_t *attempts;
    int64_t *order;
    double *sent_at;
    uint32_t *awaited, *rounds, *totals;
    uint32_t *values;            /* slots x lanes, as read */
    uint8_t *payloads;           /* slots x payload_bytes */
    uint8_t *policy;             /* HEADER_BYTES: the answer accepted last */
    uint8_t *rows;               /* BATCH x row_bytes: what was received */
    uint32_t *odd_rows, *odd_lengths;
    uint8_t *head, *expected;    /* before each payload sent and received; head_bytes may be 0 */
    struct shm_end *shm;         /* memory shared with the switch, in the socket's place; or NULL */
    double window, largest_window, smoothed, variation, first_timeout, shortest_timeout, longest_timeout;
    double heard_at, busy_at, pace_s, waited_s;
    int64_t transmissions, latest_answered, sent, received, releases, ignored;
    uint32_t slots, lanes, payload_bytes, row_bytes, head_bytes;
    uint32_t session, epoch, newest_epoch, seen, odd, backoff, reordering;
    uint32_t run_most;           /* packets in one message, which the kernel cuts apart; 1: it cannot */
    uint8_t job, worker, pulling, stalled, flowing, measured;
    int32_t socket, error;
    int32_t refused;             /* errno of the first packet that the network did not take; 0: it took all */
};

#define RING_ROOM_S 0.001        /* after which a full ring is looked at again: nothing signals that it has room */

static const int TRANSIENT[] = {
    EAGAIN, ENOBUFS, ENOMEM, ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, ENODEV, ENETRESET, EMSGSIZE,
    EPERM, EACCES, EADDRNOTAVAIL, ENOPROTOOPT, EPROTO, ETIMEDOUT, EIO, ENXIO,
};

static uint32_t read32(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return __builtin_bswap32(word);
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* -- numbers ------------------------------------------------------------------------------------------------ */

/* float32[count], a vector, into packets: serene.fixedpoint.quantise, big-endian. Returns how many values were clipped,
 * or -1 when one is not finite. */
int64_t quantise(const float *from, uint64_t count, double scale, double limit, uint8_t *payloads,
                 uint32_t payload_bytes, uint32_t lanes) {
    int64_t clipped = 0;
    int finite = 1;
    while (count) {
        uint64_t part = lanes < count ? lanes : count;
        uint32_t *to = (uint32_t *)(payloads + HEADER_BYTES);
        uint32_t over = 0, bad = 0;
        for (uint64_t i = 0; i < part; i++) {
            double value = from[i];
            over += fabs(value) > limit;
            bad |= !(fabsf(from[i]) <= FLT_MAX);
            value = value < -limit ? -limit : value;
            value = value > limit ? limit : value;
            to[i] = __builtin_bswap32((uint32_t)(int32_t)rint(value * scale));
        }
        clipped += over;
        finite &= !bad;
        from += part, count -= part, payloads += payload_bytes;
    }
    return finite ? clipped : -1;
}

/* int32[count], a difference of two reads, becomes float32[count] in its place. */
void dequantise(int32_t *difference, uint64_t count, double scale) {
    for (uint64_t i = 0; i < count; i++) {
        float value = (float)((double)difference[i] / scale);
        memcpy(difference + i, &value, sizeof value);
    }
}

/* -- an exchange -------------------------------------------------------------------------------------------- */

struct flight {
    uint32_t in_flight, in_network;  /* slots: not answered; of those, not lost and not waiting in the switch */
    uint32_t cursor;                 /* the number of the slot to look at next */
    double sent_last;
};

static struct flight flight_of(const struct exchange *exchange) {
    struct flight flight = {0};
    for (uint32_t slot = 0; slot < exchange->slots; slot++) {
        if (exchange->state[slot] != IN_FLIGHT) continue;
        flight.in_flight++;
        flight.in_network += exchange->in_network[slot];
        if (exchange->sent_at[slot] > flight.sent_last) flight.sent_last = exchange->sent_at[slot];
    }
    return flight;
}

/* Moves the cursor to the next unsent slot; how many slots from there on can be sent together, for their packets lie
 * side by side. 0: none is left. */
static uint32_t next_run(const struct exchange *exchange, struct flight *at, uint32_t most) {
    while (at->cursor < exchange->slots && exchange->state[at->cursor] != UNSENT) at->cursor++;
    if (most > exchange->slots - at->cursor) most = exchange->slots - at->cursor;
    uint32_t run = 0;
    while (run < most && exchange->state[at->cursor + run] == UNSENT) run++;
    return run;
}

/* A message of the packets of `run` slots, which the kernel cuts apart if there are several. */
static void prepare(const struct exchange *exchange, uint32_t slot, uint32_t run, struct msghdr *message,
                    struct iovec parts[2], void *control) {
    parts[0] = (struct iovec){exchange->head, exchange->head_bytes};
    parts[1] = (struct iovec){exchange->payloads + (size_t)slot * exchange->payload_bytes,
                              (size_t)run * exchange->payload_bytes};
    message->msg_iov = exchange->head_bytes ? parts : parts + 1;
    message->msg_iovlen = exchange->head_bytes ? 2 : 1;
    if (run == 1) return;
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(sizeof(uint16_t));
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(uint16_t)), .cmsg_level = IPPROTO_UDP,
                               .cmsg_type = UDP_SEGMENT};
    uint16_t size = (uint16_t)exchange->payload_bytes;
    memcpy(CMSG_DATA(header), &size, sizeof size);
}

/* Bytes of each packet that the kernel has put together in one buffer. */
static uint32_t segment_bytes(struct msghdr *message, uint32_t length) {
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header))
        if (header->cmsg_level == IPPROTO_UDP && header->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(header), sizeof size);
            if (size > 0) return (uint32_t)size;
        }
    return length;
}

/* serene.client.transport.transport.TRANSIENT: errors of a network that is down for a moment. */
static int is_transient(int error) {
    for (uint32_t i = 0; i < sizeof TRANSIENT / sizeof *TRANSIENT; i++)
        if (TRANSIENT[i] == error) return 1;
    return 0;
}

/* As sendmmsg. A ring that is full, or that no switch reads, takes nothing. */
static int send_messages(const struct exchange *exchange, struct mmsghdr *messages, unsigned count) {
    struct shm_end *shm = exchange->shm;
    if (!shm) return sendmmsg(exchange->socket, messages, count, MSG_DONTWAIT);
    errno = ECONNREFUSED;
    if (!shm->memory || shm->closed) return -1;
    unsigned sent = 0;
    while (sent < count && shm_write(shm, messages[sent].msg_hdr.msg_iov, messages[sent].msg_hdr.msg_iovlen)) sent++;
    if (sent) shm_publish(shm);
    errno = EAGAIN;
    return sent ? (int)sent : -1;
}

/* First transmissions, as far as the window allows. */
static int send_fresh(struct exchange *exchange, struct flight *at) {
    while (at->in_network < (uint32_t)exchange->window) {
        struct mmsghdr messages[BATCH];
        struct iovec parts[BATCH][2];
        _Alignas(struct cmsghdr) uint8_t control[BATCH][CMSG_SPACE(sizeof(uint16_t))];
        uint32_t first[BATCH], run[BATCH];
        unsigned count = 0;
        double now = now_s();
        memset(messages, 0, sizeof messages);
        memset(control, 0, sizeof control);
        while (count < BATCH && at->in_network < (uint32_t)exchange->window) {
            uint32_t room = (uint32_t)exchange->window - at->in_network;
            run[count] = next_run(exchange, at, room < exchange->run_most ? room : exchange->run_most);
            if (!run[count]) break;
            first[count] = at->cursor;
            prepare(exchange, at->cursor, run[count], &messages[count].msg_hdr, parts[count], control[count]);
            for (uint32_t i = 0; i < run[count]; i++, at->cursor++) {
                exchange->state[at->cursor] = IN_FLIGHT;
                exchange->in_network[at->cursor] = 1;
                exchange->order[at->cursor] = exchange->transmissions++;
                exchange->attempts[at->cursor]++;
                exchange->sent_at[at->cursor] = now;
            }
            exchange->sent += run[count];
            at->in_flight += run[count];
            at->in_network += run[count++];
        }
        if (!count) return 0;
        at->sent_last = now;
        if (!exchange->stalled) exchange->busy_at = now;
        for (unsigned sent = 0; sent < count;) {
            int done = send_messages(exchange, messages + sent, count - sent);
            if (done > 0) {
                sent += (unsigned)done;
            } else if (is_transient(errno) && !(exchange->run_most > 1 && errno == EIO)) {
                if (!exchange->refused) exchange->refused = errno;
                break;           /* to the protocol, losses */
            } else if (exchange->run_most > 1 && (errno == EIO || errno == EINVAL)) {
                exchange->run_most = 1;      /* the interface does not cut, or has no checksums: packet by packet */
                for (unsigned i = sent; i < count; i++)
                    for (uint32_t slot = first[i]; slot < first[i] + run[i]; slot++, exchange->sent--) {
                        exchange->state[slot] = UNSENT;
                        exchange->attempts[slot]--;
                    }
                *at = flight_of(exchange);
                break;
            } else if (errno != EINTR) {
                exchange->error = errno;
                return -1;
            }
        }
    }
    return 0;
}

/* Whether a packet is an answer of this job and worker that needs none of the protocol's decisions
 * (serene.client.protocol.protocol.Protocol.receive). */
static int is_plain(const struct exchange *exchange, const uint8_t *packet, uint32_t length) {
    return length == exchange->payload_bytes && packet[AT_OP] == OP_ANSWER && packet[AT_JOB] == exchange->job
           && packet[AT_WORKER] == exchange->worker && read32(packet + AT_SESSION) == exchange->session
           && read32(packet + AT_EPOCH) <= exchange->newest_epoch && read32(packet + AT_SLOT) < exchange->slots
           && packet[AT_READ_MODE] <= LARGEST_READ_MODE
           && (!read32(packet + AT_SEQ) || read32(packet + AT_SEEN) <= read32(packet + AT_SEQ));
}

/* A switch's port also carries ordinary frames: ours are IPv4, UDP, from the switch, and from and to the right ports. */
static int is_framed(const struct exchange *exchange, const uint8_t *row) {
    const uint8_t *expected = exchange->expected;
    return !exchange->head_bytes || (!memcmp(row + 12, expected + 12, 2) && row[23] == expected[23]
                                     && !memcmp(row + 26, expected + 26, 4)
                                     && !memcmp(row + 34, expected + 34, 4));
}

struct batch {
    double sent_last;            /* when the last of the `once` slots was sent */
    uint32_t accepted;           /* slots that were answered */
    uint32_t echoes, once;       /* of these: by an echo; by an echo of their only transmission */
    uint32_t in_network;         /* and those that were in the network */
};

static int is_echo(const struct exchange *exchange, const uint8_t *packet, uint32_t slot) {
    return read32(packet + AT_SEQ) == exchange->awaited[slot];
}

/* Whether an answer ends the slot's contribution. */
static int is_awaited(const struct exchange *exchange, const uint8_t *packet, uint32_t slot) {
    int permitted = packet[AT_STALENESS] == UNBOUNDED
                    || exchange->rounds[slot] < (uint64_t)read32(packet + AT_ROUND) + packet[AT_STALENESS];
    int release = !read32(packet + AT_SEQ) && !exchange->pulling && permitted
                  && read32(packet + AT_EPOCH) == exchange->epoch;
    return exchange->state[slot] == IN_FLIGHT && (is_echo(exchange, packet, slot) || release);
}

/* Counts an answer that was awaited, and ends the slot's contribution. */
static void answered(struct exchange *exchange, const uint8_t *packet, uint32_t slot, struct batch *batch) {
    if (!is_echo(exchange, packet, slot)) {
        exchange->releases++;
    } else if (batch->echoes++, exchange->attempts[slot] == 1) {
        batch->once++;
        if (exchange->sent_at[slot] > batch->sent_last) batch->sent_last = exchange->sent_at[slot];
    }
    exchange->state[slot] = ANSWERED;
    batch->in_network += exchange->in_network[slot];
    if (exchange->order[slot] > exchange->latest_answered) exchange->latest_answered = exchange->order[slot];
    memcpy(exchange->policy, packet, HEADER_BYTES);
    uint32_t seen = read32(packet + AT_SEEN);
    if (seen > exchange->seen) exchange->seen = seen;
    batch->accepted++;
}

static void accept_answer(struct exchange *exchange, const uint8_t *packet, struct batch *batch) {
    uint32_t slot = read32(packet + AT_SLOT), total = read32(packet + AT_TOTAL);
    if (!is_awaited(exchange, packet, slot)) {
        exchange->ignored++;
        return;
    }
    if ((int32_t)(total - exchange->totals[slot]) > 0) {     /* reads go forward only */
        exchange->totals[slot] = total;
        uint32_t *to = exchange->values + (size_t)slot * exchange->lanes;
        const uint8_t *from = packet + HEADER_BYTES;
        for (uint32_t lane = 0; lane < exchange->lanes; lane++) to[lane] = read32(from + 4 * lane);
    }
    answered(exchange, packet, slot, batch);
}

struct pool;
static int receive_pieces(struct pool *pool, struct flight *at);

static void measured(struct exchange *exchange, double sample) {
    if (!exchange->measured) {
        exchange->measured = 1;
        exchange->smoothed = sample;
        exchange->variation = sample / 2;
    } else {
        exchange->variation += (fabs(sample - exchange->smoothed) - exchange->variation) / 4;
        exchange->smoothed += (sample - exchange->smoothed) / 8;
    }
}

static double timeout_s(const struct exchange *exchange) {
    double base = exchange->first_timeout;
    if (exchange->measured) {
        base = exchange->smoothed + 4 * exchange->variation;
        if (base < exchange->shortest_timeout) base = exchange->shortest_timeout;
    }
    for (uint32_t i = 0; i < exchange->backoff; i++) base *= 2;
    return base < exchange->longest_timeout ? base : exchange->longest_timeout;
}

static int all_answered(const struct exchange *exchange) {
    for (uint32_t slot = 0; slot < exchange->slots; slot++)
        if (exchange->state[slot] != ANSWERED) return 0;
    return 1;
}

/* Learns from a batch of answers about the network, and widens the window. */
static void progressed(struct exchange *exchange, struct flight *at, const struct batch *batch, double now) {
    at->in_flight -= batch->accepted;
    at->in_network -= batch->in_network;
    if (batch->once) measured(exchange, now - batch->sent_last);
    if (exchange->flowing) {
        double sample = (now - exchange->heard_at) / batch->accepted;
        exchange->pace_s += exchange->pace_s > 0 ? (sample - exchange->pace_s) / 8 : sample;
    } else if (!batch->echoes) {
        double network = 2 * batch->accepted * exchange->pace_s;
        if (exchange->measured && exchange->smoothed > network) network = exchange->smoothed;
        double waited = now - exchange->busy_at - network;
        if (waited > 0) exchange->waited_s += waited;
    }
    exchange->flowing = at->in_flight || !all_answered(exchange);
    exchange->busy_at = exchange->heard_at = now;
    exchange->stalled = 0;
    exchange->window += batch->accepted / exchange->window;
    if (exchange->window > exchange->largest_window) exchange->window = exchange->largest_window;
    exchange->backoff = 0;
}

/* As recvmmsg: frames of the ring into the rows. */
static int receive_shm(struct exchange *exchange, struct mmsghdr *messages) {
    struct shm_end *shm = exchange->shm;
    const uint8_t *frame;
    int count = 0, outcome;
    uint32_t length;
    if (!shm->memory) return 0;
    while (count < BATCH && (outcome = shm_read(shm, &frame, &length))) {
        if (outcome < 0 || length > exchange->row_bytes) continue;
        memcpy(exchange->rows + (size_t)count * exchange->row_bytes, frame, length);
        messages[count++].msg_len = length;
    }
    shm_release(shm);
    return count;
}

/* Takes in whatever has arrived; how many slots it answered, or -1. Odd packets stay in their rows. */
static int receive_batch(struct exchange *exchange, struct flight *at) {
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){exchange->rows + (size_t)i * exchange->row_bytes, exchange->row_bytes};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    int count = exchange->shm ? receive_shm(exchange, messages)
                              : recvmmsg(exchange->socket, messages, BATCH, MSG_DONTWAIT, NULL);
    if (count < 0) {
        if (errno == EINTR || is_transient(errno)) return 0;   /* an error that an earlier send has met */
        exchange->error = errno;
        return -1;
    }
    double now = now_s();
    struct batch batch = {0};
    for (int i = 0; i < count; i++) {
        const uint8_t *row = exchange->rows + (size_t)i * exchange->row_bytes;
        uint32_t length = messages[i].msg_len, head = exchange->head_bytes;
        if (length < head || !is_framed(exchange, row)) continue;
        if (is_plain(exchange, row + head, length - head)) {
            exchange->received++;
            accept_answer(exchange, row + head, &batch);
        } else {
            exchange->odd_rows[exchange->odd] = (uint32_t)i;
            exchange->odd_lengths[exchange->odd++] = length - head;
        }
    }
    if (batch.accepted) progressed(exchange, at, &batch, now);
    return (int)batch.accepted;
}

/* A slot sent long before one that was answered is lost, not late. */
static int overtaken(const struct exchange *exchange) {
    if (exchange->latest_answered <= exchange->reordering) return 0;
    for (uint32_t slot = 0; slot < exchange->slots; slot++)
        if (exchange->state[slot] == IN_FLIGHT
            && exchange->order[slot] + exchange->reordering < exchange->latest_answered)
            return 1;
    return 0;
}

/* Waits for packets and takes them in. Returns GO_ON, or why to stop. room: wait for room to send, too. */
static int await(struct exchange *exchange, struct flight *flight, struct pool *pool, int room) {
    double from = flight->sent_last > exchange->heard_at ? flight->sent_last : exchange->heard_at;
    double left = from + timeout_s(exchange) - now_s();
    if (left < 0) left = 0;      /* a worker that was kept from running first looks whether something has come */
    struct timespec wait = {(time_t)left, (long)(1e9 * (left - floor(left)))};
    short events = room ? POLLIN | POLLOUT : POLLIN;
    struct pollfd waits = {.fd = exchange->socket, .events = events};
    struct shm_end *shm = exchange->shm;
    int there = shm && shm->memory && !shm_sleep(shm);
    if (shm) waits = (struct pollfd){.fd = shm->closed ? -1 : shm->socket, .events = POLLIN};
    if (there) wait = (struct timespec){0};
    else if (shm && room && left > RING_ROOM_S) wait = (struct timespec){0, (long)(1e9 * RING_ROOM_S)};
    int ready = ppoll(&waits, 1, &wait, NULL);
    if (ready < 0) {
        if (errno == EINTR) return WOKEN;
        exchange->error = errno;
        return BROKEN;
    }
    if (shm && waits.revents) shm_woken(shm);
    if (!ready && !there) return shm && room && left > RING_ROOM_S ? GO_ON : SILENCE;
    int answered = pool ? receive_pieces(pool, flight) : receive_batch(exchange, flight);
    if (answered < 0) return BROKEN;
    if (exchange->odd) return ODD_PACKETS;
    if (answered && overtaken(exchange)) return OVERTAKEN;
    return GO_ON;
}

/* Goes on until every slot is answered or something happens that the protocol has to decide. */
int run(struct exchange *exchange) {
    struct flight flight = flight_of(exchange);
    exchange->odd = 0;
    exchange->refused = 0;
    for (;;) {
        if (send_fresh(exchange, &flight)) return BROKEN;
        if (!flight.in_flight) return ALL_ANSWERED;
        int outcome = await(exchange, &flight, NULL, 0);
        if (outcome != GO_ON) return outcome;
    }
}
