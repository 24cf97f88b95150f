// IPv4's checksum. The parser verifies it in received packets. The deparser computes it in packets that the switch
// writes. Answers have UDP checksum 0; the frame check sequence protects the values on the link.

#define IPV4_CHECKSUM(CHECKSUM) \
    if (meta.serene == 1) { \
        hdr.ipv4.checksum = CHECKSUM.update({ \
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification, \
            hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, \
            hdr.ipv4.source, hdr.ipv4.destination }); \
    }
