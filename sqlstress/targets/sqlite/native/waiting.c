/* Waits that grow with the number of workers: targets/sqlite/client.py says why, and what its numbers mean. */
#include "clock.h"
#include "loop.h"

#define FIRST 3.0
#define PATIENCE 8
#define SHARE_LEFT 0.15
#define SHORTEST_NS 50000

/* xorshift64*: the jitter has to be none that a proof draws from. */
static double unit(Waiting *waiting) {
    uint64_t x = waiting->jitter;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    waiting->jitter = x;
    return (double)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 11) / 9007199254740992.0;
}

static int64_t interval(Waiting *waiting, int attempt) {
    double left = 1.0 - (double)attempt / PATIENCE;
    double patience = attempt == 0 ? FIRST : left > SHARE_LEFT ? left : SHARE_LEFT;
    double ns = (double)waiting->mean_ns * (0.5 + unit(waiting)) * patience;
    return ns > SHORTEST_NS ? (int64_t)ns : SHORTEST_NS;
}

int waiting_again(Waiting *waiting, int attempt, int64_t begun) {
    if (clock_ns() - begun >= waiting->timeout_ns) return 0;
    sleep_ns(interval(waiting, attempt));
    return 1;
}

int waiting_handler(void *given, int attempt) {
    Waiting *waiting = given;
    if (attempt == 0) waiting->begun = clock_ns();
    if (!waiting_again(waiting, attempt, waiting->begun)) return 0;
    waiting->busy++;
    return 1;
}

void waiting_count(Waiting *waiting, int code) {
    if (code == SQLITE_BUSY_SNAPSHOT)
        waiting->busy_snapshot++;
    else if ((code & 0xff) == SQLITE_BUSY)
        waiting->busy++;
}
