/* MT19937 with 32-bit words, and what Python's random.Random makes of them.
 * Source: Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998).
 */
#include "loop.h"

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

uint32_t random_bits(Random *random, int count) { return word(random) >> (32 - count); }

double random_unit(Random *random) {
    uint32_t high = word(random) >> 5, low = word(random) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

void random_bytes(Random *random, uint8_t *to, size_t count) {
    while (count) {
        size_t part = count < 4 ? count : 4;
        uint32_t bits = random_bits(random, (int)(8 * part));
        for (size_t i = 0; i < part; i++) *to++ = (uint8_t)(bits >> (8 * i));
        count -= part;
    }
}

int64_t random_below(Random *random, int64_t limit) {
    int bits = 0;
    while (limit >> bits) bits++;
    for (;;) {
        int64_t drawn = random_bits(random, bits);
        if (drawn < limit) return drawn;
    }
}
