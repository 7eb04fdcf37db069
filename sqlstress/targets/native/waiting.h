/* How an operation waits for a lock: targets/sqlite/busy.py says why, and what its numbers mean. */
#ifndef SQLSTRESS_WAITING_H
#define SQLSTRESS_WAITING_H

#include <stdint.h>

typedef struct {
    int fair;
    int64_t turn_ns, mean_ns, least_ns, timeout_ns, begun;
    int64_t woke; /* when the last wait between two attempts was over */
    uint64_t jitter;
    int64_t busy, busy_snapshot;
} Waiting;

int waiting_again(Waiting *waiting, int attempt, int64_t begun);
int waiting_handler(void *waiting, int attempt);
void waiting_count(Waiting *waiting, int code);

/* A row of writes to one file, which ends before others have waited for long. */
typedef struct {
    int64_t length_ns; /* 0: there was none yet */
    int64_t begun, wrote;
} Turn;

int64_t turn_await(Turn *turn, const Waiting *waiting); /* returns when the write begins */
void turn_wrote(Turn *turn, const Waiting *waiting, int64_t begun);

#endif
