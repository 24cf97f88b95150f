// The headers of all packets. serene/wire.py mirrors the last three; a test compares them field by field.
#ifndef SERENE_HEADERS_P4
#define SERENE_HEADERS_P4

#include "types.p4"

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;
const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_PROVIDER_VLAN = 0x88A8;
const bit<8> PROTOCOL_UDP = 17;

header ethernet_t {
    mac_address_t destination;
    mac_address_t source;
    bit<16> ether_type;
}

header arp_t {
    bit<16> hardware_type;
    bit<16> protocol_type;
    bit<8> hardware_length;
    bit<8> protocol_length;
    bit<16> operation;
    mac_address_t sender_mac;
    ipv4_address_t sender_ip;
    mac_address_t target_mac;
    ipv4_address_t target_ip;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ipv4_address_t source;
    ipv4_address_t destination;
}

header udp_t {
    bit<16> source_port;
    bit<16> destination_port;
    bit<16> length;
    bit<16> checksum;
}

header serene_t {
    bit<8> version;
    op_t op;
    job_t job;
    worker_t worker;              // request: the sender; answer: the receiver
    session_t session;
    epoch_t epoch;                // request: the sender's; answer: the policy's
    round_t round;                // request: the sender's round; answer: the slot's base
    seq_t seq;                    // answer: echoed, or 0 in a release
    slot_t slot;                  // within the job, from 0
    total_t total;                // contributions that the values hold; request: those read last
    bit<32> seen;                 // ANSWER: highest seq accepted from the sender of the request;
                                  // requests and their echoes: the worker's incarnation
    worker_bitmap_t sync_mask;    // this and the following fields: the policy, in an answer
    bit<8> staleness;
    bit<8> quorum;
    read_mode_t read_mode;
    bit<8> members;               // answer: number of members under this policy
}
// UP, DOWN and GRANT use some fields differently. worker: the rack, or ROOT. seen: the session. total: contributions in
// the values. round: the rack's base in an UP, otherwise the slot's. seq, members, sync_mask: seq, id and port of the
// worker whose request is echoed; without an echo, seq is 0. quorum: an UP's arrivals of the round that it names
// (k-of-n). staleness: whether an UP asks for an answer.

header membership_t {             // follows HELLO and WELCOME
    bit<32> vector_length;        // values in the job's gradient vector; HELLO: in the worker's
    bit<32> slots;                // number of the job's slots
    bit<32> scale;                // fixed-point units in 1.0
    bit<32> limit;                // of a contribution's values, in fixed-point units
    bit<16> lanes;                // values per slot
    bit<8> workers;               // number of the job's workers
    bit<8> lost_sessions;         // earlier sessions of the job that were lost, up to 255
}

#define VALUES_FIELD(i) lanes_t lanes_##i;
header values_t {                 // follows PUSH, PULL, ANSWER, UP, DOWN and GRANT; ignored in PULL and GRANT
    FOR_EACH_FIELD(VALUES_FIELD)
}
#undef VALUES_FIELD

// Lengths in bytes, as IPv4 and UDP count them.
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;
const bit<16> SERENE_BYTES = 40;
const bit<16> MEMBERSHIP_BYTES = 20;
const bit<16> VALUES_BYTES = FIELDS * FIELD_LANES * 4;

#endif
