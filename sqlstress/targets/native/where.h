/* Where the time goes: what a VFS between SQLite and the system's own sees of locks, writes, syncs and sleeps.
 *
 * A process writes into an area of shared 64-bit words of its own, which its parent reads: sums over the window,
 * and a ring of the newest spans of time. targets/sqlite/where_recording.py reads the same layout.
 */
#ifndef SQLSTRESS_WHERE_H
#define SQLSTRESS_WHERE_H

#include <stdint.h>

#include "sqlite.h"

/* Words of an area. All times are of the shared clock, in ns; sums are of what lies in the window. */
enum {
    WHERE_OPENS, /* the window; written by the process when it is told */
    WHERE_CLOSES,
    WHERE_ROOM, /* spans in the ring, at most; written by the parent */
    WHERE_SPANS, /* spans so far: the newest WHERE_ROOM of them are there */
    WHERE_PENDING, /* since when a lock is waited for; 0: none is */
    WHERE_WAITING, /* sums: waiting for a lock */
    WHERE_PAUSING, /* asleep of one's own accord, so that others get the lock */
    WHERE_WRITING,
    WHERE_SYNCING_WAL,
    WHERE_SYNCING_DATABASE,
    WHERE_SYNCING_JOURNAL,
    WHERE_CHECKPOINTING,
    WHERE_STATEMENTS, /* how many statements were timed, of each WHERE_EVERY one */
    WHERE_STATEMENTS_NS, /* their time without any of the above */
    WHERE_FROM, /* between which times waiting for a processor was looked at, and how much there was */
    WHERE_TO,
    WHERE_PROCESSOR, /* -1: the system does not say */
    WHERE_WAITS_SEEN, /* of each: ns of those at whose ends it was looked at too, and how much was in them */
    WHERE_WAITS_PROCESSOR,
    WHERE_SYNCS_SEEN,
    WHERE_SYNCS_PROCESSOR,
    WHERE_CHECKPOINTS_SEEN,
    WHERE_CHECKPOINTS_PROCESSOR,
    WHERE_RING = 32, /* then the spans: begin, end, kind | file << 8 */
    WHERE_SPAN = 3,
};

enum { WHERE_EVERY = 17 }; /* no divisor of the statements of a usual transaction */

/* Kinds of spans */
enum {
    SPAN_TRANSACTION, /* from the first attempt at a lock to the end of all that follows from it */
    SPAN_WAIT_WRITE,  /* for the right to write */
    SPAN_WAIT_READ,   /* for the right to read, which a rollback journal's writer takes away for a while */
    SPAN_WAIT_ALONE,  /* for readers to leave, so that a writer can go on */
    SPAN_HOLD_WRITE,
    SPAN_HOLD_READ, /* long ones only */
    SPAN_HOLD_ALONE,
    SPAN_SYNC,
    SPAN_CHECKPOINT,
};

/* Tells where the time goes from now on, for connections opened from now on; returns why not, or NULL. */
const char *where_begin(const Routine *table, int64_t *area);

/* Says that an operation was given up: what was waited for is waited for no more. */
void where_gave_up(void);

/* Says that nothing was tried meanwhile, so that others get the lock. */
void where_paused(int64_t begin, int64_t end);

/* Says that it is over. */
void where_end(void);

#endif
