// Every shape of header that v1model programs have, for tests of the switch alone: a stack, unions, a stack of unions,
// a varbit field, look-ahead; entries of every kind; packets that go round again; a checksum over the payload.

#include <core.p4>
#include <v1model.p4>

header first_t { bit<8> tags; bit<4> flags; bit<4> words; bit<8> kind; }
header tag_t { bit<7> value; bit<1> last; }
header options_t { bit<8> kind; varbit<120> body; bit<8> trailer; }
header short_t { bit<16> value; }
header long_t { bit<72> value; int<24> signed; }
header tail_t {
    bit<16> checksum;
    bit<16> hash;
    bit<32> crc;
    bit<64> bytes;
    bit<32> count;
    bit<8> note;
    bit<7> zero;
    bit<1> wrong;
}

header_union item_t { short_t small; long_t large; }

struct headers_t {
    first_t first;
    tag_t[3] tags;
    options_t options;
    item_t item;
    item_t[2] items;
    tail_t tail;
}

struct metadata_t {
    bit<8> left;
    @field_list(1) bit<8> turns;
    @field_list(1) bit<16> note;
}

parser ShapesParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.first);
        meta.left = hdr.first.tags & 3;
        transition select(hdr.first.tags & 3) {
            0: body;
            default: tags;
        }
    }
    state tags {
        packet.extract(hdr.tags.next);
        transition select(hdr.tags.last.last) {
            1: body;
            default: tags;
        }
    }
    state body {
        transition select(hdr.first.kind[1:0], packet.lookahead<bit<8>>()) {
            (0, _): accept;
            (1, _): options;
            (2, 0x00 .. 0x3f): small;
            (2, _): large;
            (3, 0x80 &&& 0x80): items;
        }
    }
    state options {
        packet.extract(hdr.options, (bit<32>)hdr.first.words * 8);
        transition accept;
    }
    state small {
        packet.extract(hdr.item.small);
        transition accept;
    }
    state large {
        packet.extract(hdr.item.large);
        transition accept;
    }
    state items {
        packet.extract(hdr.items.next.small);
        packet.extract(hdr.items.next.large);
        verify(hdr.first.flags != 15, error.NoMatch);
        transition accept;
    }
}

control ShapesVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(true, { hdr.first.kind }, hdr.options.trailer, HashAlgorithm.identity);
    }
}

control ShapesIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(16) seen;
    register<bit<200>>(16) wide;
    counter(16, CounterType.packets_and_bytes) packets;

    action to(bit<9> port) { standard.egress_spec = port; }
    action drop() { mark_to_drop(standard); }
    action again() { resubmit_preserving_field_list(1); }

    table by_kind {
        key = { hdr.first.kind: ternary; hdr.first.words: range; hdr.item.small.isValid(): exact; }
        actions = { to; drop; again; NoAction; }
        const entries = {
            (0x10 &&& 0x10, 0 .. 3, false): drop();
            (0x20 &&& 0x30, _, true): to(3);
            (_, 4 .. 9, false): to(2);
        }
        default_action = to(1);
    }

    table by_value {
        key = { hdr.item.large.value[71:40]: lpm; }
        actions = { to; NoAction; }
        const entries = {
            0x80000000 &&& 0x80000000: to(4);
            0xff000000 &&& 0xff000000: to(5);
        }
        default_action = NoAction();
    }

    apply {
        if (!hdr.first.isValid()) {
            mark_to_drop(standard);
            return;
        }
        bit<32> at = (bit<32>)(hdr.first.kind & 15);
        bit<32> count;
        seen.read(count, at);
        count = count + 1;
        seen.write(at, count);
        packets.count(at);

        meta.turns = meta.turns + 1;
        by_kind.apply();
        if (hdr.item.large.isValid()) {
            by_value.apply();
            bit<200> sum;
            wide.read(sum, at);
            sum = (sum << 3) + (bit<200>)hdr.item.large.value;
            wide.write(at, sum);
            hdr.item.large.value = sum[171:100] ^ hdr.item.large.value;
            hdr.item.large.signed = hdr.item.large.signed |-| 0x100000;
        } else if (hdr.item.small.isValid() && hdr.first.flags[0:0] == 1) {
            hdr.item.large = { (bit<72>)hdr.item.small.value, 7 };       // the other member ends
        }
        if (hdr.first.flags[1:1] == 1) {
            hdr.tags.push_front(1);
            hdr.tags[0] = { 5, 0 };
        } else if (hdr.first.flags[2:2] == 1) {
            hdr.tags.pop_front(2);
        }
        hdr.tail.setValid();
        hdr.tail.count = count;
        hdr.tail.note = meta.turns;
        hdr.tail.wrong = standard.checksum_error;
        hash(hdr.tail.hash, HashAlgorithm.crc16, 16w3, { hdr.first.tags, hdr.first.kind, meta.note }, 16w1000);
        if (hdr.first.flags[3:3] == 1 && meta.turns < 3) {
            meta.note = (bit<16>)count;
            resubmit_preserving_field_list(1);
        }
    }
}

control ShapesEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.tail.note = hdr.tail.note + (bit<8>)standard.packet_length;
        if (standard.instance_type == 0 && hdr.first.words == 7 && hdr.first.kind[7:7] == 1) {
            hdr.first.words = 6;
            recirculate_preserving_field_list(1);
        }
    }
}

control ShapesUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(hdr.tail.isValid(),
            { hdr.first.tags, hdr.first.kind, hdr.options.body, hdr.tail.count }, hdr.tail.checksum,
            HashAlgorithm.csum16);
        // Of headers that a packet may lack, and not of whole bytes:
        update_checksum(hdr.tail.isValid(),
            { hdr.tags[0].value, hdr.item.large.value, 4w5, hdr.tags[1].last, hdr.item.small.value, meta.left },
            hdr.tail.crc, HashAlgorithm.crc32);
        update_checksum(hdr.tail.isValid(),
            { hdr.first.flags, hdr.options.body, hdr.first.words, hdr.item.large.value, hdr.first.tags },
            hdr.tail.bytes, HashAlgorithm.identity);
    }
}

control ShapesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.first);
        packet.emit(hdr.tags);
        packet.emit(hdr.options);
        packet.emit(hdr.item);
        packet.emit(hdr.items);
        packet.emit(hdr.tail);
    }
}

V1Switch(ShapesParser(), ShapesVerify(), ShapesIngress(), ShapesEgress(), ShapesUpdate(), ShapesDeparser()) main;
