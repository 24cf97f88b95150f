/* The numbers of serene.client.allreduce.blocks, to the bit: float32 of any magnitude as integers that a switch can add. */

enum { NONE = -1, UNKNOWN = -2 };                    /* classes */
enum { MANTISSA_BITS = 23, MAX_EXPONENT = 127, NOISE_BITS = 16, SPECIAL_BITS = 10 };
enum { SIGNATURE_LANES = 2, VOTE_LANES = 2, PIECES_PER_BLOCK = 4 };
enum { MAGNITUDE = 0x7FFFFFFF, INFINITE = 0x7F800000 };

#define HELD_LIMITS 4194304.0    /* serene.client.allreduce.scale */

struct layout {                  /* serene.client.allreduce.blocks.Layout */
    uint32_t workers, lanes, bits, values_per_lane, levels, level_bits, exponent_bits, classes_of_finite, counter_bits;
    uint32_t counters_per_lane, lanes_per_block, blocks_per_piece, rows_per_block;
    uint32_t given;              /* whether integers count 2^unit each; else scales are voted for */
    int32_t unit;
    float limit;
};

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

/* The magnitude as an integer that grows with it. */
static int64_t magnitude_of(double value) {
    int64_t bits;
    memcpy(&bits, &value, 8);
    return bits & INT64_MAX;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* The largest finite magnitude; whether any value is not finite. */
static float largest_of(const float *values, uint64_t count, int *not_finite) {
    uint32_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(values[i]) & MAGNITUDE;
        largest = bits > largest ? bits : largest;
    }
    *not_finite = largest >= INFINITE;
    if (*not_finite) {
        largest = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint32_t bits = bits_of(values[i]) & MAGNITUDE;
            if (bits < INFINITE && bits > largest) largest = bits;
        }
    }
    return float_of(largest);
}

/* Adds the finite values to what was held back; its largest magnitude then. */
static double add_to_held(const float *restrict values, uint64_t count, double *restrict held) {
    double largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        held[i] += (bits_of(values[i]) & MAGNITUDE) < INFINITE ? (double)values[i] : 0.0;
        double magnitude = fabs(held[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

/* As add_to_held, but values that would make what is held back grow beyond the limit are lost: they are added to
 * `lost`, unless that is NULL. Returns how many. */
static uint64_t add_within(const float *restrict values, uint64_t count, double limit, double *restrict held,
                           double *restrict lost, double *largest) {
    uint64_t beyond = 0;
    int64_t most = 0;                    /* as of magnitude_of: integers are compared faster */
    while (count) {
        enum { FEW = 512 };              /* so few that they are still in the nearest cache when they are stored */
        uint64_t few = count < FEW ? count : FEW;
        double sums[FEW];
        int64_t largest_sum = 0;
        for (uint64_t i = 0; i < few; i++) {
            sums[i] = held[i] + ((bits_of(values[i]) & MAGNITUDE) < INFINITE ? (double)values[i] : 0.0);
            int64_t magnitude = magnitude_of(sums[i]);
            largest_sum = magnitude > largest_sum ? magnitude : largest_sum;
        }
        if (largest_sum > magnitude_of(limit)) {
            largest_sum = 0;
            for (uint64_t i = 0; i < few; i++) {
                double before = fabs(held[i]);
                if (fabs(sums[i]) > (before > limit ? before : limit)) {
                    if (lost) lost[i] += (double)values[i];
                    sums[i] = held[i];
                    beyond++;
                }
                int64_t magnitude = magnitude_of(sums[i]);
                largest_sum = magnitude > largest_sum ? magnitude : largest_sum;
            }
        }
        memcpy(held, sums, few * sizeof *sums);
        most = largest_sum > most ? largest_sum : most;
        values += few, held += few, count -= few;
        if (lost) lost += few;
    }
    memcpy(largest, &most, sizeof most);
    return beyond;
}

static int class_of(const struct layout *layout, double largest) {
    if (largest == 0) return NONE;
    if (layout->given) return 0;
    double spread = layout->bits == 32 ? largest : ldexp(largest, (int)layout->level_bits) / layout->levels;
    int field = ilogb(spread) + 127;
    field = field < 0 ? 0 : field > 254 ? 254 : field;
    return field >> (layout->exponent_bits - MANTISSA_BITS);
}

/* How many bits more than a value a sum over all workers has. */
static int worker_bits(const struct layout *layout) {
    return layout->workers > 1 ? 32 - __builtin_clz(layout->workers - 1) : 0;
}

static int top_of(const struct layout *layout, int class) {
    if (layout->given) return layout->unit + (layout->bits == 32 ? 31 - worker_bits(layout) : (int)layout->level_bits);
    return ((class + 1) << (layout->exponent_bits - MANTISSA_BITS)) - 127;
}

static int shift_of(const struct layout *layout, int class) {
    return 31 - worker_bits(layout) - top_of(layout, class);
}

/* Single precision is enough where no scale or result leaves its normal range, and is twice as fast. */
static void to_fixed(const float *restrict values, uint64_t count, int shift, int not_finite, uint32_t *restrict to) {
    if (!not_finite && shift >= -126 && shift <= 127) {
        float scale = ldexpf(1.0f, shift);
        for (uint64_t i = 0; i < count; i++) to[i] = __builtin_bswap32((uint32_t)(int32_t)rintf(values[i] * scale));
        return;
    }
    double scale = ldexp(1.0, shift);
    for (uint64_t i = 0; i < count; i++) {
        double value = (bits_of(values[i]) & MAGNITUDE) < INFINITE ? (double)values[i] : 0.0;
        to[i] = __builtin_bswap32((uint32_t)(int32_t)rint(value * scale));
    }
}

/* Sums in network byte order, less what was read before, to float32. */
static void to_float(const uint8_t *restrict from, uint32_t *restrict held, uint64_t count, int shift,
                     float *restrict values) {
    if (shift <= 126) {
        float scale = ldexpf(1.0f, -shift);
        for (uint64_t i = 0; i < count; i++) {
            uint32_t sum = read32(from + 4 * i);
            values[i] = (float)(int32_t)(sum - held[i]) * scale;
            held[i] = sum;
        }
        return;
    }
    double scale = ldexp(1.0, -shift);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t sum = read32(from + 4 * i);
        values[i] = (float)((double)(int32_t)(sum - held[i]) * scale);
        held[i] = sum;
    }
}

static inline uint32_t noise(uint32_t seed, uint32_t index) {
    uint32_t mixed = index ^ seed;
    mixed = (mixed ^ mixed >> 16) * 0x7FEB352D;
    mixed = (mixed ^ mixed >> 15) * 0x846CA68B;
    return mixed ^ mixed >> 16;
}

static inline float clipped(float value, float limit) {
    return value > limit ? limit : value < -limit ? -limit : value;
}

static uint64_t count_beyond(const float *values, uint64_t count, float limit) {
    uint64_t beyond = 0;
    for (uint64_t i = 0; i < count; i++) {
        float magnitude = fabsf(values[i]);
        beyond += (magnitude > limit) & (magnitude < INFINITY);
    }
    return beyond;
}

/* As to_fixed under a given scale: clipped, and rounded at random. What is not finite is 0. */
static void to_given(const struct layout *layout, const float *restrict values, uint64_t count, uint32_t seed,
                     uint32_t first, int shift, uint32_t *restrict to) {
    double scale = ldexp(1.0, shift + NOISE_BITS);
    /* rint(x - below) is floor(x) for multiples of 2^-NOISE_BITS; compilers vectorise rint, but not floor. */
    const double below = 0.5 - 0.5 / (1 << NOISE_BITS);
    float limit = layout->limit;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t finite = -(uint32_t)((bits_of(values[i]) & MAGNITUDE) < INFINITE);
        float value = float_of(bits_of(clipped(values[i], limit)) & finite);
        double random = (double)(int32_t)(noise(seed, first + (uint32_t)i) >> (32 - NOISE_BITS));
        double fine = (rint((double)value * scale) + random) * (1.0 / (1 << NOISE_BITS));
        to[i] = __builtin_bswap32((uint32_t)(int32_t)rint(fine - below));
    }
}

/* Several rows of values to one of lanes, in network byte order. first: index of the first value in the vector. clips:
 * whether to clip; a constant, which saves a fifth of the time. */
static inline __attribute__((always_inline)) void pack(
    const struct layout *layout, const float *restrict values, uint64_t count, uint32_t seed, uint32_t first, int class,
    int clips, uint32_t *restrict to) {
    uint32_t lanes = layout->lanes;
    float limit = layout->limit;
    double scale = ldexp(1.0, (int)layout->level_bits + NOISE_BITS - top_of(layout, class));
    memset(to, 0, 4 * lanes);
    for (uint32_t place = 0; count; place += layout->bits) {
        uint32_t length = count < lanes ? (uint32_t)count : lanes;
        for (uint32_t i = 0; i < length; i++) {
            int32_t fine = (int32_t)rint((double)(clips ? clipped(values[i], limit) : values[i]) * scale);
            int32_t random = (int32_t)(noise(seed, first + i) >> (32 - NOISE_BITS));
            to[i] += (uint32_t)((fine + random) >> NOISE_BITS) << place;
        }
        values += length, first += length, count -= length;
    }
    for (uint32_t i = 0; i < lanes; i++) to[i] = __builtin_bswap32(to[i]);
}

static void to_packed(const struct layout *layout, const float *values, uint64_t count, uint32_t seed, uint32_t first,
                      int class, uint32_t *to) {
    if (layout->given) pack(layout, values, count, seed, first, class, 1, to);
    else pack(layout, values, count, seed, first, class, 0, to);
}

/* The integer to send, rounded to nearest; the rest stays in `held`. */
static inline int32_t hold_back(double *held, double per_unit, double unit, double highest) {
    double sent = rint(*held * per_unit);
    sent = sent > highest ? highest : sent < -highest ? -highest : sent;
    *held -= sent * unit;
    return (int32_t)sent;
}

/* As to_fixed, with error feedback. */
static void held_to_fixed(const struct layout *layout, double *restrict held, uint64_t count, int class,
                          uint32_t *restrict to) {
    int shift = shift_of(layout, class), bits = worker_bits(layout);
    double per_unit = ldexp(1.0, shift), unit = ldexp(1.0, -shift), highest = ldexp(1.0, 31 - bits) - 1;
    for (uint64_t i = 0; i < count; i++)
        to[i] = __builtin_bswap32((uint32_t)hold_back(held + i, per_unit, unit, highest));
}

/* As to_packed, with error feedback. */
static void held_to_packed(const struct layout *layout, double *restrict held, uint64_t count, int class,
                           uint32_t *restrict to) {
    uint32_t lanes = layout->lanes;
    int above = top_of(layout, class) - (int)layout->level_bits;
    double per_unit = ldexp(1.0, -above), unit = ldexp(1.0, above), highest = layout->levels;
    memset(to, 0, 4 * lanes);
    for (uint32_t place = 0; count; place += layout->bits) {
        uint32_t length = count < lanes ? (uint32_t)count : lanes;
        for (uint32_t i = 0; i < length; i++) to[i] += (uint32_t)hold_back(held + i, per_unit, unit, highest) << place;
        held += length, count -= length;
    }
    for (uint32_t i = 0; i < lanes; i++) to[i] = __builtin_bswap32(to[i]);
}

/* The sums of what was packed, row by row, to float32. */
static void from_packed(const struct layout *layout, uint32_t *restrict sums, uint64_t count, int class,
                        float *restrict values) {
    uint32_t lanes = layout->lanes, above = 32 - layout->bits;
    double level = ldexp(1.0, top_of(layout, class) - (int)layout->level_bits);
    while (count) {
        uint32_t length = count < lanes ? (uint32_t)count : lanes;
        for (uint32_t i = 0; i < length; i++) {
            int32_t digit = (int32_t)(sums[i] << above) >> above;
            values[i] = (float)((double)digit * level);
            sums[i] = (sums[i] - (uint32_t)digit) >> layout->bits;
        }
        values += length, count -= length;
    }
}

static void difference(const uint8_t *restrict from, uint32_t *restrict held, uint64_t count, uint32_t *restrict to) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t sum = read32(from + 4 * i);
        to[i] = sum - held[i];
        held[i] = sum;
    }
}

static void count_specials(const float *values, uint64_t count, uint32_t *to) {
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(values[i]), magnitude = bits & MAGNITUDE;
        int place = magnitude > INFINITE ? 0 : bits >> 31 ? 2 : 1;
        to[i] = magnitude < INFINITE ? 0 : __builtin_bswap32(1u << place * SPECIAL_BITS);
    }
}

static void add_specials(float *values, uint64_t count, const int32_t *counts) {
    const int32_t mask = (1 << SPECIAL_BITS) - 1;
    for (uint64_t i = 0; i < count; i++) {
        int nans = counts[i] & mask, positive = counts[i] >> SPECIAL_BITS & mask;
        int negative = counts[i] >> 2 * SPECIAL_BITS & mask;
        if (nans || (positive && negative)) values[i] = NAN;
        else if (positive) values[i] = INFINITY;
        else if (negative) values[i] = -INFINITY;
    }
}

/* How many values a lane carries in such a block: so many rows a piece of it has. */
static uint32_t values_in_lane(const struct layout *layout, int class, int not_finite) {
    if (layout->given) return not_finite ? 1 : layout->values_per_lane;
    int largest_sum = top_of(layout, class) + worker_bits(layout);
    return not_finite || class == 0 || largest_sum > MAX_EXPONENT ? 1 : layout->values_per_lane;
}
