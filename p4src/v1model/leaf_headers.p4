// A leaf's metadata, in addition to that of serene.p4.
#ifndef SERENE_LEAF_HEADERS_P4
#define SERENE_LEAF_HEADERS_P4

#include "../include/types.p4"

#define SUM_FIELD(i) lanes_t sum_##i;
struct leaf_t {
    // The entry of the table `root`, as the controller wrote it.
    bit<9> root_port;
    bit<8> rack;
    mac_address_t root_mac;
    ipv4_address_t root_ip;
    mac_address_t own_mac;
    ipv4_address_t own_ip;
    // This rack's part of the epoch's policy. Workers do not receive it.
    bit<8> enough;                // a round with so many arrivals in this rack causes an UP
    bit<1> by_arrivals;           // k-of-n: the root adds up arrivals
    bit<32> flush_mask;           // latest: an UP is sent when total & flush_mask is 0
    // The decision about the packet.
    bool keep;                    // store a DOWN's values: the other racks' sum, or the snapshot
    bool latest;
    bool echoed;                  // a DOWN that echoes a worker's request
    bit<9> reply_port;            // the port of the one worker that is answered
    round_t release_base;
    bool only_up;                 // no copy: this packet becomes the UP
    bool up;                      // an UP is sent, with these fields:
    bool ask;
    epoch_t up_epoch;
    round_t up_base;
    bit<8> up_arrivals;
    total_t up_total;
    seq_t echo_seq;               // 0: no echo
    worker_t echo_worker;
    bit<32> echo_port;
    FOR_EACH_FIELD(SUM_FIELD)     // the rack's sum, if the packet's values are an answer's
}
#undef SUM_FIELD

#endif
