// The packet's headers and metadata, which the blocks of TNA and T2NA (Tofino 2) pass on.
#ifndef SERENE_TNA_HEADERS_P4
#define SERENE_TNA_HEADERS_P4

#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif
#include "../include/headers.p4"

@controller_header("packet_in")
header packet_in_t {
    bit<7> padding;
    bit<9> ingress_port;
}

@controller_header("packet_out")
header packet_out_t {
    bit<7> padding;
    bit<9> egress_port;
}

// The task of egress for a packet.
enum bit<8> purpose_t {
    NONE = 0,                     // nothing; a packet to the controller gets its ingress port
    BETWEEN_HOSTS = 1,            // ordinary traffic: never sent back to its ingress port
    WELCOME = 2,
    ANSWER = 3,                   // to the sender
    RELEASE = 4,                  // to every member: a round completed
    NUDGE = 5                     // to every member: an epoch began
}

// From ingress to egress, in front of the packet. With egress's own metadata, these three bytes are all that one state
// of the chip's parser can see.
header bridge_t {
    purpose_t purpose;
    bit<7> padding;
    bit<9> ingress_port;
}

header called_t {                 // follows it, if the packet is Serene's
    worker_bitmap_t waiting;      // receivers of a release or a nudge, besides the sender
}

struct headers_t {
    bridge_t bridge;
    called_t called;
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

// The kind of a packet to Serene's port, according to its headers alone.
enum bit<8> request_t {
    MALFORMED = 0,
    BAD_CHECKSUM = 1,
    WRONG_SLOT = 2,
    REPORT = 3,                   // or LEAVE: for the controller
    HELLO = 4,
    PULL = 8,                     // this and the following are to a slot
    PUSH = 9,
    WRONG_ROUND = 10,             // a PUSH whose round exceeds the ring's words
    COMPLETION = 12               // a PUSH that completed its round, in its second pass
}

// Indices of counters.
#define BY_WORKER(worker) { hdr.serene.job[2:0], worker[4:0] }

#define TO_A_SLOT(request) (((bit<8>)(request))[3:3] == 1)
#define SECOND_PASS(request) (((bit<8>)(request))[2:2] == 1)

// Slots are less than SLOTS, and so is a job's number of slots. So the difference is in the lowest bits and the sign.
#define HAS_ROOM (meta.room[31:31] == 0 && meta.room[SLOT_BITS:0] != 0)

// Admission's decision on a packet to a slot.
#define ADMITTED \
    TO_A_SLOT(meta.request) && meta.known_policy == 1 && HAS_ROOM && meta.session_gap == 0 \
        && (meta.member == 1 || SECOND_PASS(meta.request))

// The reasons to drop a packet.
enum bit<8> refusal_t {
    NONE = 0,
    MALFORMED = 1,
    BAD_CHECKSUM = 2,
    STRANGER = 3,
    NO_POLICY = 4,
    WRONG_SESSION = 5,
    WRONG_SLOT = 6
}

// The barrier's decision about it. FREE to WAIT are contributions, or repeats of one.
enum bit<8> verdict_t {
    NONE = 0,                     // dropped by admission, or not a request
    WRONG_ROUND = 1,              // a round beyond base + staleness bound
    READ = 2,
    OPENING = 3,                  // the first packet of an epoch or session at this slot: must be sent again
    FREE = 4,                     // answered now, takes no part in the barrier
    GO = 5,                       // answered now
    WAIT = 6,                     // answered when its round completes
    COMPLETED = 8,                // its round is complete: all waiting workers are answered
    OVERTAKEN = 9,                // its round was completed before
    OLD_SESSION = 10              // the slot has seen a newer session
}
#define CONTRIBUTES(verdict) (((bit<8>)(verdict))[2:2] == 1)

// The instruction of each lane's register, one of four.
enum bit<8> lanes_do_t {
    NOTHING = 0,
    ADD = 1,
    ADD_READ_SNAPSHOT = 2,
    OPEN = 3,
    STORE = 4
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

struct job_parameters_t {
    bit<32> vector_length;
    bit<32> slots;
    bit<32> scale;
    bit<32> limit;
    bit<8> workers;
    bit<8> lost_sessions;
}

// Flags are bytes or bits, as a table or a gateway needs them. 1 means yes.
struct metadata_t {
    bool checksum_error;
    request_t request;
    policy_t policy;
    job_parameters_t job;

    // Forwarding
    ipv4_address_t claimed_ip;    // the sender's, in IPv4 or ARP
    bit<1> impostor;              // it claims the switch's address
    bit<1> answered;              // by the switch itself

    // Admission
    bit<1> member;
    bit<1> known_job;
    bit<1> known_policy;
    bit<16> group;                // of the job's workers
    slot_t slot;                  // among all slots of the switch
    slot_t room;                  // 1 to SLOTS, if the slot is one of the job's; 0, if there is no such job
    session_t session_gap;        // 0, if the packet is of the job's present session
    epoch_t epoch_gap;            // 0, if it is of the present epoch
    bit<16> other_bytes;          // of the IP packet, besides UDP's
    refusal_t refusal;

    // Barrier
    worker_bitmap_t sender;
    bit<32> era;                  // session and epoch in one word
    round_t allowance;            // staleness - round: the sender may go on when base + allowance > 0
    bit<32> bound;                // staleness, as a word
    bit<32> mark;                 // its round in the ring's form: round ++ no arrivals
    bit<32> target;               // the same, with a quorum of arrivals
    bit<1> admitted;
    bit<1> current;
    bit<1> counted;
    bit<8> age_of_slot;           // how the slot's session compares; one bit of four
    bit<8> ahead;                 // is the slot of this epoch, and base + allowance < 0; one bit of four
    bit<8> behind;                // base + allowance > 0
    verdict_t verdict;
    lanes_do_t lanes_do;
    seq_t known;                  // 0: the contribution is fresh, add it
    seq_t seen;
    round_t minus_base;
    round_t before_base;          // negative, if the round is an old one
    bit<32> arrived;              // round ++ arrivals in it
    bit<1> round_counted;
    bit<32> lacking;              // 0, if the round is counted and complete
    worker_bitmap_t waiting;
    total_t unread;
    bit<4> rounds_old;
}

struct egress_metadata_t {
    worker_t receiver;
    worker_bitmap_t receiver_bit;
    worker_bitmap_t released;
    worker_t to_other;            // 0, if the receiver is the sender
    bit<1> serene;                // ours: the checksum is to be written
}

#define COMPLETE (meta.round_counted == 1 && meta.lacking == 0)

// The index of a slot, in registers of SLOTS entries.
#define PLACE meta.slot[(SLOT_BITS - 1):0]

struct learned_source_t {
    mac_address_t source;
    bit<9> port;
}

#endif
