/* Live ports: AF_PACKET on interfaces, UDP datagrams that each carry a whole frame, or memory shared with a process on
 * this machine. One thread serves all of them in batches, and locks the switch while it processes a batch. No memory is
 * allocated for a packet. */
#ifndef SERENE_PORTS_H
#define SERENE_PORTS_H

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frames.h"
#include "pipeline.h"
#include "port.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

static int ports_init(struct runtime *runtime) {
    struct ports *ports = calloc(1, sizeof *ports);
    runtime->ports = ports;
    if (!ports) return -ENOMEM;
    ports->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ports->frames = malloc(BATCH * sizeof *ports->frames);
    ports->injected.bytes = malloc(RING_BYTES);
    if (ports->wake < 0 || !ports->frames || !ports->injected.bytes) return -ENOMEM;
    for (int i = 0; i < BATCH; i++) {
        ports->received_parts[i][0] = (struct iovec){&ports->virtio[i], sizeof ports->virtio[i]};
        ports->received_parts[i][1] = (struct iovec){ports->frames[i] + TAG_ROOM, FRAME_ROOM};
    }
    return 0;
}

static int port_insert(struct runtime *runtime, uint32_t number, int socket, const struct frame_ring *ring, int joins,
                       const struct sockaddr_in *peer) {
    struct port *port = calloc(1, sizeof *port);
    if (!port) {
        close(socket);
        return -ENOMEM;
    }
    *port = (struct port){.number = number, .socket = socket, .is_packet = ring != NULL, .joins = joins};
    if (ring) port->ring = *ring;
    if (peer) port->peer = *peer;
    int size = SOCKET_BUFFER;
    if (setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size))
        setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size))
        setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    port->next = ports_of(runtime)->first;
    ports_of(runtime)->first = port;
    return 0;
}

/* Returns 0, or a negative errno. */
static int port_open_interface(struct runtime *runtime, uint32_t number, const char *interface, int joins) {
    unsigned index = if_nametoindex(interface);
    if (!index) return -errno;
    int on = 1;
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
    struct packet_mreq promiscuous = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    struct frame_ring ring = {0};
    if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on)
        || setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on)
        || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on)
        || setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous)) {
        int error = errno;
        close(fd);
        return -error;
    }
    frame_ring_open(&ring, fd, interface);
    if (bind(fd, (struct sockaddr *)&address, sizeof address)) {
        int error = errno;
        frame_ring_close(&ring);
        close(fd);
        return -error;
    }
    return port_insert(runtime, number, fd, &ring, joins, NULL);
}

static int port_open_udp(struct runtime *runtime, uint32_t number, const char *host, uint16_t port,
                         const char *peer_host, uint16_t peer_port) {
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(peer_port)};
    if (inet_pton(AF_INET, host, &local.sin_addr) != 1) return -EINVAL;
    if (peer_port && inet_pton(AF_INET, peer_host, &peer.sin_addr) != 1) return -EINVAL;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    if (bind(fd, (struct sockaddr *)&local, sizeof local)) {
        int error = errno;
        close(fd);
        return -error;
    }
    return port_insert(runtime, number, fd, NULL, 0, &peer);
}

static int port_open_shm(struct runtime *runtime, uint32_t number, const char *path) {
    struct port *port = calloc(1, sizeof *port);
    struct shm_port *shm = calloc(1, sizeof *shm);
    int socket = port && shm ? shm_listen(shm, path) : -ENOMEM;
    if (socket < 0) {
        free(port);
        free(shm);
        return socket;
    }
    shm->end.socket = -1;
    *port = (struct port){.number = number, .socket = socket, .shm = shm, .next = ports_of(runtime)->first};
    ports_of(runtime)->first = port;
    return 0;
}

static void port_close(struct port *port) {
    for (int i = 0; i < 2; i++)
        if (port->captures[i].file) fclose(port->captures[i].file);
    frame_ring_close(&port->ring);
    close(port->socket);
    if (port->shm) shm_unlisten(port->shm);
    free(port->shm);
    free(port);
}

/* Creates message `number`, which begins with output `at`. Returns the output after it (index + 1, 0: none). `parts` is
 * the number of parts in use. */
static uint32_t port_message(struct runtime *runtime, struct port *port, uint32_t at, int number, uint32_t *parts) {
    struct ports *ports = ports_of(runtime);
    struct outputs *outputs = &runtime->outputs;
    struct iovec *own = ports->parts + *parts;
    const struct output *first = &outputs->items[at - 1];
    const uint8_t *frame = outputs->bytes + first->offset;
    uint32_t count = 1, used = 0, next = ports->next[at - 1];
    uint32_t lead = port->is_packet ? sizeof(struct virtio_net_hdr) : 0;
    _Static_assert(sizeof(struct virtio_net_hdr) == OUTPUT_LEAD, "each output has a plain header before it");
    own[used++] = (struct iovec){(void *)(frame - lead), lead + first->length};
    if (port->joins && next && run_begins(frame, first->length)) {
        uint32_t size = first->length - RUN_HEADER_BYTES, total = size, payload = size;
        while (next && count < RUN_MOST_PACKETS && *parts + used + 3 <= PARTS && payload == size) {
            const struct output *output = &outputs->items[next - 1];
            const uint8_t *more = outputs->bytes + output->offset;
            if (!run_begins(more, output->length) || !run_continues(frame, more, count)) break;
            payload = output->length - RUN_HEADER_BYTES;
            if (payload > size || total + payload > RUN_MOST_BYTES - UDP_BYTES) break;
            if (count == 1) {
                own[0] = (struct iovec){&ports->run_virtio[number], sizeof ports->run_virtio[number]};
                own[used++] = (struct iovec){ports->run_headers[number], RUN_HEADER_BYTES};
                own[used++] = (struct iovec){(void *)(frame + RUN_HEADER_BYTES), size};
            }
            own[used++] = (struct iovec){(void *)(more + RUN_HEADER_BYTES), payload};
            total += payload;
            count++;
            next = ports->next[next - 1];
        }
        if (count > 1) run_header(ports->run_headers[number], &ports->run_virtio[number], frame, size, total);
    }
    ports->sending[number].msg_hdr = (struct msghdr){
        .msg_iov = own, .msg_iovlen = used, .msg_name = port->is_packet ? NULL : &port->peer,
        .msg_namelen = port->is_packet ? 0 : sizeof port->peer};
    ports->packets[number] = count;
    *parts += used;
    return next;
}

static void port_send_shm(struct runtime *runtime, struct port *port, uint32_t at) {
    struct port_counts *counts = &runtime->counts[port->number];
    struct shm_end *end = &port->shm->end;
    for (; at; at = ports_of(runtime)->next[at - 1]) {
        const struct output *output = &runtime->outputs.items[at - 1];
        struct iovec frame = {runtime->outputs.bytes + output->offset, output->length};
        if (output->length && end->memory && shm_write(end, &frame, 1)) counts->sent++;
        else counts->dropped++;      /* no process, or it does not read, or no bytes: dropped */
    }
}

/* Rings into which frames are written directly, without another copy. */
static void rings_open(struct runtime *runtime) {
    for (struct port *port = ports_of(runtime)->first; port; port = port->next)
        if (port->shm && port->shm->end.memory && (int64_t)port->number != runtime->cpu_port)
            runtime->rings[port->number] = &port->shm->end;
}

/* Makes the frames written there visible to the processes. */
static void rings_close(struct runtime *runtime) {
    for (struct port *port = ports_of(runtime)->first; port; port = port->next) {
        if (!port->shm) continue;
        if (port->shm->end.memory) shm_publish(&port->shm->end);
        runtime->rings[port->number] = NULL;
    }
}

/* Sends the outputs of one port, from `at` (index + 1) on. */
static void port_send(struct runtime *runtime, struct port *port, uint32_t at) {
    struct ports *ports = ports_of(runtime);
    struct port_counts *counts = &runtime->counts[port->number];
    if (port->shm) {
        port_send_shm(runtime, port, at);
        return;
    }
    while (at) {
        int count = 0, sent = 0;
        uint32_t parts = 0;
        while (at && count < BATCH && parts + 3 <= PARTS) at = port_message(runtime, port, at, count++, &parts);
        int reachable = port->is_packet || port->peer.sin_port;
        while (reachable && sent < count) {
            int done = sendmmsg(port->socket, ports->sending + sent, (unsigned)(count - sent), 0);
            if (done <= 0 && (errno == EAGAIN || errno == ENOBUFS)) break;     /* the queue is full: dropped */
            if (done <= 0) counts->dropped += ports->packets[sent++];          /* skips a message that cannot be sent */
            for (; done > 0; done--) counts->sent += ports->packets[sent++];
        }
        while (sent < count) counts->dropped += ports->packets[sent++];
    }
}

/* Sends all outputs to ports or to the control plane. */
static void flush_outputs(struct runtime *runtime) {
    struct ports *ports = ports_of(runtime);
    struct outputs *outputs = &runtime->outputs;
    if (!outputs->count) return;
    STAGE(runtime, STAGE_SEND);
    if (ports->next_capacity < outputs->items_capacity) {
        uint32_t *next = realloc(ports->next, outputs->items_capacity * sizeof *next);
        if (!next) {
            for (uint32_t i = 0; i < outputs->count; i++)
                if (outputs->items[i].port < MAX_PORTS) runtime->counts[outputs->items[i].port].dropped++;
            outputs_clear(outputs);
            STAGE(runtime, STAGE_OUTSIDE);
            return;
        }
        ports->next = next;
        ports->next_capacity = outputs->items_capacity;
    }
    for (uint32_t i = 0; i < outputs->count; i++) {
        struct output *output = &outputs->items[i];
        if (runtime->cpu_port >= 0 && output->port == (uint32_t)runtime->cpu_port)
            ring_push(&runtime->cpu, "", 0, outputs->bytes + output->offset, output->length);
        if (output->port >= MAX_PORTS) continue;
        TRACED(capture_packet(runtime, output->port, outputs->bytes + output->offset, output->length, CAPTURE_OUT);)
        ports->next[i] = 0;
        if (ports->first_of[output->port]) {
            ports->next[ports->last_of[output->port] - 1] = i + 1;
        } else {
            ports->first_of[output->port] = i + 1;
        }
        ports->last_of[output->port] = i + 1;
    }
    for (struct port *port = ports->first; port; port = port->next)
        port_send(runtime, port, ports->first_of[port->number]);
    for (uint32_t i = 0; i < outputs->count; i++)
        if (outputs->items[i].port < MAX_PORTS) ports->first_of[outputs->items[i].port] = 0;
    outputs_clear(outputs);
    STAGE(runtime, STAGE_OUTSIDE);
}

/* Processes one message. Returns 0 if it was dropped. */
static int port_take(struct state *state, struct port *port, int i) {
    struct ports *ports = ports_of(&state->runtime);
    uint32_t length = ports->received[i].msg_len;
    uint8_t *frame = ports->frames[i] + TAG_ROOM;
    if (ports->received[i].msg_hdr.msg_flags & MSG_TRUNC) return 0;
    if (!port->is_packet) {
        if (!port->peer.sin_port) {
            port->peer = ports->from[i];
        } else if (ports->from[i].sin_port != port->peer.sin_port
                   || ports->from[i].sin_addr.s_addr != port->peer.sin_addr.s_addr) {
            return 0;            /* only the peer may send */
        }
        process_packet(state, port->number, frame, length);
        return 1;
    }
    struct virtio_net_hdr *virtio = &ports->virtio[i];
    if (length < sizeof *virtio) return 0;
    return process_frame(state, port->number, frame, length - sizeof *virtio, virtio,
                         tag_beside(&ports->received[i].msg_hdr));
}

/* Frames are copied before they are parsed, so that the process cannot change them meanwhile. */
static int port_receive_shm(struct state *state, struct port *port) {
    struct shm_end *end = &port->shm->end;
    uint8_t *copy = ports_of(&state->runtime)->frames[0];
    int count = 0, outcome = 0;
    if (!end->memory) return 0;
    for (; count < BATCH; count++) {
        const uint8_t *frame;
        uint32_t length;
        outcome = shm_read(end, &frame, &length);
        if (!outcome) break;
        if (outcome < 0) {
            state->runtime.counts[port->number].dropped++;
            continue;
        }
        memcpy(copy, frame, length);
        process_packet(state, port->number, copy, length);
        if (state->runtime.outputs.used > OUTPUT_BYTES) flush_outputs(&state->runtime);
    }
    if (count) shm_release(end);
    return count;
}

/* Receives up to `most` messages of the socket and processes them. Returns their number, or -1. */
static int port_receive_socket(struct state *state, struct port *port, int most) {
    struct ports *ports = ports_of(&state->runtime);
    for (int i = 0; i < most; i++) {
        ports->received[i].msg_hdr = (struct msghdr){
            .msg_iov = ports->received_parts[i] + !port->is_packet,
            .msg_iovlen = port->is_packet ? 2 : 1,
            .msg_control = port->is_packet ? ports->control[i] : NULL,
            .msg_controllen = port->is_packet ? sizeof ports->control[i] : 0,
            .msg_name = port->is_packet ? NULL : &ports->from[i],
            .msg_namelen = port->is_packet ? 0 : sizeof ports->from[i]};
    }
    int count = recvmmsg(port->socket, ports->received, (unsigned)most, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) {
        if (!port_take(state, port, i)) state->runtime.counts[port->number].dropped++;
        if (state->runtime.outputs.used > OUTPUT_BYTES) flush_outputs(&state->runtime);
    }
    return count;
}

/* Processes the frame in a slot. Returns 0 if it was dropped. */
static int port_take_slot(struct state *state, struct port *port, struct tpacket2_hdr *slot, uint32_t status) {
    struct virtio_net_hdr virtio;            /* copied, because a tag is written over it */
    uint8_t *frame = (uint8_t *)slot + slot->tp_mac;
    if (slot->tp_snaplen < slot->tp_len) return 0;       /* too long for the slot, and the socket was full */
    memcpy(&virtio, frame - sizeof virtio, sizeof virtio);
    return process_frame(state, port->number, frame, slot->tp_snaplen, &virtio,
                         vlan_tag(status, slot->tp_vlan_tpid, slot->tp_vlan_tci));
}

static int port_receive_ring(struct state *state, struct port *port) {
    struct frame_ring *ring = &port->ring;
    int count = 0;
    for (uint32_t status; count < BATCH && (status = frame_status(ring, 0));) {
        if (status & TP_STATUS_COPY) {       /* these slots' frames wait at the socket */
            int waiting = 1, got = 0;
            while (count + waiting < BATCH && frame_status(ring, (uint32_t)waiting) & TP_STATUS_COPY) waiting++;
            for (int more; got < waiting; got += more > 0 ? more : 0) {
                more = port_receive_socket(state, port, waiting - got);
                if (!more || (more < 0 && errno != ENETDOWN && errno != EINTR)) break;
            }
            for (int i = 0; i < waiting; i++) frame_release(ring);
            count += waiting;
            continue;
        }
        for (int line = 0; line < 3; line++) __builtin_prefetch((uint8_t *)frame_slot(ring, 3) + 64 * line);
        if (!port_take_slot(state, port, frame_slot(ring, 0), status)) state->runtime.counts[port->number].dropped++;
        frame_release(ring);
        count++;
        if (state->runtime.outputs.used > OUTPUT_BYTES) flush_outputs(&state->runtime);
    }
    return count;
}

static int port_receive(struct state *state, struct port *port) {
    STAGE(&state->runtime, STAGE_RECEIVE);
    int count = port->shm           ? port_receive_shm(state, port)
                : port->ring.memory ? port_receive_ring(state, port)
                                    : port_receive_socket(state, port, BATCH);
    STAGE(&state->runtime, STAGE_OUTSIDE);
    return count;
}

static void inject_waiting(struct state *state) {
    struct ring *injected = &ports_of(&state->runtime)->injected;
    for (size_t at = 0; at < injected->used;) {
        uint32_t length;
        memcpy(&length, injected->bytes + at, 4);
        process_packet(state, (uint32_t)state->runtime.cpu_port, injected->bytes + at + 4, length);
        if (state->runtime.outputs.used > OUTPUT_BYTES) flush_outputs(&state->runtime);
        at += 4 + length;
    }
    injected->used = 0;
}

/* The descriptors to poll: the wake-up, the ports' sockets, and the processes at shared-memory ports. */
static int ports_waits(struct runtime *runtime, struct pollfd *waits) {
    int count = 1;
    waits[0] = (struct pollfd){.fd = ports_of(runtime)->wake, .events = POLLIN};
    for (struct port *port = ports_of(runtime)->first; port; port = port->next) {
        if (count + 2 > WAITS) break;
        port->wait = count;
        waits[count++] = (struct pollfd){.fd = port->socket, .events = POLLIN};
        if (port->shm) waits[count++] = (struct pollfd){.fd = port->shm->end.socket, .events = POLLIN};
    }
    return count;
}

/* Whether shared memory has no frames. If so, the next writer wakes this thread. */
static int ports_sleep(struct runtime *runtime) {
    for (struct port *port = ports_of(runtime)->first; port; port = port->next)
        if (port->shm && port->shm->end.memory && !shm_sleep(&port->shm->end)) return 0;
    return 1;
}

static void ports_attend(struct runtime *runtime, const struct pollfd *waits) {
    for (struct port *port = ports_of(runtime)->first; port; port = port->next) {
        if (!port->wait) continue;
        const struct pollfd *wait = waits + port->wait;
        int error, came = wait[0].fd == port->socket;
        if (came && port->shm && (wait[0].revents || wait[1].revents)) shm_attend(port->shm, port->socket);
        if (came && wait[0].revents & POLLERR)       /* interface down: clears the error, or poll would not wait */
            getsockopt(port->socket, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error});
        port->wait = 0;
    }
}

static void *ports_thread(void *argument) {
    struct state *state = argument;
    struct runtime *runtime = &state->runtime;
    struct ports *ports = ports_of(runtime);
    struct pollfd waits[WAITS];
    int busy = 0;
    while (ports->running) {
        lock_for_packets(runtime);
        int count = ports_waits(runtime, waits);
        if (!busy) busy = !ports_sleep(runtime);
        pthread_mutex_unlock(&runtime->lock);
        if (poll(waits, (nfds_t)count, busy ? 0 : -1) < 0 && errno != EINTR) usleep(10000);   /* no memory at present */

        uint64_t ignored;
        while (waits[0].revents && read(ports->wake, &ignored, sizeof ignored) > 0) {}
        lock_for_packets(runtime);
        ports_attend(runtime, waits);
        pthread_mutex_unlock(&runtime->lock);
        busy = ports->running;
        for (int turn = 0; turn < TURNS && busy && ports->running; turn++) {
            busy = 0;
            lock_for_packets(runtime);
            rings_open(runtime);
            inject_waiting(state);
            for (struct port *port = ports->first; port; port = port->next) busy |= port_receive(state, port) > 0;
            flush_outputs(runtime);
            rings_close(runtime);
            TRACED(captures_flush(runtime);)
            TRACED(if (runtime->trace && runtime->trace->used) pthread_cond_broadcast(&runtime->events);)
            if (runtime->cpu.used || runtime->digests.used) pthread_cond_broadcast(&runtime->events);
            pthread_mutex_unlock(&runtime->lock);
        }
    }
    return NULL;
}

static void ports_wake(struct runtime *runtime) {
    uint64_t one = 1;
    if (write(ports_of(runtime)->wake, &one, sizeof one) < 0) { /* full: the thread is awake already */ }
}

#endif
