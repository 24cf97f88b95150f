// IPv4's checksum. It is verified in received packets, and computed in packets that the switch writes. Answers have UDP
// checksum 0; the frame check sequence protects the values on the link.

#define IPV4_CHECKSUM(CALL) \
    CALL(hdr.ipv4.isValid() && hdr.serene.isValid(), \
         { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification, \
           hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, \
           hdr.ipv4.source, hdr.ipv4.destination }, \
         hdr.ipv4.checksum, HashAlgorithm.csum16)

control VerifyIpv4Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply { IPV4_CHECKSUM(verify_checksum); }
}

control ComputeIpv4Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply { IPV4_CHECKSUM(update_checksum); }
}
