/* Pauses at SQLite's calls of its VFS (its interface to files), which make conflicts between processes more
 * probable.
 *
 * A schedule is an array of 64-bit words, which targets/sqlite/shim.py makes: the seed; the number of lengths; a
 * number N for each point (kind of call) and side (before or after the call); and the lengths of pauses, in ns. One
 * in N calls pauses; 0 means no pause. The schedule is copied and never freed, because connections may be closed at
 * the very end of the process. */
#ifndef SQLSTRESS_PAUSES_H
#define SQLSTRESS_PAUSES_H

#include <stddef.h>
#include <stdint.h>

#include "sqlite.h"

/* Points */
enum {
    PAUSE_OPEN,
    PAUSE_READ,
    PAUSE_WRITE,
    PAUSE_TRUNCATE,
    PAUSE_SYNC,
    PAUSE_SIZE,
    PAUSE_LOCK, /* a lock of the database file; with a rollback journal these are the only locks */
    PAUSE_UNLOCK,
    PAUSE_CONTROL,
    PAUSE_SHM_MAP,
    PAUSE_SHM_LOCK,
    PAUSE_SHM_UNLOCK,
    PAUSE_BARRIER,
    PAUSE_FETCH,
    PAUSE_DELETE,
    /* the write lock, in all journal modes. A pause there is between a read and the write that depends on the read. */
    PAUSE_WRITE_LOCK,
    PAUSE_POINTS,
};

enum { PAUSE_BEFORE, PAUSE_AFTER, PAUSE_SIDES };

/* Make pauses, by a schedule of `bytes` bytes, in connections that are opened from now on. Return NULL, or the
 * reason why this is impossible. A further call replaces the schedule. */
const char *pauses_begin(const Routine *table, const void *schedule, size_t bytes);

/* Return the number of pauses that this process has made. */
int64_t pauses_made(void);

extern const int64_t *pauses; /* the schedule; NULL if pauses are off */

/* Pause, if a random draw decides so. */
void pause_drawn(int point, int side);

static inline void pause_at(int point, int side) {
    if (pauses) pause_drawn(point, side);
}

static inline int pause_after(int point, int result) {
    pause_at(point, PAUSE_AFTER);
    return result;
}

/* Value of a call, with possible pauses before and after the call. */
#define PAUSED(point, call) (pause_at(point, PAUSE_BEFORE), pause_after(point, call))

#endif
