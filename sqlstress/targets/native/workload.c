/* A worker's operations: random numbers, keys, chunks of operations, and values. All draws equal those in Python. */
#include <math.h>
#include <string.h>

#include "loop.h"

/* MT19937 with 32-bit words, and the methods of Python's random.Random on top of it.
 * Source: Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998).
 */

#define SHIFT 397

static uint32_t twist(uint32_t high, uint32_t low) {
    uint32_t mixed = (high & UINT32_C(0x80000000)) | (low & UINT32_C(0x7fffffff));
    return (mixed >> 1) ^ (low & 1 ? UINT32_C(0x9908b0df) : 0);
}

static void refill(Random *random) {
    uint32_t *state = random->state;
    int i = 0;
    for (; i < RANDOM_WORDS - SHIFT; i++) state[i] = state[i + SHIFT] ^ twist(state[i], state[i + 1]);
    for (; i < RANDOM_WORDS - 1; i++) state[i] = state[i + SHIFT - RANDOM_WORDS] ^ twist(state[i], state[i + 1]);
    state[i] = state[SHIFT - 1] ^ twist(state[i], state[0]);
    random->next = 0;
}

static uint32_t word(Random *random) {
    if (random->next >= RANDOM_WORDS) refill(random);
    uint32_t y = random->state[random->next++];
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}

static uint32_t random_bits(Random *random, int count) { return word(random) >> (32 - count); }

static double random_unit(Random *random) {
    uint32_t high = word(random) >> 5, low = word(random) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

static void random_bytes(Random *random, uint8_t *to, size_t count) {
    while (count) {
        size_t part = count < 4 ? count : 4;
        uint32_t bits = random_bits(random, (int)(8 * part));
        for (size_t i = 0; i < part; i++) *to++ = (uint8_t)(bits >> (8 * i));
        count -= part;
    }
}

static int64_t random_below(Random *random, int64_t limit) {
    int bits = 0;
    while (limit >> bits) bits++;
    for (;;) {
        int64_t drawn = random_bits(random, bits);
        if (drawn < limit) return drawn;
    }
}

#define BLOB_MIX UINT64_C(0x9E3779B97F4A7C15)
#define TEXT_DIGITS 12

static void draw_uniform(Keys *keys, int64_t *to, int64_t count) {
    int fraction_bits = 64;
    while (keys->key_space >> (64 - fraction_bits)) fraction_bits--;
    const uint64_t mask = (UINT64_C(1) << fraction_bits) - 1;
    for (int64_t i = 0; i < count; i++) {
        uint64_t low = random_bits(&keys->random, 32), high = random_bits(&keys->random, 32);
        to[i] = (int64_t)((((high << 32) | low) & mask) * (uint64_t)keys->key_space >> fraction_bits);
    }
}

/* Source: Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994. */
static int64_t rank_zipfian(Keys *keys) {
    double unit = random_unit(&keys->random);
    if (unit * keys->total < 1) return 0;
    if (unit * keys->total < keys->second) return 1;
    return (int64_t)((double)keys->key_space * pow(keys->eta * unit - keys->eta + 1, keys->alpha));
}

static void keys_draw(Keys *keys, int64_t *to, int64_t count) {
    switch (keys->distribution) {
    case UNIFORM:
        draw_uniform(keys, to, count);
        break;
    case ZIPFIAN:
        for (int64_t i = 0; i < count; i++) to[i] = rank_zipfian(keys) * keys->step % keys->key_space;
        break;
    case SEQUENTIAL:
        for (int64_t i = 0; i < count; i++) to[i] = keys->position++ % keys->key_space;
        break;
    }
}

static int placement_bucket(const Placement *placement, int64_t number) {
    return placement->bucket_of ? placement->bucket_of[number] : 0;
}

static int64_t placement_member(const Placement *placement, int bucket, int64_t position) {
    int64_t place = placement->starts[bucket] + position;
    return placement->order ? placement->order[place] : place;
}

static int64_t position_of(const Placement *placement, int bucket, int64_t number) {
    if (!placement->order) return number;
    int64_t low = placement->starts[bucket], high = placement->starts[bucket + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (placement->order[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low - placement->starts[bucket];
}

static int64_t placement_pair(const Placement *placement, int bucket, int64_t number) {
    int64_t position = position_of(placement, bucket, number), pairs = placement->pairs[bucket];
    return position < 2 * pairs ? position / 2 : position % pairs;
}

static int encode_text(int64_t number, uint8_t to[KEY_ROOM]) {
    to[0] = 'k', to[1] = 'e', to[2] = 'y';
    for (int digit = TEXT_DIGITS; digit > 0; digit--) {
        to[2 + digit] = (uint8_t)('0' + number % 10);
        number /= 10;
    }
    return 3 + TEXT_DIGITS;
}

static int encode_blob(uint64_t number, uint8_t to[KEY_ROOM]) {
    uint64_t mixed = number * BLOB_MIX;
    for (int i = 0; i < 8; i++) {
        to[i] = (uint8_t)(mixed >> (56 - 8 * i));
        to[8 + i] = (uint8_t)(number >> (56 - 8 * i));
    }
    return 16;
}

int key_encode(KeyType type, int64_t number, uint8_t to[KEY_ROOM]) {
    return type == KEY_TEXT ? encode_text(number, to) : encode_blob((uint64_t)number, to);
}

enum { PAIRS_AMONG_GETS = 4 }; /* one in this number of gets reads a pair, if replaces write several rows */

/* Draw gets and single replaces, with one random byte for each. If the read ratio is not a multiple of 1/256, the
 * threshold is rounded at random for each chunk. */
static void draw_simple(Draws *draws, Chunk *chunk) {
    for (int i = 0; i < chunk->count; i++)
        chunk->buckets[i] = placement_bucket(&draws->placement, chunk->numbers[i]);
    if (draws->mix.only_reads) {
        for (int i = 0; i < chunk->count; i++) chunk->kinds[i] = GET;
        return;
    }
    int threshold = (int)(256 * draws->mix.read_ratio + random_unit(&draws->keys.random));
    random_bytes(&draws->keys.random, chunk->kinds, (size_t)chunk->count);
    for (int i = 0; i < chunk->count; i++) chunk->kinds[i] = chunk->kinds[i] < threshold ? GET : REPLACE;
}

static uint8_t kind_of(const Mix *mix, uint32_t drawn) {
    if (drawn < mix->read_below) return mix->batch > 1 && drawn % PAIRS_AMONG_GETS == 0 ? PAIR : GET;
    return drawn < mix->update_below ? UPDATE : REPLACE;
}

static int is_taken(const Draws *draws, int64_t pair) { return draws->taken[pair >> 3] >> (pair & 7) & 1; }

static void toggle_taken(Draws *draws, int64_t pair) { draws->taken[pair >> 3] ^= (uint8_t)(1 << (pair & 7)); }

/* Draw the distinct keys of a transaction: whole pairs, and one key without a partner if the number of rows is odd. */
static void draw_batch(Draws *draws, int bucket, int64_t number, int64_t *to) {
    const Placement *placement = &draws->placement;
    const int halves = draws->mix.batch / 2;
    const int64_t pairs = placement->pairs[bucket];
    int64_t *chosen = draws->spare;
    chosen[0] = placement_pair(placement, bucket, number);
    keys_draw(&draws->keys, chosen + 1, halves - 1);
    for (int i = 0; i < halves; i++) {
        int64_t pair = chosen[i] % pairs;
        while (is_taken(draws, pair)) pair = (pair + 1) % pairs;
        toggle_taken(draws, chosen[i] = pair);
        *to++ = placement_member(placement, bucket, 2 * pair);
        *to++ = placement_member(placement, bucket, 2 * pair + 1);
    }
    for (int i = 0; i < halves; i++) toggle_taken(draws, chosen[i]);
    if (draws->mix.batch % 2) {
        int64_t size = placement->starts[bucket + 1] - placement->starts[bucket];
        int64_t solo = random_below(&draws->keys.random, size - 2 * pairs);
        *to = placement_member(placement, bucket, 2 * pairs + solo);
    }
}

static void draw_transaction(Draws *draws, Chunk *chunk, int i, int64_t number) {
    const Placement *placement = &draws->placement;
    int64_t *to = chunk->numbers + (int64_t)i * draws->mix.width;
    int bucket = chunk->buckets[i] = placement_bucket(placement, number);
    to[0] = number;
    if (chunk->kinds[i] == UPDATE) to[0] = number % COUNTERS;
    if (chunk->kinds[i] == PAIR) {
        int64_t pair = placement_pair(placement, bucket, number);
        to[0] = placement_member(placement, bucket, 2 * pair);
        to[1] = placement_member(placement, bucket, 2 * pair + 1);
    }
    if (chunk->kinds[i] == REPLACE && draws->mix.batch > 1) draw_batch(draws, bucket, number, to);
}

static void draw_transactions(Draws *draws, Chunk *chunk) {
    /* The drawn keys are moved to the end of `numbers`, because `numbers` is filled from its start. */
    int64_t *numbers = chunk->numbers + (int64_t)chunk->count * (draws->mix.width - 1);
    for (int i = chunk->count; i-- > 0;) numbers[i] = chunk->numbers[i];
    random_bytes(&draws->keys.random, (uint8_t *)chunk->drawn, 2 * (size_t)chunk->count);
    for (int i = 0; i < chunk->count; i++) chunk->kinds[i] = kind_of(&draws->mix, chunk->drawn[i]);
    for (int i = 0; i < chunk->count; i++) draw_transaction(draws, chunk, i, numbers[i]);
}

void chunk_draw(Draws *draws, Chunk *chunk, int count) {
    chunk->count = count;
    chunk->first = draws->sequence;
    draws->sequence += (int64_t)count * draws->mix.width; /* every operation uses `width` sequence numbers */
    keys_draw(&draws->keys, chunk->numbers, count);
    if (draws->mix.simple)
        draw_simple(draws, chunk);
    else
        draw_transactions(draws, chunk);
}

int64_t big_endian(const uint8_t bytes[VALUE_HEADER]) {
    uint64_t number = 0;
    for (int i = 0; i < VALUE_HEADER; i++) number = number << 8 | bytes[i];
    return (int64_t)number;
}

/* Make a value without copying its padding: write the header into the padding, just before the part that follows it
 * in the value. The next call restores the overwritten bytes. */
const uint8_t *value_make(Values *values, int64_t sequence) {
    uint64_t header = (uint64_t)(values->base + sequence);
    memcpy(values->padding + values->header_at, values->covered, VALUE_HEADER);
    values->header_at = sequence % VALUE_STRETCH;
    uint8_t *value = values->padding + values->header_at;
    memcpy(values->covered, value, VALUE_HEADER);
    for (int i = 0; i < VALUE_HEADER; i++) value[i] = (uint8_t)(header >> (56 - 8 * i));
    return value;
}

int value_is_ours(const Values *values, int64_t header) {
    return header >> SALT_SHIFT == (header_worker(header) ? values->salt : PRELOAD_SALT);
}

/* Return whether a write of this trial can have made the value, judged by its salt and size. *header identifies the
 * write. */
int value_read(const Values *values, const Sqlite *sqlite, sqlite3_stmt *stmt, int column, int64_t *header) {
    if (values->size == VALUE_HEADER) {
        /* values of other types do not convert to a valid header, and reading the type would double the cost */
        *header = sqlite->column_int64(stmt, column);
        return value_is_ours(values, *header);
    }
    const uint8_t *bytes = sqlite->column_blob(stmt, column);
    if (sqlite->column_type(stmt, column) != SQLITE_BLOB || sqlite->column_bytes(stmt, column) != values->size)
        return 0;
    *header = big_endian(bytes);
    return value_is_ours(values, *header);
}

void raw_read(Raw *raw, const Sqlite *sqlite, sqlite3_stmt *stmt, int column) {
    raw->type = sqlite->column_type(stmt, column);
    if (raw->type == SQLITE_INTEGER) {
        raw->integer = sqlite->column_int64(stmt, column);
        return;
    }
    const void *bytes = sqlite->column_blob(stmt, column);
    raw->length = sqlite->column_bytes(stmt, column);
    if (raw->length > RAW_ROOM) raw->length = RAW_ROOM;
    if (bytes) memcpy(raw->bytes, bytes, (size_t)raw->length);
}

int64_t header_worker(int64_t header) { return header >> SEQUENCE_BITS & ((1 << WORKER_BITS) - 1); }

int64_t header_sequence(int64_t header) { return header & ((INT64_C(1) << SEQUENCE_BITS) - 1); }
