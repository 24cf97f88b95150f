/* The data of a switch's ports: each port's type, the memory of a batch, and the captures of packets. */
#ifndef SERENE_PORT_H
#define SERENE_PORT_H

#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "capture.h"
#include "frame_ring.h"
#include "offload.h"
#include "shm_ports.h"

enum { BATCH = 64, SOCKET_BUFFER = 8 << 20 };
enum { FRAME_ROOM = 66560 };     /* for a received frame, or a sender's buffer before it is cut */
enum { TAG_ROOM = 16 };          /* before a frame, for a VLAN tag; more than its 4 bytes, for alignment */
enum { PARTS = 1024 };           /* pieces of memory in one call of sendmmsg */
enum { WAITS = 2 * MAX_PORTS + 1, TURNS = 256 };    /* descriptors; batches until idle ones are polled again */
enum { STACK_BYTES = 8 << 20 };  /* of the thread; serene/embedded/program/limits.py bounds a program's use */

struct port {
    uint32_t number;
    int socket;
    int is_packet;               /* AF_PACKET: frames come with a virtio header */
    int joins;                   /* whether runs of UDP packets leave as one buffer */
    struct frame_ring ring;      /* AF_PACKET */
    struct sockaddr_in peer;     /* UDP; port 0 until the first datagram */
    struct shm_port *shm;        /* shared memory: processes connect to `socket` */
    struct capture captures[2];  /* of arriving and of leaving packets */
    int wait;                    /* its index among the polled descriptors; 0: it was opened later */
    struct port *next;
};

struct ports {
    struct port *first;
    int wake;                    /* eventfd: the ports changed, or stop */
    volatile int running;
    pthread_t thread;
    struct ring injected;        /* packet-outs for the thread */

    uint8_t (*frames)[TAG_ROOM + FRAME_ROOM];   /* of a received batch of frames */
    _Alignas(struct cmsghdr) uint8_t control[BATCH][CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    struct virtio_net_hdr virtio[BATCH];
    struct mmsghdr received[BATCH];
    struct iovec received_parts[BATCH][2];
    struct sockaddr_in from[BATCH];

    struct mmsghdr sending[BATCH];              /* of a batch that is being sent */
    uint32_t packets[BATCH];                    /* in each message */
    struct iovec parts[PARTS];
    struct virtio_net_hdr run_virtio[BATCH];
    uint8_t run_headers[BATCH][RUN_HEADER_BYTES];
    uint32_t first_of[MAX_PORTS], last_of[MAX_PORTS];   /* outputs of each port, index + 1 */
    uint32_t *next, next_capacity;
};

static struct ports *ports_of(struct runtime *runtime) { return runtime->ports; }

#ifdef TRACE
static void capture_packet(struct runtime *runtime, uint32_t number, const uint8_t *data, uint32_t length,
                           int direction) {
    for (struct port *port = ports_of(runtime)->first; port; port = port->next)
        if (port->number == number && port->captures[direction].file)
            capture_write(&port->captures[direction], data, length);
}

/* Whether the switch serves ports, but not this one. A switch without ports returns all outputs to the caller. */
static int is_no_port(struct runtime *runtime, uint32_t number) {
    struct ports *ports = ports_of(runtime);
    if (!ports->running || (runtime->cpu_port >= 0 && number == (uint32_t)runtime->cpu_port)) return 0;
    for (struct port *port = ports->first; port; port = port->next)
        if (port->number == number) return 0;
    return 1;
}

static void captures_flush(struct runtime *runtime) {
    for (struct port *port = ports_of(runtime)->first; port; port = port->next)
        for (int i = 0; i < 2; i++)
            if (port->captures[i].file) capture_flush(&port->captures[i]);
}
#endif

#endif
