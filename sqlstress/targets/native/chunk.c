#include "loop.h"

enum { PAIRS_AMONG_GETS = 4 };

/* Gets and single replaces: one random byte for each, and where the ratio is no multiple of 1/256 the
 * threshold itself is drawn for each chunk. */
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

static void turn(Draws *draws, int64_t pair) { draws->taken[pair >> 3] ^= (uint8_t)(1 << (pair & 7)); }

/* A batch's distinct keys: whole pairs, and one key without a partner if it is odd. */
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
        turn(draws, chosen[i] = pair);
        *to++ = placement_member(placement, bucket, 2 * pair);
        *to++ = placement_member(placement, bucket, 2 * pair + 1);
    }
    for (int i = 0; i < halves; i++) turn(draws, chosen[i]);
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
    /* The first keys lie at the end of their room, which is filled from its beginning. */
    int64_t *numbers = chunk->numbers + (int64_t)chunk->count * (draws->mix.width - 1);
    for (int i = chunk->count; i-- > 0;) numbers[i] = chunk->numbers[i];
    random_bytes(&draws->keys.random, (uint8_t *)chunk->drawn, 2 * (size_t)chunk->count);
    for (int i = 0; i < chunk->count; i++) chunk->kinds[i] = kind_of(&draws->mix, chunk->drawn[i]);
    for (int i = 0; i < chunk->count; i++) draw_transaction(draws, chunk, i, numbers[i]);
}

void chunk_draw(Draws *draws, Chunk *chunk, int count) {
    chunk->count = count;
    chunk->first = draws->sequence;
    draws->sequence += (int64_t)count * draws->mix.width; /* every operation uses up its rows' numbers */
    keys_draw(&draws->keys, chunk->numbers, count);
    if (draws->mix.simple)
        draw_simple(draws, chunk);
    else
        draw_transactions(draws, chunk);
}
