/* Every kind of table, extern and controller packet that P4Runtime has words for, in one small v1model program.
 *
 * A probe carries the keys; each table writes what it found into a result of its own, so that a test sees which
 * entry matched. Probes come from the controller as packet-outs (and go back to it when sent to the CPU port), or in
 * at a port, and leave where they ask to.
 */
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 255;
const bit<16> ETHERTYPE_PROBE = 0x88B5;

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> _pad;
    bit<16> instance;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> _pad;
    bit<8> mark;
}

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header probe_t {
    bit<8> a;
    bit<16> b;
    bit<12> c;
    bit<4> nothing;
    bit<32> address;
    bit<128> wide;
    bit<16> port;
    bit<16> group;
    bit<16> session;
    bit<8> digests;
    bit<8> mark;
    bit<16> by_exact;
    bit<16> by_lpm;
    bit<16> by_ternary;
    bit<16> by_range;
    bit<16> by_optional;
    bit<16> by_constant;
    bit<16> by_initial;
    bit<16> by_preset;
    bit<16> by_keyless;
    bit<16> by_scoped;
    bit<16> by_idle;
    bit<16> by_metered;
    bit<16> by_wide;
    bit<8> colour;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    probe_t probe;
}

struct learned_t {
    bit<48> source;
    bit<9> port;
    bit<16> b;
}

struct metadata_t {
    bit<2> colour;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            ETHERTYPE_PROBE: probe;
            default: accept;
        }
    }
    state probe {
        packet.extract(hdr.probe);
        transition accept;
    }
}

control ProbeIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(8, CounterType.packets_and_bytes) seen;
    counter(2, CounterType.packets) other_counter;
    meter(4, MeterType.packets) rate;
    register<bit<48>>(4) last_source;
    direct_counter(CounterType.packets_and_bytes) exact_hits;
    direct_counter(CounterType.packets_and_bytes) ternary_hits;
    direct_counter(CounterType.packets_and_bytes) constant_hits;
    direct_meter<bit<2>>(MeterType.packets) entry_rate;

    action found_exact(bit<16> value) { hdr.probe.by_exact = value; }
    action found_exact_twice(bit<16> value, bit<4> more) { hdr.probe.by_exact = value + (bit<16>) more; }
    action found_lpm(bit<16> value) { hdr.probe.by_lpm = value; }
    action found_ternary(bit<16> value) { hdr.probe.by_ternary = value; }
    action found_range(bit<16> value) { hdr.probe.by_range = value; }
    action found_optional(bit<16> value) { hdr.probe.by_optional = value; }
    action found_constant(bit<16> value) { hdr.probe.by_constant = value; }
    action found_initial(bit<16> value) { hdr.probe.by_initial = value; }
    action found_preset(bit<16> value) { hdr.probe.by_preset = value; }
    action found_keyless(bit<16> value) { hdr.probe.by_keyless = value; }
    action found_scoped(bit<16> value) { hdr.probe.by_scoped = value; }
    action no_scoped() { hdr.probe.by_scoped = 0xffff; }
    action found_idle(bit<16> value) { hdr.probe.by_idle = value; }
    action found_metered(bit<16> value) { hdr.probe.by_metered = value; entry_rate.read(meta.colour); }
    action found_wide(bit<16> value) { hdr.probe.by_wide = value; }

    table by_exact {
        key = { hdr.probe.a: exact @name("a"); hdr.probe.b: exact @name("b"); }
        actions = { found_exact; found_exact_twice; NoAction; }
        default_action = found_exact(9);
        size = 4;
        counters = exact_hits;
    }
    table by_lpm {
        key = { hdr.probe.address: lpm @name("address"); }
        actions = { found_lpm; NoAction; }
        const default_action = NoAction();
    }
    table by_ternary {
        key = { hdr.probe.b: ternary @name("b"); hdr.probe.c: ternary @name("c"); }
        actions = { found_ternary; NoAction; }
        default_action = NoAction();
        counters = ternary_hits;
    }
    table by_range {
        key = { hdr.probe.c: range @name("c"); hdr.probe.a: exact @name("a"); }
        actions = { found_range; NoAction; }
    }
    table by_optional {
        key = { hdr.probe.b: optional @name("b"); hdr.probe.a: optional @name("a"); }
        actions = { found_optional; NoAction; }
    }
    table by_constant {
        key = { hdr.probe.b: ternary @name("b"); }
        actions = { found_constant; NoAction; }
        const entries = {
            1: found_constant(11);
            2 &&& 0xfffe: found_constant(12);
            _: found_constant(13);
        }
        counters = constant_hits;
    }
    table by_initial {
        key = { hdr.probe.a: exact @name("a"); }
        actions = { found_initial; NoAction; }
        entries = {
            1: found_initial(21);
            const 2: found_initial(22);
        }
        size = 8;
    }
    table by_preset {
        key = { hdr.probe.b: ternary @name("b"); }
        actions = { found_preset; NoAction; }
        entries = {
            priority = 30: 0x100 &&& 0xff00: found_preset(41);
            priority = 20: 0x110 &&& 0xfff0: found_preset(42);
        }
        size = 8;
    }
    table by_keyless {
        actions = { found_keyless; NoAction; }
        default_action = found_keyless(31);
    }
    table by_scoped {
        key = { hdr.probe.a: exact @name("a"); }
        actions = { @tableonly found_scoped; @defaultonly no_scoped; }
        default_action = no_scoped();
    }
    table by_idle {
        key = { hdr.probe.a: exact @name("a"); }
        actions = { found_idle; NoAction; }
        support_timeout = true;
    }
    table by_metered {
        key = { hdr.probe.a: exact @name("a"); }
        actions = { found_metered; NoAction; }
        meters = entry_rate;
    }
    table by_wide {
        key = { hdr.probe.wide: exact @name("wide"); }
        actions = { found_wide; NoAction; }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.egress_port;
        } else {
            standard.egress_spec = (bit<9>) hdr.probe.port;
        }
        if (hdr.probe.isValid()) {
            if (hdr.packet_out.isValid()) hdr.probe.mark = hdr.packet_out.mark;
            seen.count((bit<32>) hdr.probe.a & 7);
            last_source.write((bit<32>) hdr.probe.a & 3, hdr.ethernet.source);
            by_exact.apply();
            by_lpm.apply();
            by_ternary.apply();
            by_range.apply();
            by_optional.apply();
            by_constant.apply();
            by_initial.apply();
            by_preset.apply();
            by_keyless.apply();
            by_scoped.apply();
            by_idle.apply();
            meta.colour = 3;
            if (by_metered.apply().hit) {
                hdr.probe.colour = (bit<8>) meta.colour;
            } else {
                rate.execute_meter((bit<32>) hdr.probe.a & 3, meta.colour);
                hdr.probe.colour = (bit<8>) meta.colour;
            }
            by_wide.apply();
            if (hdr.probe.digests > 0) {
                digest<learned_t>(1, {hdr.ethernet.source, standard.ingress_port, hdr.probe.b});
            }
            if (hdr.probe.digests > 1) {
                other_counter.count(1);
            }
            if (hdr.probe.session != 0) {
                clone(CloneType.I2E, (bit<32>) hdr.probe.session);
            }
            if (hdr.probe.group != 0) {
                standard.mcast_grp = hdr.probe.group;
            }
        }
        hdr.packet_out.setInvalid();
    }
}

control ProbeEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.packet_out.setInvalid();
        if (standard.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard.ingress_port;
            hdr.packet_in.instance = standard.egress_rid;
        }
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.probe);
    }
}

V1Switch(Parse(), Verify(), ProbeIngress(), ProbeEgress(), Compute(), Deparse()) main;
