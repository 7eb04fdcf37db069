/* The transaction of TPC-B with nothing between it and SQLite, to compare with sqlstress sql -b tpcb-like.
 *
 *   cc tpcb.c -lsqlite3
 *   tpcb FILE SYNCHRONOUS WARMUP_NS DURATION_NS SEED
 *
 * The database must have the tables of scale 1. The output is the number of transactions that ended in the window.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BEGIN, ACCOUNT, BALANCE, TELLER, BRANCH, HISTORY, COMMIT, STATEMENTS };

static const char *const SQL[STATEMENTS] = {
    "BEGIN",
    "UPDATE pgbench_accounts SET abalance = abalance + ?1 WHERE aid = ?2",
    "SELECT abalance FROM pgbench_accounts WHERE aid = ?2",
    "UPDATE pgbench_tellers SET tbalance = tbalance + ?1 WHERE tid = ?3",
    "UPDATE pgbench_branches SET bbalance = bbalance + ?1 WHERE bid = ?4",
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?3, ?4, ?2, ?1, CURRENT_TIMESTAMP)",
    "COMMIT",
};

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static uint64_t state;

static int64_t draw_between(int64_t low, int64_t high) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return low + (int64_t)(state % (uint64_t)(high - low + 1));
}

static int run(sqlite3_stmt *statement, const int64_t *values) {
    int parameters = sqlite3_bind_parameter_count(statement);
    for (int i = 1; i <= parameters; i++) sqlite3_bind_int64(statement, i, values[i - 1]);
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) (void)sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return rc == SQLITE_DONE;
}

int main(int argc, char **argv) {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    char pragma[64];
    if (argc != 6 || sqlite3_open(argv[1], &db)) return 2;
    sqlite3_busy_timeout(db, 60000);
    snprintf(pragma, sizeof pragma, "PRAGMA synchronous=%.20s", argv[2]);
    if (sqlite3_exec(db, pragma, NULL, NULL, NULL)) return 2;
    for (int i = 0; i < STATEMENTS; i++)
        if (sqlite3_prepare_v2(db, SQL[i], -1, &statements[i], NULL)) return 2;
    state = strtoull(argv[5], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15) | 1;
    int64_t begin = now_ns() + strtoll(argv[3], NULL, 10), end = begin + strtoll(argv[4], NULL, 10);
    int64_t done = 0;
    for (int64_t now = 0; now < end;) {
        int64_t values[] = {draw_between(-5000, 5000), draw_between(1, 100000), draw_between(1, 10), 1};
        for (int i = 0; i < STATEMENTS; i++)
            if (!run(statements[i], values)) {
                fprintf(stderr, "%s: %s\n", SQL[i], sqlite3_errmsg(db));
                return 1;
            }
        now = now_ns();
        done += now >= begin && now < end;
    }
    printf("%" PRId64 "\n", done);
    for (int i = 0; i < STATEMENTS; i++) sqlite3_finalize(statements[i]);
    return sqlite3_close(db) != SQLITE_OK;
}
