/* Pauses at the calls that SQLite makes of its VFS: where two processes meet, one of them stays a moment.
 *
 * A schedule is an array of 64-bit words, which targets/sqlite/shim.py makes: the seed, how many lengths follow, for
 * each point and each of its sides one in how many calls pauses (0: none does), and the lengths in ns. It is copied,
 * and stays: connections may be closed when all else of the process is gone.
 */
#ifndef SQLSTRESS_PAUSES_H
#define SQLSTRESS_PAUSES_H

#include <stddef.h>
#include <stdint.h>

#include "sqlite.h"

enum {
    PAUSE_OPEN,
    PAUSE_READ,
    PAUSE_WRITE,
    PAUSE_TRUNCATE,
    PAUSE_SYNC,
    PAUSE_SIZE,
    PAUSE_LOCK, /* of the database file: all there are of a rollback journal */
    PAUSE_UNLOCK,
    PAUSE_CONTROL,
    PAUSE_SHM_MAP,
    PAUSE_SHM_LOCK,
    PAUSE_SHM_UNLOCK,
    PAUSE_BARRIER,
    PAUSE_FETCH,
    PAUSE_DELETE,
    PAUSE_WRITE_LOCK, /* the right to write, of a WAL or of a rollback journal: between a read and what follows from it */
    PAUSE_POINTS,
};

enum { PAUSE_BEFORE, PAUSE_AFTER, PAUSE_SIDES };

/* Pauses from now on at the files of connections opened from now on, by a schedule of so many bytes. Returns why not,
 * or NULL. Told again, it follows the other schedule. */
const char *pauses_begin(const Routine *table, const void *schedule, size_t bytes);

/* How often this process has paused. */
int64_t pauses_made(void);

extern const int64_t *pauses; /* NULL: nobody asks for them */

void pause_drawn(int point, int side);

static inline void pause_at(int point, int side) {
    if (pauses) pause_drawn(point, side);
}

static inline int pause_after(int point, int result) {
    pause_at(point, PAUSE_AFTER);
    return result;
}

/* A call with a pause on either side. */
#define PAUSED(point, call) (pause_at(point, PAUSE_BEFORE), pause_after(point, call))

#endif
