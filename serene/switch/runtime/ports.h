/* Live ports: AF_PACKET on interfaces, or UDP datagrams that each carry a whole frame. One thread serves all of
 * them in batches; the lock is held while a batch is processed. */
#ifndef SERENE_PORTS_H
#define SERENE_PORTS_H

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

enum { BATCH = 64, SOCKET_BUFFER = 8 << 20 };
enum { FRAME_ROOM = 10240 };     /* of a received frame; jumbo frames are 9,018 bytes */

struct port {
    uint32_t number;
    int socket;
    int is_packet;               /* AF_PACKET: frames come with a virtio header */
    struct sockaddr_in peer;     /* UDP; port 0 until the first datagram tells */
    struct port *next;
};

struct ports {
    struct port *first;
    int wake;                    /* eventfd: something changed, or stop */
    volatile int running;
    pthread_t thread;
    uint8_t (*frames)[FRAME_ROOM];
    struct virtio_net_hdr *virtio;
    struct ring injected;        /* packet-outs waiting for the thread */
};

static struct ports *ports_of(struct runtime *runtime) { return runtime->ports; }

static int ports_init(struct runtime *runtime) {
    struct ports *ports = calloc(1, sizeof *ports);
    runtime->ports = ports;
    if (!ports) return -ENOMEM;
    ports->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ports->frames = malloc(BATCH * sizeof *ports->frames);
    ports->virtio = calloc(BATCH, sizeof *ports->virtio);
    ports->injected.bytes = malloc(RING_BYTES);
    return ports->wake < 0 || !ports->frames || !ports->virtio || !ports->injected.bytes ? -ENOMEM : 0;
}

static int port_insert(struct runtime *runtime, uint32_t number, int socket, int is_packet,
                       const struct sockaddr_in *peer) {
    struct port *port = calloc(1, sizeof *port);
    if (!port) {
        close(socket);
        return -ENOMEM;
    }
    *port = (struct port){.number = number, .socket = socket, .is_packet = is_packet};
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

/* 0, or a negative errno. */
static int port_open_interface(struct runtime *runtime, uint32_t number, const char *interface) {
    unsigned index = if_nametoindex(interface);
    if (!index) return -errno;
    int on = 1;
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
    struct packet_mreq promiscuous = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on)
        || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on)
        || setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous)
        || bind(fd, (struct sockaddr *)&address, sizeof address)) {
        int error = errno;
        close(fd);
        return -error;
    }
    return port_insert(runtime, number, fd, 1, NULL);
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
    return port_insert(runtime, number, fd, 0, &peer);
}

/* A sender that leaves the checksum to its (virtual) hardware hands over a half-made one: finish it, or the
 * receiver would drop the packet. */
static void complete_checksum(uint8_t *frame, uint32_t length, const struct virtio_net_hdr *virtio) {
    if (!(virtio->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)) return;
    uint32_t start = virtio->csum_start, at = start + virtio->csum_offset;
    if (start >= length || at + 2 > length) return;
    uint64_t sum = checksum_csum16(frame + start, length - start);
    if (!sum) sum = 0xffff;
    frame[at] = (uint8_t)(sum >> 8);
    frame[at + 1] = (uint8_t)sum;
}

static int port_receive(struct state *state, struct port *port) {
    struct ports *ports = ports_of(&state->runtime);
    struct mmsghdr messages[BATCH] = {0};
    struct iovec parts[BATCH][2];
    struct sockaddr_in from[BATCH];
    for (int i = 0; i < BATCH; i++) {
        parts[i][0] = (struct iovec){&ports->virtio[i], sizeof ports->virtio[i]};
        parts[i][1] = (struct iovec){ports->frames[i], FRAME_ROOM};
        messages[i].msg_hdr.msg_iov = port->is_packet ? parts[i] : parts[i] + 1;
        messages[i].msg_hdr.msg_iovlen = port->is_packet ? 2 : 1;
        if (!port->is_packet) {
            messages[i].msg_hdr.msg_name = &from[i];
            messages[i].msg_hdr.msg_namelen = sizeof from[i];
        }
    }
    int count = recvmmsg(port->socket, messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) {
        uint32_t length = messages[i].msg_len;
        if (port->is_packet) {
            if (length < sizeof ports->virtio[i]) continue;
            length -= sizeof ports->virtio[i];
        } else if (!port->peer.sin_port) {
            port->peer = from[i];
        } else if (from[i].sin_port != port->peer.sin_port
                   || from[i].sin_addr.s_addr != port->peer.sin_addr.s_addr) {
            state->runtime.counts[port->number].dropped++;      /* nobody's but the peer's */
            continue;
        }
        if (messages[i].msg_hdr.msg_flags & MSG_TRUNC) {
            state->runtime.counts[port->number].dropped++;
            continue;
        }
        if (port->is_packet) complete_checksum(ports->frames[i], length, &ports->virtio[i]);
        process_packet(state, port->number, ports->frames[i], length);
    }
    return count;
}

static void port_send(struct runtime *runtime, struct port *port) {
    static struct virtio_net_hdr plain;
    struct outputs *outputs = &runtime->outputs;
    struct mmsghdr messages[BATCH] = {0};
    struct iovec parts[BATCH][2];
    uint32_t at = 0;
    while (at < outputs->count) {
        int count = 0;
        for (; at < outputs->count && count < BATCH; at++) {
            struct output *output = &outputs->items[at];
            if (output->port != port->number) continue;
            parts[count][0] = (struct iovec){&plain, sizeof plain};
            parts[count][1] = (struct iovec){outputs->bytes + output->offset, output->length};
            messages[count].msg_hdr = (struct msghdr){
                .msg_iov = port->is_packet ? parts[count] : parts[count] + 1,
                .msg_iovlen = port->is_packet ? 2 : 1,
                .msg_name = port->is_packet ? NULL : &port->peer,
                .msg_namelen = port->is_packet ? 0 : sizeof port->peer};
            count++;
        }
        int sent = 0;
        if (port->is_packet || port->peer.sin_port) {
            while (sent < count) {
                int done = sendmmsg(port->socket, messages + sent, (unsigned)(count - sent), 0);
                if (done > 0) {
                    sent += done;
                } else if (errno == EAGAIN || errno == ENOBUFS) {
                    break;       /* the queue is full: a switch drops */
                } else {
                    runtime->counts[port->number].dropped++;
                    messages[sent] = messages[count - 1];       /* step over the one that cannot go */
                    count--;
                }
            }
        }
        runtime->counts[port->number].sent += (uint64_t)sent;
        runtime->counts[port->number].dropped += (uint64_t)(count - sent);
    }
}

/* Everything in the outputs leaves, or goes to the control plane. */
static void flush_outputs(struct runtime *runtime) {
    struct outputs *outputs = &runtime->outputs;
    if (!outputs->count) return;
    for (struct port *port = ports_of(runtime)->first; port; port = port->next) port_send(runtime, port);
    for (uint32_t i = 0; i < outputs->count; i++) {
        struct output *output = &outputs->items[i];
        if (runtime->cpu_port >= 0 && output->port == (uint32_t)runtime->cpu_port)
            ring_push(&runtime->cpu, "", 0, outputs->bytes + output->offset, output->length);
    }
    outputs_clear(outputs);
}

static void inject_waiting(struct state *state) {
    struct ring *injected = &ports_of(&state->runtime)->injected;
    for (size_t at = 0; at < injected->used;) {
        uint32_t length;
        memcpy(&length, injected->bytes + at, 4);
        process_packet(state, (uint32_t)state->runtime.cpu_port, injected->bytes + at + 4, length);
        at += 4 + length;
    }
    injected->used = 0;
}

static void *ports_thread(void *argument) {
    struct state *state = argument;
    struct runtime *runtime = &state->runtime;
    struct ports *ports = ports_of(runtime);
    struct pollfd waits[MAX_PORTS + 1];
    while (ports->running) {
        lock_for_packets(runtime);
        int count = 1;
        waits[0] = (struct pollfd){.fd = ports->wake, .events = POLLIN};
        for (struct port *port = ports->first; port && count <= MAX_PORTS; port = port->next)
            waits[count++] = (struct pollfd){.fd = port->socket, .events = POLLIN};
        pthread_mutex_unlock(&runtime->lock);
        if (poll(waits, (nfds_t)count, -1) < 0 && errno != EINTR) break;

        uint64_t ignored;
        while (read(ports->wake, &ignored, sizeof ignored) > 0) {}
        int busy = ports->running;
        while (busy && ports->running) {
            busy = 0;
            lock_for_packets(runtime);
            inject_waiting(state);
            for (struct port *port = ports->first; port; port = port->next) busy |= port_receive(state, port) > 0;
            flush_outputs(runtime);
            if (runtime->cpu.used || runtime->digests.used) pthread_cond_broadcast(&runtime->events);
            pthread_mutex_unlock(&runtime->lock);
        }
    }
    return NULL;
}

static void ports_wake(struct runtime *runtime) {
    uint64_t one = 1;
    if (write(ports_of(runtime)->wake, &one, sizeof one) < 0) { /* full: it is awake already */ }
}

#endif
