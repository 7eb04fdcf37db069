#include "loop.h"

#include <math.h>

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

void keys_draw(Keys *keys, int64_t *to, int64_t count) {
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

int placement_bucket(const Placement *placement, int64_t number) {
    return placement->bucket_of ? placement->bucket_of[number] : 0;
}

int64_t placement_member(const Placement *placement, int bucket, int64_t position) {
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

int64_t placement_pair(const Placement *placement, int bucket, int64_t number) {
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
