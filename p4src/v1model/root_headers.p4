// The root's metadata, in addition to that of serene.p4.
#ifndef SERENE_ROOT_HEADERS_P4
#define SERENE_ROOT_HEADERS_P4

#include "../include/types.p4"

typedef bit<8> rack_bitmap_t;     // a bit for each of LEAVES

#define FOR_EACH_LEAF(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

struct root_t {
    slot_t place;                 // index of the sender's rack at this slot
    rack_bitmap_t sender;
    bool clear_rack;              // the state of the sender's rack is of an older session
    bool newer;                   // the UP has contributions that the last one lacked
    bool echo;
    bool latest;
    rack_bitmap_t down;           // the leaves that get a DOWN without an echo
    rack_bitmap_t grant;
}

#endif
