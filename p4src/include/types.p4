// The protocol's terms as types.
#ifndef SERENE_TYPES_P4
#define SERENE_TYPES_P4

#include "sizes.p4"

typedef bit<48> mac_address_t;
typedef bit<32> ipv4_address_t;

typedef bit<8> job_t;
typedef bit<8> worker_t;
typedef bit<32> worker_bitmap_t;
typedef bit<32> session_t;        // from 1, grows; 0 stands for none
typedef bit<32> epoch_t;          // from 1, grows within a session; 0 stands for none
typedef bit<32> round_t;          // from 0, a worker's iteration within its epoch
typedef bit<32> seq_t;            // from 1, a worker's iteration within the session
typedef bit<32> slot_t;
typedef bit<32> total_t;          // number of contributions in a value
typedef bit<(FIELD_LANES * 32)> lanes_t;

// Requests have the top bit clear. Packets of the switch or the controller have it set.
enum bit<8> op_t {
    HELLO = 0x01,                 // a worker asks for its job's session, epoch and slots
    PUSH = 0x02,                  // a contribution to one slot
    PULL = 0x03,                  // a read that contributes nothing
    REPORT = 0x04,                // telemetry, for the controller
    LEAVE = 0x05,                 // the worker leaves; for the controller
    UP = 0x06,                    // a leaf switch's, to the root: its rack's sum
    WELCOME = 0x81,               // answers HELLO
    ANSWER = 0x82,                // answers PUSH and PULL: echoes seq, or is a release (seq 0)
    NUDGE = 0x83,                 // proves nothing: "send again now"
    REFUSED = 0x84,               // from the controller, with the reason as text
    BYE = 0x85,                   // the controller's answer to LEAVE
    WAIT = 0x86,                  // the controller's answer to HELLO while workers are missing, with their ids as text
    DOWN = 0x87,                  // the root's, to a leaf: what it holds
    GRANT = 0x88                  // the root's, to a leaf. Proves nothing: "ask now"
}

enum bit<8> read_mode_t {
    LATEST = 0,                   // answers carry every contribution accepted so far
    SNAPSHOT = 1                  // answers carry the sum as it was when a round completed
}

#endif
