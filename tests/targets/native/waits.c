/* A clock for waiting.c, in place of clock.c, which advances only by sleeps. */
#include "clock.h"
#include "waiting.h"

/* Other symbols, such as the clock, are hidden: SQLite shows the symbols of an extension to all libraries. */
#define EXPORTED __attribute__((visibility("default")))

static int64_t now;

int64_t clock_ns(void) {
    return now;
}

void sleep_ns(int64_t ns) {
    now += ns;
}

/* Return the time in ns that a worker sleeps before its next attempt. */
EXPORTED int64_t wait_ns(int64_t mean_ns, int64_t least_ns, int attempt, uint64_t jitter) {
    Waiting waiting = {.mean_ns = mean_ns, .least_ns = least_ns, .timeout_ns = INT64_MAX, .jitter = jitter};
    now = 0;
    waiting_again(&waiting, attempt, 0);
    return now;
}
