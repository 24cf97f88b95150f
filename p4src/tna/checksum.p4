// IPv4's own checksum: the parser verifies it on what comes in, the deparser computes it on what the switch
// writes. UDP's is left at zero in answers; the frame's check sequence guards the values on the link.

#define IPV4_CHECKSUM(CHECKSUM) \
    if (meta.serene == 1) { \
        hdr.ipv4.checksum = CHECKSUM.update({ \
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification, \
            hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, \
            hdr.ipv4.source, hdr.ipv4.destination }); \
    }
