// Ordinary traffic: a learning switch, so that hosts see each other, and the switch's own address, so that a
// worker's kernel finds it.

control Forwarding(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
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
        meta.flooded = true;
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
        known_source.apply();
        if (hdr.arp.isValid() && hdr.arp.operation == 1 && switch_address.apply().hit) {
            return;
        }
        forward.apply();
    }
}
