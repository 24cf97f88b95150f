/* A whole collective without Python in between: allreduce/collective.py, and plainpool.py's exchange of it.
 *
 * Compiled after fastpath.c, whose exchange it uses, and blocks.c. A piece's packet is written when there is room for
 * it, and an answer goes straight from the packet into the vector. Whatever is not the common case ends the call, and
 * the protocol decides. tests/client/test_fastpool.py compares it with Python, to the bit. */

enum kind { EXPONENTS, VALUES, SPECIALS };
enum { NOTHING, COUNTS, SUMS };                      /* which of a row's specials and values was answered first */
enum { OVER = -1, NOT_YET, PIECE };                  /* what next_piece returns */
enum { PUBLISHED = 64 };         /* pieces, after which the switch gets to know of them */

struct pool {                    /* serene.client.allreduce.fastpool._Pool */
    struct exchange *exchange;
    float *values;               /* count of them */
    uint32_t *held_values, *held_totals;             /* by slot: as read last */
    uint64_t *index, *place;     /* by slot: the piece's, and how many were begun before it */
    uint8_t *kind, *under_way;
    uint8_t *unwritten;          /* whether its packet went into the ring and is not among the payloads */
    int16_t *classes;            /* by block */
    uint8_t *not_finite;
    int32_t *specials;           /* 2 * slots rows of lanes: counts that wait for their sums, by the place of these */
    uint8_t *specials_state;
    uint8_t *inbox;              /* inbox_rows x inbox_bytes: what was received */
    double *residual;           /* count of them: by earlier collectives, then by this one; NULL: rounds at random */
    double *lost;                /* count of them, to which what may not be held back is added; or NULL */
    uint64_t count, begun, sent, pieces_under_way, group, groups, exponents, ahead;
    uint64_t clipped_values, lost_values;            /* of this collective */
    double until;
    struct layout layout;        /* the collective's */
    uint32_t noise_seed, block, row, inbox_rows, inbox_bytes;
    uint32_t most_under_way;     /* serene.client.allreduce.collective.most_under_way */
    uint32_t signature[SIGNATURE_LANES], vote[VOTE_LANES];
    uint32_t votes[VOTE_LANES];  /* the sum of all workers' */
    uint8_t agreed, disagreed, special_begun, no_more;
    uint8_t joins;               /* the kernel may put packets of one size together in one buffer */
};

/* -- the pieces --------------------------------------------------------------------------------------------- */

static uint32_t rows_of(const struct pool *pool, uint64_t block) {
    return values_in_lane(&pool->layout, pool->classes[block], pool->not_finite[block]);
}

/* How many values there are from `first` on, up to `most`. */
static uint64_t length_of(const struct pool *pool, uint64_t first, uint64_t most) {
    return first >= pool->count ? 0 : pool->count - first < most ? pool->count - first : most;
}

static int next_piece(struct pool *pool, uint8_t *kind, uint64_t *index) {
    uint32_t lanes = pool->exchange->lanes;
    if (pool->exponents && !pool->agreed) return NOT_YET;
    for (;;) {
        uint64_t ahead = pool->agreed ? pool->group + pool->ahead + 1 : 1;
        if (pool->exponents < (ahead < pool->groups ? ahead : pool->groups)) {
            *kind = EXPONENTS;
            *index = pool->exponents++;
            return PIECE;
        }
        if (pool->group == pool->groups) return OVER;
        uint64_t block = pool->group * pool->layout.blocks_per_piece + pool->block;
        if (pool->classes[block] == UNKNOWN) return NOT_YET;
        uint64_t row = block * pool->layout.rows_per_block + pool->row, first = row * lanes;
        if (pool->row == pool->layout.rows_per_block || first >= pool->count) {
            pool->row = 0;
            if (++pool->block == pool->layout.blocks_per_piece) {
                pool->block = 0;
                pool->group++;
            }
            continue;
        }
        *index = row;
        if (pool->not_finite[block] && !pool->special_begun) {
            pool->special_begun = 1;
            *kind = SPECIALS;
            return PIECE;
        }
        pool->special_begun = 0;
        uint32_t rows = rows_of(pool, block);
        pool->row += rows;
        if (pool->classes[block] != NONE) {
            *kind = VALUES;
            return PIECE;
        }
        if (!pool->not_finite[block])
            memset(pool->values + first, 0, sizeof(float) * length_of(pool, first, (uint64_t)rows * lanes));
    }
}

static double hold(struct pool *pool, uint64_t first, uint64_t count) {
    const float *values = pool->values + first;
    double *held = pool->residual + first, largest;
    if (!pool->layout.given) return add_to_held(values, count, held);
    double limit = HELD_LIMITS * (double)pool->layout.limit;
    pool->lost_values += add_within(values, count, limit, held, pool->lost ? pool->lost + first : NULL, &largest);
    return largest;
}

static void count_exponents(struct pool *pool, uint64_t group, uint32_t *to) {
    for (uint32_t i = 0; i < SIGNATURE_LANES; i++) *to++ = __builtin_bswap32(pool->signature[i]);
    for (uint32_t i = 0; i < VOTE_LANES; i++) *to++ = __builtin_bswap32(pool->vote[i]);
    uint64_t block_values = (uint64_t)pool->layout.rows_per_block * pool->exchange->lanes;
    for (uint32_t i = 0; i < pool->layout.blocks_per_piece; i++, to += pool->layout.lanes_per_block) {
        uint64_t first = (group * pool->layout.blocks_per_piece + i) * block_values;
        uint64_t count = length_of(pool, first, block_values);
        if (!count) return;
        int not_finite;
        double largest = largest_of(pool->values + first, count, &not_finite);
        if (pool->residual) largest = hold(pool, first, count);
        int class = class_of(&pool->layout, largest);
        int counters[2] = {class, not_finite ? (int)pool->layout.classes_of_finite : NONE};
        for (int j = 0; j < 2; j++)
            if (counters[j] != NONE) {
                uint32_t *lane = to + counters[j] / pool->layout.counters_per_lane;
                uint32_t place = counters[j] % pool->layout.counters_per_lane * pool->layout.counter_bits;
                *lane = __builtin_bswap32(__builtin_bswap32(*lane) + (1u << place));
            }
    }
}

static void learn(struct pool *pool, uint64_t group, const uint32_t *sums) {
    for (uint32_t i = 0; i < SIGNATURE_LANES; i++)
        if (*sums++ != pool->signature[i] * pool->layout.workers) {
            pool->disagreed = 1;
            return;
        }
    pool->agreed = 1;
    for (uint32_t i = 0; i < VOTE_LANES; i++) pool->votes[i] = *sums++;
    uint32_t mask = (uint32_t)((1ull << pool->layout.counter_bits) - 1);
    for (uint32_t i = 0; i < pool->layout.blocks_per_piece; i++, sums += pool->layout.lanes_per_block) {
        uint64_t block = group * pool->layout.blocks_per_piece + i;
        int class = (int)pool->layout.classes_of_finite + 1;
        pool->not_finite[block] = 0;
        while (--class >= 0) {
            uint32_t lane = sums[class / pool->layout.counters_per_lane];
            if (!(lane >> class % pool->layout.counters_per_lane * pool->layout.counter_bits & mask)) continue;
            if (class != (int)pool->layout.classes_of_finite) break;
            pool->not_finite[block] = 1;
        }
        pool->classes[block] = (int16_t)class;
    }
}

/* Whether the slot's packet can be made again until it is answered. */
static int can_be_made_again(const struct pool *pool, uint32_t slot) {
    if (pool->residual) return 0;
    return pool->kind[slot] == EXPONENTS
           || (pool->kind[slot] == VALUES && !pool->not_finite[pool->index[slot] / pool->layout.rows_per_block]);
}

/* Makes the packet of a slot's piece, whose header's other fields are there. */
static void contribute(struct pool *pool, uint32_t slot, uint8_t *packet) {
    const struct exchange *exchange = pool->exchange;
    uint32_t *to = (uint32_t *)(packet + HEADER_BYTES), lanes = exchange->lanes;
    uint64_t index = pool->index[slot], first = index * lanes, block = index / pool->layout.rows_per_block;
    if (pool->kind[slot] == EXPONENTS) {
        memset(to, 0, 4 * lanes);
        count_exponents(pool, index, to);
    } else {
        int narrow = rows_of(pool, block) > 1, class = pool->classes[block];
        uint64_t count = length_of(pool, first, narrow ? (uint64_t)pool->layout.values_per_lane * lanes : lanes);
        const float *values = pool->values + first;
        for (uint64_t i = 0; i < count; i += 16) __builtin_prefetch(values + count + i);     /* the next piece's */
        int rounds = pool->kind[slot] == VALUES && !pool->residual;
        if (rounds && pool->layout.given) pool->clipped_values += count_beyond(values, count, pool->layout.limit);
        if (narrow && rounds)
            to_packed(&pool->layout, values, count, pool->noise_seed, (uint32_t)first, class, to);
        else if (narrow)
            held_to_packed(&pool->layout, pool->residual + first, count, class, to);
        else if (pool->kind[slot] == SPECIALS)
            count_specials(values, count, to);
        else if (!rounds)
            held_to_fixed(&pool->layout, pool->residual + first, count, class, to);
        else if (pool->layout.given)
            to_given(&pool->layout, values, count, pool->noise_seed, (uint32_t)first, shift_of(&pool->layout, class), to);
        else
            to_fixed(values, count, shift_of(&pool->layout, class), pool->not_finite[block], to);
        if (!narrow) memset(to + count, 0, 4 * (lanes - count));
    }
    uint32_t *header = (uint32_t *)packet;
    header[AT_EPOCH / 4] = __builtin_bswap32(exchange->epoch);
    header[AT_ROUND / 4] = __builtin_bswap32(exchange->rounds[slot]);
    header[AT_SEQ / 4] = __builtin_bswap32(exchange->awaited[slot]);
    header[AT_TOTAL / 4] = __builtin_bswap32(pool->held_totals[slot]);
    packet[AT_OP] = OP_PUSH;
}

/* Takes in the sums of the slot's piece, which are in network byte order. */
static void take(struct pool *pool, uint32_t slot, const uint8_t *from) {
    uint32_t lanes = pool->exchange->lanes, *held = pool->held_values + (size_t)slot * lanes;
    uint32_t sums[LARGEST_LANES];
    uint64_t index = pool->index[slot], first = index * lanes, block = index / pool->layout.rows_per_block;
    if (pool->kind[slot] == EXPONENTS) {
        difference(from, held, lanes, sums);
        learn(pool, index, sums);
        return;
    }
    float *values = pool->values + first;
    if (rows_of(pool, block) > 1) {
        difference(from, held, lanes, sums);
        uint64_t count = length_of(pool, first, (uint64_t)pool->layout.values_per_lane * lanes);
        from_packed(&pool->layout, sums, count, pool->classes[block], values);
        return;
    }
    uint64_t count = length_of(pool, first, lanes), place = pool->place[slot] + (pool->kind[slot] == SPECIALS);
    uint8_t *state = pool->specials_state + place % (2 * pool->exchange->slots);
    int32_t *counts = pool->specials + place % (2 * pool->exchange->slots) * lanes;
    if (pool->kind[slot] == VALUES) {
        for (uint64_t i = 0; i < count; i += 16) {
            __builtin_prefetch(held + lanes + i, 1);
            __builtin_prefetch(values + count + i, 1);
        }
        to_float(from, held, count, shift_of(&pool->layout, pool->classes[block]), values);
        difference(from + 4 * count, held + count, lanes - count, sums);
        if (!pool->not_finite[block]) return;
        if (*state == COUNTS) add_specials(values, count, counts);
        *state = *state == COUNTS ? NOTHING : SUMS;
        return;
    }
    difference(from, held, lanes, (uint32_t *)counts);
    if (pool->classes[block] == NONE) memset(values, 0, sizeof(float) * count);
    if (pool->classes[block] == NONE || *state == SUMS) {
        add_specials(values, count, counts);
        *state = NOTHING;
    } else {
        *state = COUNTS;
    }
}

/* -- the exchange ------------------------------------------------------------------------------------------- */

/* Whether a read of so many contributions is the piece's whole sum, which is then taken in: nobody contributes to a
 * slot's next round before it has read all contributions of this one. */
static int finish_piece(struct pool *pool, uint32_t slot, uint32_t total, const uint8_t *values) {
    if (total - pool->held_totals[slot] != pool->layout.workers) return 0;
    take(pool, slot, values);
    pool->held_totals[slot] = pool->exchange->totals[slot] = total;
    pool->exchange->rounds[slot]++;
    pool->under_way[slot] = pool->unwritten[slot] = 0;
    pool->pieces_under_way--;
    return 1;
}

/* Takes in an answer; 0 if the protocol has to decide. Where the answer lacks contributions because a newer epoch has
 * begun, the packet is sent again later, unless nothing more is to come. */
static int accept_piece(struct pool *pool, const uint8_t *packet, uint32_t slot, struct batch *batch) {
    struct exchange *exchange = pool->exchange;
    int32_t held = (int32_t)(read32(packet + AT_TOTAL) - pool->held_totals[slot]);
    if (held < (int32_t)pool->layout.workers && read32(packet + AT_EPOCH) != exchange->epoch && !pool->no_more) {
        exchange->ignored++;
        return 1;
    }
    if (held != (int32_t)pool->layout.workers) return 0;
    answered(exchange, packet, slot, batch);
    return finish_piece(pool, slot, read32(packet + AT_TOTAL), packet + HEADER_BYTES);
}

/* Takes in a packet, or copies it to the exchange's rows if it is odd. */
static void receive_piece(struct pool *pool, const uint8_t *row, uint32_t length, struct batch *batch) {
    struct exchange *exchange = pool->exchange;
    uint32_t head = exchange->head_bytes;
    if (length < head || !is_framed(exchange, row)) return;
    const uint8_t *packet = row + head;
    int plain = is_plain(exchange, packet, length - head);
    if (plain) {
        uint32_t slot = read32(packet + AT_SLOT);
        if (is_awaited(exchange, packet, slot)) plain = accept_piece(pool, packet, slot, batch);
        else exchange->ignored++;
    }
    if (plain) {
        exchange->received++;
    } else if (exchange->odd < BATCH && length <= exchange->row_bytes) {
        memcpy(exchange->rows + (size_t)exchange->odd * exchange->row_bytes, row, length);
        exchange->odd_rows[exchange->odd] = exchange->odd;
        exchange->odd_lengths[exchange->odd++] = length - head;
    }
}

/* Takes in the ring's packets where they lie. */
static void receive_pieces_shm(struct pool *pool, struct batch *batch) {
    struct shm_end *shm = pool->exchange->shm;
    const uint8_t *frame;
    uint32_t length;
    int outcome;
    if (!shm->memory) return;
    for (int count = 0; count < BATCH && (outcome = shm_read(shm, &frame, &length)); count++)
        if (outcome > 0) receive_piece(pool, frame, length, batch);
    shm_release(shm);
}

static int receive_pieces_socket(struct pool *pool, struct batch *batch) {
    struct exchange *exchange = pool->exchange;
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    _Alignas(struct cmsghdr) uint8_t control[BATCH][CMSG_SPACE(sizeof(int))];
    memset(messages, 0, pool->inbox_rows * sizeof *messages);
    for (uint32_t i = 0; i < pool->inbox_rows; i++) {
        parts[i] = (struct iovec){pool->inbox + (size_t)i * pool->inbox_bytes, pool->inbox_bytes};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1, .msg_control = control[i],
                                              .msg_controllen = sizeof control[i]};
    }
    int count = recvmmsg(exchange->socket, messages, pool->inbox_rows, MSG_DONTWAIT, NULL);
    if (count < 0) {
        if (errno == EINTR || is_transient(errno)) return 0;   /* an error that an earlier send has met */
        exchange->error = errno;
        return -1;
    }
    for (int i = 0; i < count; i++) {
        const uint8_t *row = pool->inbox + (size_t)i * pool->inbox_bytes, *end = row + messages[i].msg_len;
        uint32_t size = segment_bytes(&messages[i].msg_hdr, messages[i].msg_len);
        for (; row < end; row += size)
            receive_piece(pool, row, end - row < size ? (uint32_t)(end - row) : size, batch);
    }
    return 0;
}

/* As receive_batch. */
static int receive_pieces(struct pool *pool, struct flight *at) {
    struct exchange *exchange = pool->exchange;
    struct batch batch = {0};
    double now = now_s();
    if (exchange->shm) receive_pieces_shm(pool, &batch);
    else if (receive_pieces_socket(pool, &batch)) return -1;
    if (batch.accepted) progressed(exchange, at, &batch, now);
    return (int)batch.accepted;
}

/* Takes in answers that the protocol has accepted meanwhile; 0 if one is no piece's whole sum. */
static int finish_accepted(struct pool *pool) {
    struct exchange *exchange = pool->exchange;
    for (uint32_t slot = 0; slot < exchange->slots; slot++) {
        if (!pool->under_way[slot] || exchange->state[slot] != ANSWERED) continue;
        uint32_t travelling[LARGEST_LANES];
        for (uint32_t lane = 0; lane < exchange->lanes; lane++)
            travelling[lane] = __builtin_bswap32(exchange->values[(size_t)slot * exchange->lanes + lane]);
        if (!finish_piece(pool, slot, exchange->totals[slot], (const uint8_t *)travelling)) return 0;
    }
    return 1;
}

static void count_sent(struct pool *pool, struct flight *flight, uint32_t slot, uint32_t run, double now) {
    struct exchange *exchange = pool->exchange;
    for (uint32_t i = slot; i < slot + run; i++) {
        exchange->state[i] = IN_FLIGHT;
        exchange->in_network[i] = 1;
        exchange->order[i] = exchange->transmissions++;
        exchange->attempts[i]++;
        exchange->sent_at[i] = now;
    }
    pool->sent += run;
    exchange->sent += run;
    flight->in_flight += run;
    flight->in_network += run;
    flight->sent_last = now;
    if (!exchange->stalled) exchange->busy_at = now;
}

/* Makes the packet of a piece that has begun. If its turn has come and the ring has room, it goes there at once: another
 * copy would only take cache away from others. */
static void make_packet(struct pool *pool, struct flight *flight, uint32_t slot, int turn, double now) {
    struct exchange *exchange = pool->exchange;
    struct shm_end *shm = exchange->shm;
    uint8_t *row = exchange->payloads + (size_t)slot * exchange->payload_bytes;
    _Alignas(64) uint8_t packet[HEADER_BYTES + 4 * LARGEST_LANES];
    if (!turn || !shm || !shm->memory || shm->closed || !can_be_made_again(pool, slot)) {
        contribute(pool, slot, row);
        return;
    }
    memcpy(packet, row, HEADER_BYTES);
    contribute(pool, slot, packet);
    struct iovec parts[2] = {{exchange->head, exchange->head_bytes}, {packet, exchange->payload_bytes}};
    if (shm_write(shm, parts, 2)) {
        pool->unwritten[slot] = 1;
        count_sent(pool, flight, slot, 1, now);
    } else {
        memcpy(row, packet, exchange->payload_bytes);
    }
}

/* Begins what can begin, for as many packets as the window has room for. */
static int begin_pieces(struct pool *pool, struct flight *flight) {
    struct exchange *exchange = pool->exchange;
    int outcome = GO_ON;
    double now = now_s();
    while (flight->in_network + (pool->begun - pool->sent) < (uint64_t)exchange->window) {
        uint32_t slot = (uint32_t)(pool->begun % exchange->slots);
        uint32_t before = (slot + exchange->slots - pool->most_under_way) % exchange->slots;
        if (pool->under_way[before] || next_piece(pool, &pool->kind[slot], &pool->index[slot]) != PIECE) break;
        if ((outcome = pool->no_more ? NO_MORE : GO_ON) != GO_ON) break;
        int turn = pool->sent == pool->begun;
        exchange->awaited[slot]++;
        exchange->attempts[slot] = 0;
        exchange->state[slot] = UNSENT;
        pool->under_way[slot] = 1;
        pool->place[slot] = pool->begun++;
        pool->pieces_under_way++;
        make_packet(pool, flight, slot, turn, now);
        if (pool->begun % PUBLISHED == 0 && exchange->shm) {
            shm_publish(exchange->shm);
            now = now_s();
        }
    }
    if (exchange->shm) shm_publish(exchange->shm);
    return outcome;
}

/* Makes the packets that are only in the ring once more, for whoever may have to send them again. */
static void write_all(struct pool *pool) {
    struct exchange *exchange = pool->exchange;
    uint64_t clipped = pool->clipped_values;         /* they were counted */
    for (uint32_t slot = 0; slot < exchange->slots; slot++) {
        if (!pool->unwritten[slot]) continue;
        pool->unwritten[slot] = 0;
        contribute(pool, slot, exchange->payloads + (size_t)slot * exchange->payload_bytes);
    }
    pool->clipped_values = clipped;
}

static void unsend(struct pool *pool, struct flight *flight, uint64_t to) {
    struct exchange *exchange = pool->exchange;
    while (pool->sent > to) {
        uint32_t slot = (uint32_t)(--pool->sent % exchange->slots);
        exchange->state[slot] = UNSENT;
        exchange->attempts[slot]--;
        exchange->sent--;
        flight->in_flight--;
        flight->in_network--;
    }
}

/* Sends the pieces that have begun, in this order. 1: the socket's queue is full. -1: the socket is broken. */
static int send_pieces(struct pool *pool, struct flight *flight) {
    struct exchange *exchange = pool->exchange;
    while (pool->sent < pool->begun) {
        struct mmsghdr messages[BATCH];
        struct iovec parts[BATCH][2];
        _Alignas(struct cmsghdr) uint8_t control[BATCH][CMSG_SPACE(sizeof(uint16_t))];
        uint64_t first[BATCH];
        unsigned count = 0;
        double now = now_s();
        while (count < BATCH && pool->sent < pool->begun) {
            uint32_t slot = (uint32_t)(pool->sent % exchange->slots), run = exchange->run_most;
            if (run > pool->begun - pool->sent) run = (uint32_t)(pool->begun - pool->sent);
            if (run > exchange->slots - slot) run = exchange->slots - slot;
            memset(&messages[count], 0, sizeof messages[count]);
            prepare(exchange, slot, run, &messages[count].msg_hdr, parts[count], control[count]);
            first[count++] = pool->sent;
            count_sent(pool, flight, slot, run, now);
        }
        for (unsigned sent = 0; sent < count;) {
            int done = send_messages(exchange, messages + sent, count - sent);
            if (done > 0) {
                sent += (unsigned)done;
            } else if (errno == EAGAIN) {
                unsend(pool, flight, first[sent]);
                return 1;
            } else if (exchange->run_most > 1 && (errno == EIO || errno == EINVAL)) {
                exchange->run_most = 1;      /* an interface that does not cut, or no checksums: packet by packet */
                unsend(pool, flight, first[sent]);
                break;
            } else if (is_transient(errno)) {
                if (!exchange->refused) exchange->refused = errno;
                break;                       /* to the protocol, losses */
            } else if (errno != EINTR) {
                exchange->error = errno;
                return -1;
            }
        }
    }
    return 0;
}

static int go_on(struct pool *pool) {
    struct exchange *exchange = pool->exchange;
    struct flight flight = flight_of(exchange);
    for (;;) {
        if (pool->disagreed) return DISAGREEMENT;
        if (begin_pieces(pool, &flight) == NO_MORE) return NO_MORE;
        int full = send_pieces(pool, &flight);
        if (full < 0) return BROKEN;
        if (!pool->pieces_under_way) return ALL_ANSWERED;
        int outcome = await(exchange, &flight, pool, full);
        if (outcome != GO_ON) return outcome;
        if (exchange->heard_at > pool->until) return TIME_UP;
    }
}

/* Goes on until the collective is over or something happens that the protocol has to decide. */
int run_pool(struct pool *pool) {
    struct exchange *exchange = pool->exchange;
    exchange->odd = 0;
    exchange->refused = 0;
    if (!finish_accepted(pool)) return NO_MORE;
    /* Only during this call: nothing else expects several packets in one buffer. */
    int on = 1, off = 0;
    if (pool->joins) setsockopt(exchange->socket, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    int outcome = go_on(pool);
    write_all(pool);
    if (pool->joins) setsockopt(exchange->socket, IPPROTO_UDP, UDP_GRO, &off, sizeof off);
    return outcome;
}
