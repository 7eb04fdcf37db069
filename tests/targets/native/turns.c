/* Time that passes only when it is told to, in the place of the clock's: for waiting.c to run by. */
#include "clock.h"
#include "waiting.h"
#include "where.h"

/* All else is hidden: SQLite lets every library see the extension's symbols, and the clock's is among them. */
#define SHOWN __attribute__((visibility("default")))

enum { MOST = 4096 };

SHOWN int64_t now, pauses[MOST];
SHOWN int paused;

int64_t clock_ns(void) {
    return now;
}

void sleep_ns(int64_t ns) {
    now += ns;
}

void where_paused(int64_t begin, int64_t end) {
    (void)end;
    if (paused < MOST) pauses[paused++] = begin;
}

/* Writes after a gap each, first waiting for the lock if it takes as long as `waited`; returns the last turn's length. */
SHOWN int64_t play(int count, const int64_t *gaps, const int64_t *waited, const int64_t *writes, int64_t begun,
                   int64_t turn_ns) {
    Waiting waiting = {.fair = 1, .turn_ns = turn_ns};
    Turn turn = {0};
    now = begun;
    paused = 0;
    for (int i = 0; i < count; i++) {
        now += gaps[i];
        int64_t began = turn_await(&turn, &waiting);
        if (waited[i]) waiting.woke = now += waited[i];
        now += writes[i];
        turn_wrote(&turn, &waiting, began);
    }
    return turn.length_ns;
}

/* How long a waiter sleeps before its next attempt. */
SHOWN int64_t slept(int64_t mean_ns, int64_t least_ns, int attempt, uint64_t jitter) {
    Waiting waiting = {
        .fair = 1, .mean_ns = mean_ns, .least_ns = least_ns, .timeout_ns = INT64_MAX, .jitter = jitter};
    now = 0;
    waiting_again(&waiting, attempt, 0);
    return now;
}
