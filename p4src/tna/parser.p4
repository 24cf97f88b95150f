// Parser and deparser. Only complete, unfragmented UDP packets to Serene's port are Serene's. All others are ordinary
// traffic. Admission checks lengths, because a parser's selects are scarce.

parser SereneParser(packet_in packet,
                    out headers_t hdr,
                    out metadata_t meta,
                    out ingress_intrinsic_metadata_t ig_intr_md) {
    Checksum() ipv4_checksum;

    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        meta.request = request_t.MALFORMED;
        meta.member = 0;
        meta.known_job = 0;
        meta.known_policy = 0;
        meta.room = 0;
        meta.claimed_ip = 0;
        meta.impostor = 0;
        meta.answered = 0;
        meta.refusal = refusal_t.NONE;
        meta.admitted = 0;
        meta.current = 0;
        meta.counted = 0;
        meta.ahead = 0;
        meta.behind = 0;
        meta.age_of_slot = 0;
        meta.verdict = verdict_t.NONE;
        meta.lanes_do = lanes_do_t.NOTHING;
        meta.known = 0;
        meta.arrived = 0;
        meta.unread = 0;
        meta.round_counted = 0;
        meta.waiting = 0;
        transition select(ig_intr_md.ingress_port) {
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
        ipv4_checksum.add(hdr.ipv4);
        meta.checksum_error = ipv4_checksum.verify();
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
        transition select(hdr.serene.op) {
            op_t.HELLO: parse_membership;
            op_t.PUSH: parse_values;
            op_t.PULL: parse_values;
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

control SereneDeparser(packet_out packet,
                       inout headers_t hdr,
                       in metadata_t meta,
                       in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                       in ingress_intrinsic_metadata_t ig_intr_md) {
    @name("learned_source_t")         // as p4c names it for v1model, after its type
    Digest<learned_source_t>(LEARN) learned;

    apply {
        if (ig_dprsr_md.digest_type == LEARN) {
            learned.pack({ hdr.ethernet.source, ig_intr_md.ingress_port });
        }
        packet.emit(hdr.bridge);
        packet.emit(hdr.called);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.serene);
        packet.emit(hdr.membership);
        packet.emit(hdr.values);
    }
}

// Egress does not parse the headers behind `serene`. Nothing there reads them, and so they take no space.
parser SereneEgressParser(packet_in packet,
                          out headers_t hdr,
                          out egress_metadata_t meta,
                          out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.bridge);
        transition select(hdr.bridge.purpose) {
            purpose_t.WELCOME: parse_answer;
            purpose_t.ANSWER: parse_answer;
            purpose_t.RELEASE: parse_answer;
            purpose_t.NUDGE: parse_answer;
            default: accept;
        }
    }

    state parse_answer {
        meta.serene = 1;
        packet.extract(hdr.called);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.serene);
        transition accept;
    }
}

control SereneEgressDeparser(packet_out packet,
                             inout headers_t hdr,
                             in egress_metadata_t meta,
                             in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Checksum() ipv4_checksum;

    apply {
        IPV4_CHECKSUM(ipv4_checksum)
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.serene);
    }
}
