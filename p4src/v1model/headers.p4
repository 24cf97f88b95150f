// The packet's headers and metadata, which v1model's blocks pass on.
#ifndef SERENE_V1MODEL_HEADERS_P4
#define SERENE_V1MODEL_HEADERS_P4

#include <v1model.p4>
#include "../include/headers.p4"

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> padding;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> padding;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    arp_t arp;
    ipv4_t ipv4;
    udp_t udp;
    serene_t serene;
    membership_t membership;
    values_t values;
}

// The policy in force: the data of one table entry, which the controller replaces as a whole.
struct policy_t {
    session_t session;
    epoch_t epoch;
    worker_bitmap_t sync_mask;
    bit<8> staleness;
    bit<8> quorum;
    read_mode_t read_mode;
    bit<8> members;               // number of members
}

// The barrier's decision about this packet. The aggregation and the answers follow it.
struct decision_t {
    slot_t slot;                  // among all slots of the switch
    bool fresh;                   // a contribution that was not accepted before
    bool wrong_round;             // a round beyond base + staleness bound
    bool clear;                   // the first packet of a session at this slot: its state is zeroed
    bool take_snapshot;           // the sum becomes the snapshot
    bool read_snapshot;           // the answer carries the snapshot
    bool go;                      // the sender is answered now
    worker_bitmap_t release;      // the waiting workers whose round completed
    worker_bitmap_t nudge;        // the waiting workers of an epoch that ended
    bit<32> staleness;            // of the contribution, in rounds; the last class is 15 or more
}

// Additional metadata of a leaf or a root.
#ifndef TREE_METADATA
#define TREE_METADATA
#endif

struct metadata_t {
    job_t job;
    worker_t worker;
    ipv4_address_t claimed_ip;    // the sender's, in ordinary traffic
    bool between_hosts;           // ordinary traffic: never sent back to its ingress port
    bool answering;               // an answer, which egress finishes
    policy_t policy;
    slot_t first_slot;
    slot_t slots;
    bit<32> share;                // one worker's part of a round: 65536 / workers
    decision_t decision;
    TREE_METADATA
}

struct learned_source_t {
    mac_address_t source;
    bit<9> port;
}

#endif
