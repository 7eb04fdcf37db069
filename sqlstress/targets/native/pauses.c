#include "pauses.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "where.h"

enum { SEED, LENGTHS, RATES, FIRST_LENGTH = RATES + PAUSE_POINTS * PAUSE_SIDES };

const int64_t *pauses;
static uint64_t state;
static int64_t made;

/* xorshift64*: threads may draw at once, and then the draws are only less orderly. */
static uint64_t draw(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * UINT64_C(0x2545f4914f6cdd1d)) >> 16;
}

void pause_drawn(int point, int side) {
    int64_t one_in = pauses[RATES + PAUSE_SIDES * point + side];
    if (one_in <= 0 || draw() % (uint64_t)one_in) return;
    made++;
    sleep_ns(pauses[FIRST_LENGTH + (int64_t)(draw() % (uint64_t)pauses[LENGTHS])]);
}

const char *pauses_begin(const Routine *table, const void *schedule, size_t bytes) {
    int64_t *kept = malloc(bytes);
    if (!kept || bytes < FIRST_LENGTH * sizeof *kept) return "there is no schedule";
    memcpy(kept, schedule, bytes);
    if (bytes < (FIRST_LENGTH + (size_t)kept[LENGTHS]) * sizeof *kept) return "the schedule is too short";
    if (!shim_register(table)) return "SQLite takes no other VFS";
    state = (uint64_t)kept[SEED] | 1;
    pauses = kept;
    return NULL;
}

int64_t pauses_made(void) {
    return made;
}
