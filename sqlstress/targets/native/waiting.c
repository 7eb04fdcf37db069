#include "waiting.h"

#include "clock.h"
#include "sqlite.h"
#include "where.h"

#define FIRST 2.0
#define PATIENCE 8
#define SHORTEST_NS 50000
#define PAUSE_NS 500000

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
    double patience = attempt == 0 ? FIRST : 1.0 - (double)attempt / PATIENCE;
    double mean = (double)waiting->mean_ns * patience, least = (double)waiting->least_ns;
    double ns = (mean > least ? mean : least) * (0.5 + unit(waiting));
    return ns > SHORTEST_NS ? (int64_t)ns : SHORTEST_NS;
}

int waiting_again(Waiting *waiting, int attempt, int64_t begun) {
    if (clock_ns() - begun >= waiting->timeout_ns) return 0;
    sleep_ns(interval(waiting, attempt));
    waiting->woke = clock_ns();
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

static void turn_begin(Turn *turn, int64_t now, int64_t length_ns) {
    turn->begun = now;
    turn->length_ns = length_ns;
}

int64_t turn_await(Turn *turn, const Waiting *waiting) {
    int64_t now = clock_ns();
    if (now - turn->wrote >= PAUSE_NS) turn_begin(turn, now, turn->length_ns ? turn->length_ns : waiting->turn_ns);
    if (now - turn->begun < turn->length_ns) return now;
    sleep_ns(PAUSE_NS);
    int64_t woke = clock_ns();
    where_paused(now, woke);
    turn_begin(turn, woke, 2 * turn->length_ns);
    return woke;
}

void turn_wrote(Turn *turn, const Waiting *waiting, int64_t begun) {
    turn->wrote = clock_ns();
    if (waiting->woke > begun) turn_begin(turn, waiting->woke, waiting->turn_ns);
}
