/* Sleeps before the retry of a transaction that SQLite refused, as in targets/sqlite/busy.py. */
#ifndef SQLSTRESS_WAITING_H
#define SQLSTRESS_WAITING_H

#include <stdint.h>

typedef struct {
    int64_t mean_ns, least_ns, timeout_ns; /* mean sleep, its minimum after many attempts, and the busy timeout */
    uint64_t jitter; /* state of the random generator */
    int64_t busy, busy_snapshot;
} Waiting;

/* Sleep before the next attempt and return 1; or return 0 if the timeout has passed since `begun`. */
int waiting_again(Waiting *waiting, int attempt, int64_t begun);
void waiting_count(Waiting *waiting, int code);

#endif
