/* Checksums and hashes over a byte string, by BMv2's names. */
#ifndef SERENE_CHECKSUM_H
#define SERENE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include "wide.h"

/* The internet checksum does not depend on byte order until its end. So words are added in memory order, which the
 * compiler vectorises. */
INLINE uint64_t checksum_csum16(const uint8_t *data, size_t size) {
    uint64_t sum = 0;
    size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        uint32_t word;
        memcpy(&word, data + i, 4);
        sum += word;
    }
    for (; i < size; i++) sum += (uint64_t)data[i] << (8 * (i % 2));
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return __builtin_bswap16((uint16_t)~sum);
}

INLINE uint64_t checksum_xor16(const uint8_t *data, size_t size) {
    uint64_t mix = 0;
    size_t i = 0;
    for (; i + 1 < size; i += 2) mix ^= (uint64_t)data[i] << 8 | data[i + 1];
    if (i < size) mix ^= (uint64_t)data[i] << 8;
    return mix;
}

/* CRCs with reflected input and output (CRC-16/ARC, CRC-32/ISO-HDLC). Bit by bit is fast enough: they protect headers,
 * not payloads. */
INLINE uint64_t checksum_crc_reflected(const uint8_t *data, size_t size, uint32_t polynomial, uint32_t start,
                                       uint32_t finish) {
    uint32_t crc = start;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ polynomial : crc >> 1;
    }
    return crc ^ finish;
}

INLINE uint64_t checksum_crc16(const uint8_t *data, size_t size) {
    return checksum_crc_reflected(data, size, 0xa001, 0, 0);
}

INLINE uint64_t checksum_crc32(const uint8_t *data, size_t size) {
    return checksum_crc_reflected(data, size, 0xedb88320, 0xffffffff, 0xffffffff);
}

/* CRC-16/CCITT-FALSE: not reflected. */
INLINE uint64_t checksum_crcCCITT(const uint8_t *data, size_t size) {
    uint32_t crc = 0xffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= (uint32_t)data[i] << 8;
        for (int bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
    }
    return crc & 0xffff;
}

/* A CRC whose parameters are set while the program runs; `bits` is a multiple of 8. */
struct crc {
    uint64_t bits, polynomial, initial, final, data_reflected, remainder_reflected;
};

INLINE uint64_t reflected(uint64_t value, uint64_t bits) {
    uint64_t result = 0;
    for (uint64_t bit = 0; bit < bits; bit++) result |= (value >> bit & 1) << (bits - 1 - bit);
    return result;
}

static uint64_t __attribute__((unused)) checksum_crc_custom(const struct crc *crc, const uint8_t *data, size_t size) {
    uint64_t rest = crc->initial, top = 1ull << (crc->bits - 1);
    for (size_t i = 0; i < size; i++) {
        rest ^= (crc->data_reflected ? reflected(data[i], 8) : data[i]) << (crc->bits - 8);
        for (int bit = 0; bit < 8; bit++) rest = rest & top ? rest << 1 ^ crc->polynomial : rest << 1;
    }
    rest &= MASK(crc->bits);
    return (crc->remainder_reflected ? reflected(rest, crc->bits) : rest) ^ crc->final;
}

/* The first eight bytes as a number, as in BMv2. */
INLINE uint64_t checksum_identity(const uint8_t *data, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size && i < 8; i++) value = value << 8 | data[i];
    return value;
}

#endif
