// Ordinary traffic. The switch learns addresses, so that hosts reach each other. It answers ARP for its own address, so
// that a worker's kernel finds it. It drops packets that claim this address, because workers trust the switch.

control Forwarding(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    counter(1, CounterType.packets_and_bytes) dropped_impostor;     // claims the switch's address
    counter(1, CounterType.packets_and_bytes) dropped_tagged;       // has a VLAN tag: the headers behind it are unknown

    action impostor() {
        dropped_impostor.count(0);
        mark_to_drop(standard_metadata);
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

    action learn() {
        digest<learned_source_t>(1, { hdr.ethernet.source, standard_metadata.ingress_port });
    }

    table known_source {
        key = {
            hdr.ethernet.source: exact @name("source");
            standard_metadata.ingress_port: exact @name("port");
        }
        actions = { NoAction; learn; }
        const default_action = learn();
        size = 1024;
    }

    action flood() {
        standard_metadata.mcast_grp = FLOOD_GROUP;
    }

    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
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
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    table switch_address {
        key = { hdr.arp.target_ip: exact @name("ip"); }
        actions = { answer_arp; NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    apply {
        if (hdr.ethernet.ether_type == ETHERTYPE_VLAN || hdr.ethernet.ether_type == ETHERTYPE_PROVIDER_VLAN) {
            dropped_tagged.count(0);
            mark_to_drop(standard_metadata);
            return;
        }
        if (hdr.arp.isValid()) {
            meta.claimed_ip = hdr.arp.sender_ip;
        } else if (hdr.ipv4.isValid()) {
            meta.claimed_ip = hdr.ipv4.source;
        }
        if (switch_mac.apply().hit || switch_ip.apply().hit) {
            return;
        }
        known_source.apply();
        if (hdr.arp.isValid() && hdr.arp.operation == 1 && switch_address.apply().hit) {
            return;
        }
        meta.between_hosts = true;
        forward.apply();
    }
}
