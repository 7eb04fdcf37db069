/* A clock that only sleeps move, in place of clock.c: waiting.c runs by it. */
#include "clock.h"
#include "waiting.h"

/* All else is hidden: SQLite lets every library see the extension's symbols, and the clock's is among them. */
#define SHOWN __attribute__((visibility("default")))

static int64_t now;

int64_t clock_ns(void) {
    return now;
}

void sleep_ns(int64_t ns) {
    now += ns;
}

/* Returns the time that a worker sleeps before its next attempt. */
SHOWN int64_t slept(int64_t mean_ns, int64_t least_ns, int attempt, uint64_t jitter) {
    Waiting waiting = {.mean_ns = mean_ns, .least_ns = least_ns, .timeout_ns = INT64_MAX, .jitter = jitter};
    now = 0;
    waiting_again(&waiting, attempt, 0);
    return now;
}
