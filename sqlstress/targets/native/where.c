/* The recording of time for `--where`: it writes the shim's reports into the area of shared memory that the parent
 * reads. */
#include <stdlib.h>

#include "where.h"

#ifdef __linux__
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#endif

static volatile int64_t *area;
static int64_t summed; /* total length of all periods given to record_sum, inside the window or not */

#ifdef __linux__
/* The second number in this file is the time in which the thread was ready to run and waited for a processor.
 *
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

/* Read the time of waiting for a processor once, after the window has opened. */
static void look_first(int64_t now) {
    if (area[WHERE_FROM] || !area[WHERE_CLOSES] || now < area[WHERE_OPENS]) return;
    area[WHERE_FROM] = now;
    area[WHERE_PROCESSOR] = -processor_ns(); /* 1 if the system does not report the time */
}

/* Read this time again, once, after the window has closed. The difference is the time within the window. */
static void look_last(int64_t now) {
    if (!area[WHERE_FROM] || area[WHERE_TO] || now < area[WHERE_CLOSES]) return;
    int64_t ns = processor_ns();
    area[WHERE_TO] = now;
    area[WHERE_PROCESSOR] = ns < 0 ? -1 : ns + area[WHERE_PROCESSOR];
}

static void recorder_open(int64_t *own) {
    area = own;
    summed = 0;
    processor_open();
}

static void recorder_close(void) {
    int64_t now = clock_ns();
    if (!area) return;
    look_first(now);
    /* The measurement was stopped, or a fixed amount of work is done. */
    if (now < area[WHERE_CLOSES]) area[WHERE_CLOSES] = now;
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
    look_first(end);
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

/* Record the begin of the current wait for a lock; 0 means that there is no wait. */
static void record_pending(int64_t since) {
    if (area) area[WHERE_PENDING] = since;
}

static int64_t recorded_pending(void) {
    return area ? area[WHERE_PENDING] : 0;
}

/* Add the time of one statement, without the parts that are in other sums. */
static void record_statement(int64_t end, int64_t own_ns) {
    if (!area) return;
    look_first(end);
    look_last(end);
    if (end < area[WHERE_OPENS] || end >= area[WHERE_CLOSES]) return;
    area[WHERE_STATEMENTS] += 1;
    area[WHERE_STATEMENTS_NS] += own_ns;
}

/* Locks: waits, holds, and the times at which they began. */

#define LONG_READ_NS 50000

/* The current wait. The thread waits for only one lock at a time, in all of its files. */
static struct {
    Locks *locks;
    int kind;
    int is_presumed; /* it is a wait only if the same statement requests the lock again */
    Stretch stretch;
} waiting;
static int wrote; /* whether a file was written since the write lock was obtained */
static unsigned waits, checkpoints;
static int checkpoints_under_way;
static Locks *ended; /* locks of the last transaction that has ended, if its span is not recorded yet */

int checkpointing(void) {
    return checkpoints_under_way > 0;
}

/* Record the span of the transaction that has ended last. */
static void locks_settle(void) {
    if (!ended) return;
    record_span(SPAN_TRANSACTION, ended->file, ended->begun, ended->ended);
    ended->begun = ended->ended = 0;
    ended = NULL;
}

/* Begin a transaction. Record the previous transaction only now: a checkpoint that followed is a part of it. */
static void transaction_begins(Locks *locks, int64_t now) {
    locks_settle();
    if (!locks->begun) locks->begun = now;
}

static void transaction_ends(Locks *locks, int64_t now) {
    if (!locks->begun) return;
    if (ended != locks) locks_settle();
    locks->ended = now;
    ended = locks;
}

static void wait_begins(Locks *locks, int kind) {
    if (waiting.locks) {
        if (waiting.is_presumed) record_pending(waiting.stretch.begin);
        waiting.is_presumed = 0;
        return;
    }
    int64_t now = clock_ns();
    transaction_begins(locks, now);
    waiting.locks = locks;
    waiting.kind = kind;
    waiting.stretch = stretch_begin(now, &waits, 4);
    record_pending(now);
}

/* Begin a wait for the write lock that may turn out to be none. A connection has released the write lock of a WAL
 * without a write. There are two reasons. Either another connection has written to the WAL since this connection's
 * read, so this connection waits and reads again. Or the connection had nothing to write. If the same statement
 * requests the lock again, it was a wait; if the next statement starts, it was not. */
static void wait_is_presumed(Locks *locks) {
    if (waiting.locks) return;
    wait_begins(locks, SPAN_WAIT_WRITE);
    waiting.is_presumed = 1;
    record_pending(0);
}

static void wait_ends(int64_t now) {
    stretch_end(waiting.stretch, now, WHERE_WAITS_SEEN);
    record_sum(WHERE_WAITING, waiting.stretch.begin, now);
    record_span(waiting.kind, waiting.locks->file, waiting.stretch.begin, now);
    record_pending(0);
    waiting.locks = NULL;
    waiting.is_presumed = 0;
}

/* Cancel a wait that turned out to be none, because a new statement begins. */
static void locks_statement(void) {
    if (!waiting.locks || !waiting.is_presumed) return;
    Locks *locks = waiting.locks;
    waiting.locks = NULL;
    waiting.is_presumed = 0;
    transaction_ends(locks, waiting.stretch.begin);
}

void locks_wrote(void) {
    wrote = 1;
}

static void wait_is_over(Locks *locks, int kind, int64_t now) {
    if (waiting.locks == locks && waiting.kind == kind) wait_ends(now);
}

void where_gave_up(void) {
    locks_statement();
    if (!waiting.locks) return;
    Locks *locks = waiting.locks;
    int64_t now = clock_ns();
    wait_ends(now);
    transaction_ends(locks, now);
    locks_settle();
}

void locks_close(Locks *locks) {
    if (waiting.locks == locks) {
        waiting.locks = NULL;
        record_pending(0);
    }
    locks_settle();
}

static void checkpoint_begins(Locks *locks, int64_t now) {
    locks->checkpoint = stretch_begin(now, &checkpoints, 1);
    locks->checkpoint_from = now;
    checkpoints_under_way++;
}

static void checkpoint_ends(Locks *locks, int64_t now) {
    if (!locks->checkpoint_from) return;
    checkpoints_under_way--;
    stretch_end(locks->checkpoint, now, WHERE_CHECKPOINTS_SEEN);
    record_sum(WHERE_CHECKPOINTING, locks->checkpoint_from, now);
    record_span(SPAN_CHECKPOINT, locks->file, locks->checkpoint_from, now);
    locks->checkpoint_from = 0;
    if (ended == locks) locks->ended = now; /* the checkpoint belongs to the transaction that filled the WAL */
    locks_settle();
}

void wal_reads(Locks *locks, int reads) {
    locks->reads_wal = reads;
}

/* Return whether a connection needs no wait if it is refused the write lock. A writer reads first, so it has a read
 * lock and must wait. A connection without a read lock requests the write lock because it found no valid wal-index.
 * Once another connection has created the index, it continues. The time of a checkpoint is recorded separately. */
static int needs_no_wait(const Locks *locks) {
    return !locks->reads_wal || locks->checkpoint_from;
}

void wal_locked(Locks *locks, int slot, int refused) {
    if (slot == SLOT_WRITE && refused) {
        if (!needs_no_wait(locks)) wait_begins(locks, SPAN_WAIT_WRITE);
        return;
    }
    if (refused || (slot != SLOT_WRITE && slot != SLOT_CHECKPOINT)) return;
    int64_t now = clock_ns();
    if (slot == SLOT_CHECKPOINT) {
        checkpoint_begins(locks, now);
        return;
    }
    wait_is_over(locks, SPAN_WAIT_WRITE, now);
    transaction_begins(locks, now);
    locks->wrote_from = now;
    wrote = 0;
}

void wal_unlocked(Locks *locks, int slot) {
    if (slot != SLOT_WRITE && slot != SLOT_CHECKPOINT) return;
    int64_t now = clock_ns();
    if (slot == SLOT_CHECKPOINT) {
        checkpoint_ends(locks, now);
        return;
    }
    if (!locks->wrote_from) return;
    record_span(SPAN_HOLD_WRITE, locks->file, locks->wrote_from, now);
    locks->wrote_from = 0;
    if (!wrote && locks->reads_wal && !locks->checkpoint_from)
        wait_is_presumed(locks);
    else
        transaction_ends(locks, now);
}

static void refused_at(Locks *locks, int level, int64_t before) {
    static const int kinds[] = {0, SPAN_WAIT_READ, SPAN_WAIT_WRITE, SPAN_WAIT_ALONE, SPAN_WAIT_ALONE};
    /* the connection holds the PENDING lock from now on */
    if (level == LOCK_EXCLUSIVE && !locks->alone_from) locks->alone_from = before;
    wait_begins(locks, kinds[level]);
}

void rollback_locked(Locks *locks, int level, int64_t before, int refused) {
    if (refused) {
        refused_at(locks, level, before);
        return;
    }
    int64_t now = clock_ns();
    if (level == LOCK_SHARED) {
        wait_is_over(locks, SPAN_WAIT_READ, now);
        locks->read_from = now;
    } else if (level == LOCK_RESERVED) {
        wait_is_over(locks, SPAN_WAIT_WRITE, now);
        transaction_begins(locks, now);
        locks->wrote_from = now;
    } else if (level == LOCK_EXCLUSIVE) {
        wait_is_over(locks, SPAN_WAIT_ALONE, now);
        if (!locks->alone_from) locks->alone_from = before;
    }
}

static void hold_ends(int64_t *from, int kind, int64_t file, int64_t now, int64_t least) {
    if (*from && now - *from >= least) record_span(kind, file, *from, now);
    *from = 0;
}

void rollback_unlocked(Locks *locks, int level) {
    int64_t now = clock_ns();
    hold_ends(&locks->alone_from, SPAN_HOLD_ALONE, locks->file, now, 0);
    hold_ends(&locks->wrote_from, SPAN_HOLD_WRITE, locks->file, now, 0);
    if (level != LOCK_NONE) return;
    hold_ends(&locks->read_from, SPAN_HOLD_READ, locks->file, now, LONG_READ_NS);
    if (waiting.locks != locks) transaction_ends(locks, now);
}

/* SQLite's own time: the time of one of WHERE_EVERY statements of a connection, without the time inside the shim. */

/* Source: https://www.sqlite.org/c3ref/c_trace.html */
enum { LONGEST = 8 };

enum { TRACE_STMT = 1, TRACE_PROFILE = 2, TRACE_CLOSE = 8 };

typedef struct {
    sqlite3 *db;
    int left; /* number of statements until the next timed statement */
    int64_t begin; /* begin of the timed statement; 0 if no statement is being timed */
    int64_t recorded;
} Watched;

typedef int (*Trace)(sqlite3 *, unsigned, int (*)(unsigned, void *, void *, void *), void *);
static Trace trace;

static int seen(unsigned what, void *context, void *first, void *second);

/* SQLite decides whether to profile a statement before it begins. So profiling is switched on one statement ahead. */
static void statement_begins(Watched *watched) {
    locks_statement();
    if (watched->left-- > 0) {
        if (watched->left == 0) trace(watched->db, TRACE_STMT | TRACE_PROFILE | TRACE_CLOSE, seen, watched);
        return;
    }
    watched->recorded = summed;
    watched->begin = recorded_pending() ? 0 : clock_ns(); /* a retry after a wait is not timed */
}

/* Return a time, limited to LONGEST times the mean. A longer statement had lost the processor, and the lost time is
 * already recorded as waiting for a processor. */
static int64_t uninterrupted(int64_t ns) {
    static int64_t sum, count;
    if (count && ns > LONGEST * (sum / count)) ns = LONGEST * (sum / count);
    sum += ns;
    count++;
    return ns;
}

static void statement_ends(Watched *watched) {
    if (watched->left > 0) return;
    /* A statement that ends with a wait is rolled back during the wait, and the time of the rollback is part of the
     * wait. */
    if (watched->begin && !recorded_pending()) {
        int64_t now = clock_ns(), ns = now - watched->begin - (summed - watched->recorded);
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
    if (!area) return SQLITE_OK;
    Watched *watched = calloc(1, sizeof *watched);
    if (!watched) return SQLITE_NOMEM;
    watched->db = db;
    watched->left = WHERE_EVERY - 1;
    return trace(db, TRACE_STMT | TRACE_CLOSE, seen, watched);
}

/* Time the statements of connections that are opened from now on. Return whether this is possible. */
static int statements_watch(const Routine *table) {
    int (*extend)(Routine) = (int (*)(Routine))table[192];
    trace = (Trace)table[214];
    return extend((Routine)opened) == SQLITE_OK;
}

#define TRACE_SINCE 3014000

const char *where_begin(const Routine *table, int64_t *own) {
    static int begun;
    Sqlite sqlite;
    sqlite_take(&sqlite, table);
    if (sqlite.libversion_number() < TRACE_SINCE) return "SQLite is older than 3.14";
    if (begun) return "recording has already started in this process, and cannot start twice";
    begun = 1;
    recorder_open(own);
    if (!shim_register(table)) return "SQLite takes no other VFS";
    if (!statements_watch(table)) return "SQLite does not let statements be watched";
    return NULL;
}

void where_end(void) {
    locks_settle();
    recorder_close();
}
