#include "waiting.h"

#include "clock.h"
#include "sqlite.h"

#define FIRST 2.0
#define PATIENCE 8
#define SHORTEST_NS 50000

/* xorshift64*. The jitter must not use the random generator from which the operations are drawn. */
static double unit(Waiting *waiting) {
    uint64_t x = waiting->jitter;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    waiting->jitter = x;
    return (double)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 11) / 9007199254740992.0;
}

static int64_t interval(Waiting *waiting, int attempt) {
    double patience = attempt == 0 ? FIRST : 1.0 - (double)attempt / PATIENCE;
    double mean = (double)waiting->mean_ns * patience, least = (double)waiting->least_ns;
    double ns = (mean > least ? mean : least) * (0.5 + unit(waiting));
    return ns > SHORTEST_NS ? (int64_t)ns : SHORTEST_NS;
}

int waiting_again(Waiting *waiting, int attempt, int64_t begun) {
    if (clock_ns() - begun >= waiting->timeout_ns) return 0;
    sleep_ns(interval(waiting, attempt));
    return 1;
}

void waiting_count(Waiting *waiting, int code) {
    if (code == SQLITE_BUSY_SNAPSHOT)
        waiting->busy_snapshot++;
    else if ((code & 0xff) == SQLITE_BUSY)
        waiting->busy++;
}
