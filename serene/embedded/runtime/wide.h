/* Arithmetic on numbers of the program's widths. Up to 64 bits a value is a uint64_t; wider values are arrays of 64-bit
 * limbs, least significant first. Loops have constant bounds after inlining, so the compiler unrolls or vectorises
 * them. */
#ifndef SERENE_WIDE_H
#define SERENE_WIDE_H

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline, unused))
#define MASK(bits) ((bits) >= 64 ? ~0ull : (1ull << (bits)) - 1)

INLINE uint64_t sign_extend(uint64_t value, int bits) {
    return bits >= 64 ? value : (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits));
}

/* P4 shifts by more than the width give 0 (or the sign); C leaves them undefined. */
INLINE uint64_t shift_left(uint64_t value, uint64_t by) { return by > 63 ? 0 : value << by; }
INLINE uint64_t shift_right(uint64_t value, uint64_t by) { return by > 63 ? 0 : value >> by; }
INLINE uint64_t shift_right_signed(uint64_t value, uint64_t by) {
    return (uint64_t)((int64_t)value >> (by > 63 ? 63 : by));
}

INLINE void wide_copy(uint64_t *to, int to_limbs, const uint64_t *from, int from_limbs) {
    for (int i = 0; i < to_limbs; i++) to[i] = i < from_limbs ? from[i] : 0;
}

/* Copies between two places, which do not overlap. `restrict` lets the compiler vectorise the loop: otherwise writing
 * one limb might change the pointer to the next ones. */
INLINE void wide_move(uint64_t *restrict to, const uint64_t *restrict from, int limbs) {
    for (int i = 0; i < limbs; i++) to[i] = from[i];
}

INLINE void wide_copy_signed(uint64_t *to, int to_limbs, const uint64_t *from, int from_limbs, int bits) {
    uint64_t top = sign_extend(from[from_limbs - 1], bits - 64 * (from_limbs - 1));
    uint64_t fill = (int64_t)top < 0 ? ~0ull : 0;
    for (int i = 0; i < to_limbs; i++) to[i] = i < from_limbs - 1 ? from[i] : i == from_limbs - 1 ? top : fill;
}

INLINE void wide_set(uint64_t *to, int limbs, uint64_t value, int is_negative) {
    to[0] = value;
    for (int i = 1; i < limbs; i++) to[i] = is_negative ? ~0ull : 0;
}

INLINE void wide_add(uint64_t *to, const uint64_t *a, const uint64_t *b, int limbs) {
    uint64_t carry = 0;
    for (int i = 0; i < limbs; i++) {
        unsigned __int128 sum = (unsigned __int128)a[i] + b[i] + carry;
        to[i] = (uint64_t)sum;
        carry = (uint64_t)(sum >> 64);
    }
}

INLINE void wide_subtract(uint64_t *to, const uint64_t *a, const uint64_t *b, int limbs) {
    uint64_t borrow = 0;
    for (int i = 0; i < limbs; i++) {
        unsigned __int128 difference = (unsigned __int128)a[i] - b[i] - borrow;
        to[i] = (uint64_t)difference;
        borrow = (uint64_t)(difference >> 64) & 1;
    }
}

/* Schoolbook multiplication. `to` must be neither a nor b. */
INLINE void wide_multiply(uint64_t *to, const uint64_t *a, const uint64_t *b, int limbs) {
    for (int i = 0; i < limbs; i++) to[i] = 0;
    for (int i = 0; i < limbs; i++) {
        uint64_t carry = 0;
        for (int j = 0; i + j < limbs; j++) {
            unsigned __int128 product = (unsigned __int128)a[i] * b[j] + to[i + j] + carry;
            to[i + j] = (uint64_t)product;
            carry = (uint64_t)(product >> 64);
        }
    }
}

/* `to` must not be `from`. */
INLINE void wide_shift_left(uint64_t *to, const uint64_t *from, uint64_t by, int limbs) {
    uint64_t words = by / 64, bits = by % 64;
    for (int i = 0; i < limbs; i++) {
        uint64_t low = (uint64_t)i > words ? from[i - words - 1] : 0;
        uint64_t high = (uint64_t)i >= words ? from[i - words] : 0;
        to[i] = bits ? high << bits | low >> (64 - bits) : high;
    }
}

INLINE void wide_shift_right(uint64_t *to, int to_limbs, const uint64_t *from, int limbs, uint64_t by,
                             uint64_t fill) {
    uint64_t words = by / 64, bits = by % 64;
    for (int i = 0; i < to_limbs; i++) {
        uint64_t low = i + words < (uint64_t)limbs ? from[i + words] : fill;
        uint64_t high = i + words + 1 < (uint64_t)limbs ? from[i + words + 1] : fill;
        to[i] = bits ? low >> bits | high << (64 - bits) : low;
    }
}

INLINE int wide_equal(const uint64_t *a, const uint64_t *b, int limbs) {
    uint64_t difference = 0;
    for (int i = 0; i < limbs; i++) difference |= a[i] ^ b[i];
    return difference == 0;
}

/* Two's complement of `limbs` limbs. */
INLINE int wide_less(const uint64_t *a, const uint64_t *b, int limbs) {
    if (a[limbs - 1] != b[limbs - 1]) return (int64_t)a[limbs - 1] < (int64_t)b[limbs - 1];
    for (int i = limbs - 2; i >= 0; i--)
        if (a[i] != b[i]) return a[i] < b[i];
    return 0;
}

/* Bit fields in packets. `offset` and `bits` are constants after inlining, so each access becomes a load (or a few), a
 * byte swap and a shift. */
INLINE uint64_t load_power(const uint8_t *at, int size) {
    uint64_t eight;
    uint32_t four;
    uint16_t two;
    switch (size) {
    case 8: memcpy(&eight, at, 8); return __builtin_bswap64(eight);
    case 4: memcpy(&four, at, 4); return __builtin_bswap32(four);
    case 2: memcpy(&two, at, 2); return __builtin_bswap16(two);
    default: return at[0];
    }
}

INLINE void store_power(uint8_t *at, int size, uint64_t value) {
    uint64_t eight = __builtin_bswap64(value);
    uint32_t four = __builtin_bswap32((uint32_t)value);
    uint16_t two = __builtin_bswap16((uint16_t)value);
    switch (size) {
    case 8: memcpy(at, &eight, 8); return;
    case 4: memcpy(at, &four, 4); return;
    case 2: memcpy(at, &two, 2); return;
    default: at[0] = (uint8_t)value; return;
    }
}

/* Writes one to eight bytes with up to three of the above. */
INLINE uint64_t load_bytes(const uint8_t *at, int size) {
    if ((size & (size - 1)) == 0) return load_power(at, size);
    uint64_t word = 0;
    for (int part = 4; part; part /= 2) {
        if (!(size & part)) continue;
        word = word << (8 * part) | load_power(at, part);
        at += part;
    }
    return word;
}

INLINE void store_bytes(uint8_t *at, int size, uint64_t value) {
    if ((size & (size - 1)) == 0) {
        store_power(at, size, value);
        return;
    }
    int left = size;
    for (int part = 4; part; part /= 2) {
        if (!(size & part)) continue;
        left -= part;
        store_power(at, part, value >> (8 * left));
        at += part;
    }
}

INLINE uint64_t load_bits(const uint8_t *data, int offset, int bits) {
    const uint8_t *at = data + offset / 8;
    int lead = offset % 8, span = (lead + bits + 7) / 8;
    if (span <= 8) return load_bytes(at, span) >> (8 * span - lead - bits) & MASK(bits);
    unsigned __int128 word = (unsigned __int128)load_bytes(at, 8) << 8 | at[8];
    return (uint64_t)(word >> (8 * span - lead - bits)) & MASK(bits);
}

INLINE void store_bits(uint8_t *data, int offset, int bits, uint64_t value) {
    uint8_t *at = data + offset / 8;
    int lead = offset % 8, span = (lead + bits + 7) / 8;
    if (lead == 0 && bits % 8 == 0) {
        store_bytes(at, bits / 8, value);
        return;
    }
    int tail = 8 * span - lead - bits;
    unsigned __int128 keep = ~((unsigned __int128)MASK(bits) << tail);
    unsigned __int128 word = (unsigned __int128)(value & MASK(bits)) << tail;
    for (int i = span - 1; i >= 0; i--) {
        at[i] = (uint8_t)((at[i] & (uint8_t)keep) | (uint8_t)word);
        word >>= 8;
        keep = keep >> 8 | (unsigned __int128)0xff << 120;
    }
}

/* Whole limbs, in both directions. The order of limbs is reversed, too, which the compiler vectorises. */
INLINE void swap_limbs(uint8_t *to, const uint8_t *from, int limbs) {
    for (int i = 0; i < limbs; i++) {
        uint64_t word;
        memcpy(&word, from + 8 * (limbs - 1 - i), 8);
        word = __builtin_bswap64(word);
        memcpy(to + 8 * i, &word, 8);
    }
}

INLINE void load_wide(uint64_t *to, const uint8_t *data, int offset, int bits) {
    int limbs = (bits + 63) / 64, top = bits - 64 * (limbs - 1);
    if (offset % 8 == 0 && bits % 64 == 0) {
        swap_limbs((uint8_t *)to, data + offset / 8, limbs);
        return;
    }
    for (int i = 0; i < limbs - 1; i++) to[i] = load_bits(data, offset + bits - 64 * (i + 1), 64);
    to[limbs - 1] = load_bits(data, offset, top);
}

INLINE void store_wide(uint8_t *data, int offset, int bits, const uint64_t *value) {
    int limbs = (bits + 63) / 64, top = bits - 64 * (limbs - 1);
    if (offset % 8 == 0 && bits % 64 == 0) {
        swap_limbs(data + offset / 8, (const uint8_t *)value, limbs);
        return;
    }
    for (int i = 0; i < limbs - 1; i++) store_bits(data, offset + bits - 64 * (i + 1), 64, value[i]);
    store_bits(data, offset, top, value[limbs - 1]);
}

/* A byte string of any length as a number. */
INLINE void load_string(uint64_t *to, int limbs, const uint8_t *data, uint32_t size) {
    for (int i = 0; i < limbs; i++) to[i] = 0;
    for (uint32_t i = 0; i < size; i++) to[i / 8] |= (uint64_t)data[size - 1 - i] << (8 * (i % 8));
}

#endif
