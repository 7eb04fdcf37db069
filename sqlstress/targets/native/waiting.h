/* Waits before a transaction that SQLite refused is retried, as in targets/sqlite/busy.py. */
#ifndef SQLSTRESS_WAITING_H
#define SQLSTRESS_WAITING_H

#include <stdint.h>

typedef struct {
    int64_t mean_ns, least_ns, timeout_ns;
    uint64_t jitter;
    int64_t busy, busy_snapshot;
} Waiting;

/* Sleeps before the next attempt and returns 1, or returns 0 if the timeout has passed since `begun`. */
int waiting_again(Waiting *waiting, int attempt, int64_t begun);
void waiting_count(Waiting *waiting, int code);

#endif
