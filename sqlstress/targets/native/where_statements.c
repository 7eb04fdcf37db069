/* SQLite's own time: of every WHERE_EVERY-th statement of a connection, without what the shim has timed. */
#include <stdlib.h>

#include "where_locks.h"
#include "where_vfs.h"

/* Source: https://www.sqlite.org/c3ref/c_trace.html */
enum { LONGEST = 8 };

enum { TRACE_STMT = 1, TRACE_PROFILE = 2, TRACE_CLOSE = 8 };

typedef struct {
    sqlite3 *db;
    int left; /* statements until one is timed */
    int64_t begin; /* of the one that is timed; 0: none is */
    int64_t recorded;
} Watched;

typedef int (*Trace)(sqlite3 *, unsigned, int (*)(unsigned, void *, void *, void *), void *);
static Trace trace;

static int seen(unsigned what, void *context, void *first, void *second);

/* Whether a statement is profiled is settled before it begins, so one statement ahead. */
static void statement_begins(Watched *watched) {
    locks_statement();
    if (watched->left-- > 0) {
        if (watched->left == 0) trace(watched->db, TRACE_STMT | TRACE_PROFILE | TRACE_CLOSE, seen, watched);
        return;
    }
    watched->recorded = recorded_ns();
    watched->begin = recorded_pending() ? 0 : clock_ns(); /* one that is begun again is none of its own */
}

/* One that takes many times the mean was interrupted: waiting for a processor is told apart from it. */
static int64_t uninterrupted(int64_t ns) {
    static int64_t sum, count;
    if (count && ns > LONGEST * (sum / count)) ns = LONGEST * (sum / count);
    sum += ns;
    count++;
    return ns;
}

static void statement_ends(Watched *watched) {
    if (watched->left > 0) return;
    /* One that ends with a wait is undone while it lasts, and what that takes can't be told from the wait. */
    if (watched->begin && !recorded_pending()) {
        int64_t now = clock_ns(), ns = now - watched->begin - (recorded_ns() - watched->recorded);
        record_statement(now, uninterrupted(ns > 0 ? ns : 0));
    }
    watched->begin = 0;
    watched->left = WHERE_EVERY - 1;
    trace(watched->db, TRACE_STMT | TRACE_CLOSE, seen, watched);
}

static int seen(unsigned what, void *context, void *first, void *second) {
    (void)first;
    (void)second;
    if (what == TRACE_STMT) statement_begins(context);
    if (what == TRACE_PROFILE) statement_ends(context);
    if (what == TRACE_CLOSE) free(context);
    return 0;
}

static int opened(sqlite3 *db, char **message, const Routine *table) {
    (void)message;
    (void)table;
    if (!recorder_is_open()) return SQLITE_OK;
    Watched *watched = calloc(1, sizeof *watched);
    if (!watched) return SQLITE_NOMEM;
    watched->db = db;
    watched->left = WHERE_EVERY - 1;
    return trace(db, TRACE_STMT | TRACE_CLOSE, seen, watched);
}

int statements_watch(const Routine *table) {
    int (*extend)(Routine) = (int (*)(Routine))table[192];
    trace = (Trace)table[214];
    return extend((Routine)opened) == SQLITE_OK;
}
