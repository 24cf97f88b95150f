// Finishes the root's copies. Each leaf gets two: one that may echo a worker's request, and one for the rack.

const bit<16> ECHOES = 128;       // replica ECHOES + 1 + rack may echo; replica 1 + rack is for the rack

control RootAnswer(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    counter(MAX_JOBS * LEAVES, CounterType.packets) downs;
    counter(MAX_JOBS * LEAVES, CounterType.packets) grants;

    action to_member(mac_address_t mac, ipv4_address_t ip, bit<16> udp_port,
                     mac_address_t switch_mac, ipv4_address_t switch_ip) {
        hdr.ethernet.destination = mac;
        hdr.ethernet.source = switch_mac;
        hdr.ipv4.source = switch_ip;
        hdr.ipv4.destination = ip;
        hdr.ipv4.ttl = 64;
        hdr.udp.source_port = SERENE_UDP_PORT;
        hdr.udp.destination_port = udp_port;
        hdr.udp.checksum = 0;
    }

    action nobody() {
        mark_to_drop(standard_metadata);
    }

    table address {
        key = {
            meta.job: exact @name("job");
            meta.worker: exact @name("worker");
        }
        actions = { to_member; nobody; }
        const default_action = nobody();
        size = 64;                 // MAX_JOBS * LEAVES
    }

    action echo_nobody() {
        hdr.serene.seq = 0;
        hdr.serene.members = 0;
        hdr.serene.sync_mask = 0;
    }

    apply {
        bool echoes = meta.root.echo;
        if (standard_metadata.egress_rid > ECHOES) {
            echoes = echoes && (bit<16>)meta.worker + 1 + ECHOES == standard_metadata.egress_rid;
            if (!echoes) {
                mark_to_drop(standard_metadata);
                return;
            }
        } else if (standard_metadata.egress_rid != 0) {
            meta.worker = (worker_t)(standard_metadata.egress_rid - 1);
            echoes = false;
        }
        rack_bitmap_t receiver = (rack_bitmap_t)1 << meta.worker;
        bit<32> who = ((bit<32>)meta.job << 3) + (bit<32>)meta.worker;
        if (!echoes) {
            echo_nobody();
        }
        if (echoes || (meta.root.down & receiver) != 0) {
            hdr.serene.op = op_t.DOWN;
            downs.count(who);
        } else if ((meta.root.grant & receiver) != 0) {
            hdr.serene.op = op_t.GRANT;
            hdr.serene.total = 0;
            grants.count(who);
        } else {
            mark_to_drop(standard_metadata);
            return;
        }
        hdr.serene.worker = ROOT;
        hdr.serene.session = meta.policy.session;
        hdr.serene.epoch = meta.policy.epoch;
        hdr.serene.seen = meta.policy.session;
        hdr.serene.staleness = 0;
        hdr.serene.quorum = 0;
        address.apply();
    }
}
