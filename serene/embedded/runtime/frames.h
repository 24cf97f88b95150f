/* Converts frames that the kernel delivers to the packets that were on the wire: it restores VLAN tags, segments large
 * buffers, and completes checksums. */
#ifndef SERENE_FRAMES_H
#define SERENE_FRAMES_H

#include <linux/if_packet.h>
#include <sys/socket.h>

#include "offload.h"
#include "pipeline.h"

/* Processes a frame. It inserts the VLAN tag again that the kernel has removed, for which there is room before it. */
static void process_tagged(struct state *state, uint32_t port, uint8_t *frame, uint32_t length, uint32_t tag) {
    if (tag && length >= ETHERNET_BYTES) {
        memmove(frame - 4, frame, 12);
        put16(frame + 8, tag >> 16);
        put16(frame + 10, tag);
        frame -= 4;
        length += 4;
    }
    process_packet(state, port, frame, length);
}

/* Cuts a large buffer into packets and processes them. Each packet's header is written before its payload, over the
 * previous packet's payload, which has been processed by then. Returns 0 if the buffer cannot be cut. */
static int process_large(struct state *state, uint32_t port, uint8_t *frame, uint32_t length, uint8_t gso_type,
                         uint32_t size, uint32_t tag) {
    struct large large;
    uint8_t head[256];
    if (!size || !large_parse(frame, length, gso_type, &large) || large.head > sizeof head) return 0;
    memcpy(head, frame, large.head);
    uint32_t number = 0;
    for (uint32_t at = large.head; at < length; at += size, number++) {
        uint32_t payload = length - at < size ? length - at : size;
        uint8_t *packet = frame + at - large.head;
        memcpy(packet, head, large.head);
        segment_finish(packet, large.head + payload, &large, number, size, at + size >= length);
        process_tagged(state, port, packet, large.head + payload, tag);
    }
    return 1;
}

/* The VLAN tag that the kernel has removed from a frame; 0: there was none. */
static uint32_t vlan_tag(uint32_t status, uint32_t type, uint32_t tag) {
    if (!(status & TP_STATUS_VLAN_VALID)) return 0;
    return (status & TP_STATUS_VLAN_TPID_VALID ? type : ETH_P_8021Q) << 16 | tag;
}

/* The same, from the control message beside a frame. */
static uint32_t tag_beside(struct msghdr *message) {
    struct tpacket_auxdata auxdata;
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    if (!control || control->cmsg_level != SOL_PACKET || control->cmsg_type != PACKET_AUXDATA) return 0;
    memcpy(&auxdata, CMSG_DATA(control), sizeof auxdata);
    return vlan_tag(auxdata.tp_status, auxdata.tp_vlan_tpid, auxdata.tp_vlan_tci);
}

/* Processes a frame or a large buffer of an interface. Returns 0 if it was dropped. */
static int process_frame(struct state *state, uint32_t port, uint8_t *frame, uint32_t length,
                         const struct virtio_net_hdr *virtio, uint32_t tag) {
    uint8_t gso_type = virtio->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
    if (gso_type != VIRTIO_NET_HDR_GSO_NONE)
        return process_large(state, port, frame, length, gso_type, virtio->gso_size, tag);
    complete_checksum(frame, length, virtio);
    process_tagged(state, port, frame, length, tag);
    return 1;
}

#endif
