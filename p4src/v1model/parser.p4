// Parser and deparser. Only complete, unfragmented UDP packets to Serene's port are Serene's. All others are ordinary
// traffic.

// The requests that carry values. The top files of a leaf and a root define others.
#ifndef WITH_VALUES
#define WITH_VALUES \
            (PROTOCOL_VERSION, op_t.PUSH): parse_values; \
            (PROTOCOL_VERSION, op_t.PULL): parse_values;
#endif

parser SereneParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_ARP: parse_arp;
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.flags[0:0], hdr.ipv4.fragment_offset,
                          hdr.ipv4.protocol) {
            (4, 5, 0, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.destination_port) {
            SERENE_UDP_PORT: parse_serene;
            default: accept;
        }
    }

    state parse_serene {
        packet.extract(hdr.serene);
        transition select(hdr.serene.version, hdr.serene.op) {
            (PROTOCOL_VERSION, op_t.HELLO): parse_membership;
            WITH_VALUES
            default: accept;
        }
    }

    state parse_membership {
        packet.extract(hdr.membership);
        transition accept;
    }

    state parse_values {
        packet.extract(hdr.values);
        transition accept;
    }
}

control SereneDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.serene);
        packet.emit(hdr.membership);
        packet.emit(hdr.values);
    }
}
