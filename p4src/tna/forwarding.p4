// Ordinary traffic. The switch learns addresses, so that hosts reach each other. It answers ARP for its own address, so
// that a worker's kernel finds it. It drops packets that claim this address, because workers trust the switch.

const DigestType_t LEARN = 1;

control Forwarding(inout headers_t hdr,
                   inout metadata_t meta,
                   in ingress_intrinsic_metadata_t ig_intr_md,
                   inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                   inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_impostor;     // claims the switch's address
    Counter<bit<64>, bit<1>>(1, CounterType_t.PACKETS_AND_BYTES) dropped_tagged;       // a VLAN tag hides the rest

    action claim_by_arp() {
        meta.claimed_ip = hdr.arp.sender_ip;
    }

    action claim_by_ip() {
        meta.claimed_ip = hdr.ipv4.source;
    }

    action impostor() {
        meta.impostor = 1;
    }

    table switch_mac {
        key = { hdr.ethernet.source: exact @name("mac"); }
        actions = { impostor; NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    table switch_ip {
        key = { meta.claimed_ip: exact @name("ip"); }
        actions = { impostor; NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    // Two tables find impostors, but a counter can be in one place only.
    action count_impostor() {
        dropped_impostor.count(0);
    }

    action count_tagged() {
        dropped_tagged.count(0);
    }

    action learn() {
        ig_dprsr_md.digest_type = LEARN;
    }

    table known_source {
        key = {
            hdr.ethernet.source: exact @name("source");
            ig_intr_md.ingress_port: exact @name("port");
        }
        actions = { NoAction; learn; }
        const default_action = learn();
        size = 1024;
    }

    action flood() {
        hdr.bridge.purpose = purpose_t.BETWEEN_HOSTS;
        ig_tm_md.mcast_grp_a = FLOOD_GROUP;
    }

    action to_port(bit<9> port) {
        hdr.bridge.purpose = purpose_t.BETWEEN_HOSTS;
        ig_tm_md.ucast_egress_port = port;
    }

    table forward {
        key = { hdr.ethernet.destination: exact @name("destination"); }
        actions = { to_port; flood; }
        const default_action = flood();
        size = 1024;
    }

    action answer_arp(mac_address_t mac) {
        hdr.ethernet.destination = hdr.arp.sender_mac;
        hdr.ethernet.source = mac;
        ipv4_address_t asked = hdr.arp.target_ip;
        hdr.arp.operation = 2;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_ip = hdr.arp.sender_ip;
        hdr.arp.sender_mac = mac;
        hdr.arp.sender_ip = asked;
        meta.answered = 1;
        ig_tm_md.ucast_egress_port = ig_intr_md.ingress_port;
    }

    table switch_address {
        key = { hdr.arp.target_ip: exact @name("ip"); }
        actions = { answer_arp; NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    // A packet without a destination is dropped.
    apply {
        if (hdr.ethernet.ether_type == ETHERTYPE_VLAN || hdr.ethernet.ether_type == ETHERTYPE_PROVIDER_VLAN) {
            count_tagged();
        } else {
            if (hdr.arp.isValid()) {
                claim_by_arp();
            } else if (hdr.ipv4.isValid()) {
                claim_by_ip();
            }
            switch_mac.apply();
            switch_ip.apply();
            if (meta.impostor == 1) {
                count_impostor();
            } else {
                known_source.apply();
                if (hdr.arp.isValid() && hdr.arp.operation == 1) {
                    switch_address.apply();
                }
                if (meta.answered == 0) {
                    forward.apply();
                }
            }
        }
    }
}
