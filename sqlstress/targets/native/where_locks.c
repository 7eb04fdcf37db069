#include "where_shim.h"


#define LONG_READ_NS 50000

/* A thread waits for one lock at a time, whichever the file. */
static struct {
    Locks *locks;
    int kind;
    int is_presumed; /* it is one if the statement asks for the lock again */
    Stretch stretch;
} waiting;
static int wrote; /* whether anything was written since the write lock was obtained */
static unsigned waits, checkpoints;
static int checkpoints_under_way;
static Locks *ended; /* of the last transaction that has ended, if it is not written down yet */

int checkpointing(void) {
    return checkpoints_under_way > 0;
}

/* A transaction that has ended is written down when the next one begins: a checkpoint may follow from it. */
static void begins(Locks *locks, int64_t now) {
    locks_settle();
    if (!locks->begun) locks->begun = now;
}

static void ends(Locks *locks, int64_t now) {
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
    begins(locks, now);
    waiting.locks = locks;
    waiting.kind = kind;
    waiting.stretch = stretch_begin(now, &waits, 4);
    record_pending(now);
}

/* Who obtains the write lock of a WAL to which others have written since it last read gives it back at once, and
 * waits before it reads anew. Who had nothing to write gives it back too: the next statement tells them apart. */
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

void locks_statement(void) {
    if (!waiting.locks || !waiting.is_presumed) return;
    Locks *locks = waiting.locks;
    waiting.locks = NULL;
    waiting.is_presumed = 0;
    ends(locks, waiting.stretch.begin);
}

void locks_wrote(void) {
    wrote = 1;
}

static void wait_is_over(Locks *locks, int kind, int64_t now) {
    if (waiting.locks == locks && waiting.kind == kind) wait_ends(now);
}

void locks_gave_up(void) {
    locks_statement();
    if (!waiting.locks) return;
    Locks *locks = waiting.locks;
    int64_t now = clock_ns();
    wait_ends(now);
    ends(locks, now);
    locks_settle();
}

void locks_settle(void) {
    if (!ended) return;
    record_span(SPAN_TRANSACTION, ended->file, ended->begun, ended->ended);
    ended->begun = ended->ended = 0;
    ended = NULL;
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
    if (ended == locks) locks->ended = now; /* of the transaction that had filled the WAL */
    locks_settle();
}

void wal_reads(Locks *locks, int reads) {
    locks->reads_wal = reads;
}

/* Who writes reads first. Else a connection asks for the write lock as it found no index that it could read, and
 * where another one makes it, it goes on without; or it is for a checkpoint, which tells of its time itself. */
static int goes_on_without(const Locks *locks) {
    return !locks->reads_wal || locks->checkpoint_from;
}

void wal_locked(Locks *locks, int slot, int refused) {
    if (slot == SLOT_WRITE && refused) {
        if (!goes_on_without(locks)) wait_begins(locks, SPAN_WAIT_WRITE);
        return;
    }
    if (refused || (slot != SLOT_WRITE && slot != SLOT_CHECKPOINT)) return;
    int64_t now = clock_ns();
    if (slot == SLOT_CHECKPOINT) {
        checkpoint_begins(locks, now);
        return;
    }
    wait_is_over(locks, SPAN_WAIT_WRITE, now);
    begins(locks, now);
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
        ends(locks, now);
}

static void refused_at(Locks *locks, int level, int64_t before) {
    static const int kinds[] = {0, SPAN_WAIT_READ, SPAN_WAIT_WRITE, SPAN_WAIT_ALONE, SPAN_WAIT_ALONE};
    if (level == LOCK_EXCLUSIVE && !locks->alone_from) locks->alone_from = before; /* PENDING is held from now on */
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
        begins(locks, now);
        locks->wrote_from = now;
    } else if (level == LOCK_EXCLUSIVE) {
        wait_is_over(locks, SPAN_WAIT_ALONE, now);
        if (!locks->alone_from) locks->alone_from = before;
    }
}

static void given_back(int64_t *from, int kind, int64_t file, int64_t now, int64_t least) {
    if (*from && now - *from >= least) record_span(kind, file, *from, now);
    *from = 0;
}

void rollback_unlocked(Locks *locks, int level) {
    int64_t now = clock_ns();
    given_back(&locks->alone_from, SPAN_HOLD_ALONE, locks->file, now, 0);
    given_back(&locks->wrote_from, SPAN_HOLD_WRITE, locks->file, now, 0);
    if (level != LOCK_NONE) return;
    given_back(&locks->read_from, SPAN_HOLD_READ, locks->file, now, LONG_READ_NS);
    if (waiting.locks != locks) ends(locks, now);
}
