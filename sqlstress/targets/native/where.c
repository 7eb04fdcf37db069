/* Where the time goes: what the shim tells is written into the area that the parent reads. */
#include <stdlib.h>

#include "where.h"
#include "where_shim.h"

#ifdef __linux__
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#endif

static volatile int64_t *area;
static int64_t summed; /* in the window or not */

#ifdef __linux__
/* The second number is the time in which the thread could have run and did not.
 * Source: https://docs.kernel.org/scheduler/sched-stats.html */
static int schedule = -1;

static void processor_open(void) {
    schedule = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

static void processor_close(void) {
    if (schedule >= 0) close(schedule);
    schedule = -1;
}

static int64_t processor_ns(void) {
    char text[96], *second;
    ssize_t length = schedule < 0 ? -1 : pread(schedule, text, sizeof text - 1, 0);
    if (length <= 0) return -1;
    text[length] = 0;
    strtoll(text, &second, 10);
    return strtoll(second, NULL, 10);
}
#else
static void processor_open(void) {}
static void processor_close(void) {}
static int64_t processor_ns(void) { return -1; }
#endif

/* Looks at the processor once when the window has opened, and at everything's end after it. */
static void look(int64_t now) {
    if (area[WHERE_FROM] || !area[WHERE_CLOSES] || now < area[WHERE_OPENS]) return;
    area[WHERE_FROM] = now;
    area[WHERE_PROCESSOR] = -processor_ns(); /* 1 where it can't be told */
}

static void look_last(int64_t now) {
    if (!area[WHERE_FROM] || area[WHERE_TO] || now < area[WHERE_CLOSES]) return;
    int64_t ns = processor_ns();
    area[WHERE_TO] = now;
    area[WHERE_PROCESSOR] = ns < 0 ? -1 : ns + area[WHERE_PROCESSOR];
}

void recorder_open(int64_t *own) {
    area = own;
    summed = 0;
    processor_open();
}

int recorder_is_open(void) {
    return area != NULL;
}

void recorder_close(void) {
    int64_t now = clock_ns();
    if (!area) return;
    look(now);
    if (now < area[WHERE_CLOSES]) area[WHERE_CLOSES] = now; /* told to stop, or a fixed amount of work is done */
    look_last(now);
    processor_close();
    area = NULL;
}

static int64_t within(int64_t begin, int64_t end) {
    int64_t low = begin > area[WHERE_OPENS] ? begin : area[WHERE_OPENS];
    int64_t high = end < area[WHERE_CLOSES] ? end : area[WHERE_CLOSES];
    return high > low ? high - low : 0;
}

void record_sum(int word, int64_t begin, int64_t end) {
    summed += end - begin;
    if (!area) return;
    area[word] += within(begin, end);
    look(end);
    look_last(end);
}

void record_span(int kind, int64_t file, int64_t begin, int64_t end) {
    if (!area || !area[WHERE_ROOM] || !within(begin, end)) return;
    volatile int64_t *span = area + WHERE_RING + area[WHERE_SPANS] % area[WHERE_ROOM] * WHERE_SPAN;
    span[0] = begin;
    span[1] = end;
    span[2] = kind | file << 8;
    area[WHERE_SPANS] += 1;
}

Stretch stretch_begin(int64_t now, unsigned *count, unsigned every) {
    Stretch stretch = {now, -1};
    if (area && (*count)++ % every == 0) stretch.processor = processor_ns();
    return stretch;
}

void stretch_end(Stretch stretch, int64_t now, int seen) {
    int64_t processor;
    if (!area || stretch.processor < 0 || (processor = processor_ns()) < 0) return;
    if (stretch.begin < area[WHERE_OPENS] || now > area[WHERE_CLOSES]) return;
    area[seen] += now - stretch.begin;
    area[seen + 1] += processor - stretch.processor;
}

void record_pending(int64_t since) {
    if (area) area[WHERE_PENDING] = since;
}

int64_t recorded_pending(void) {
    return area ? area[WHERE_PENDING] : 0;
}

void record_statement(int64_t end, int64_t own_ns) {
    if (!area) return;
    look(end);
    look_last(end);
    if (end < area[WHERE_OPENS] || end >= area[WHERE_CLOSES]) return;
    area[WHERE_STATEMENTS] += 1;
    area[WHERE_STATEMENTS_NS] += own_ns;
}

int64_t recorded_ns(void) {
    return summed;
}

/* SQLite's own time: of every WHERE_EVERY-th statement of a connection, without what the shim has timed. */

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

#define TRACE_SINCE 3014000

const char *where_begin(const Routine *table, int64_t *area) {
    static int begun;
    Sqlite sqlite;
    sqlite_take(&sqlite, table);
    if (sqlite.libversion_number() < TRACE_SINCE) return "SQLite is older than 3.14";
    if (begun) return "it was told before in this process, and the VFS for it stays";
    begun = 1;
    recorder_open(area);
    if (!shim_register(table)) return "SQLite takes no other VFS";
    if (!statements_watch(table)) return "SQLite does not let statements be watched";
    return NULL;
}

void where_gave_up(void) {
    locks_gave_up();
}

void where_paused(int64_t begin, int64_t end) {
    record_sum(WHERE_PAUSING, begin, end);
}

void where_end(void) {
    locks_settle();
    recorder_close();
}
