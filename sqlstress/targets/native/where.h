/* Where the time goes: what a VFS between SQLite and the system's own sees of locks, writes, syncs and sleeps.
 *
 * A process writes into an area of shared 64-bit words of its own, which its parent reads: sums over the window,
 * and a ring of the newest spans of time. targets/sqlite/shim.py reads the same layout.
 */
#ifndef SQLSTRESS_WHERE_H
#define SQLSTRESS_WHERE_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "sqlite.h"

/* Words of an area. All times are of the shared clock, in ns; sums are of what lies in the window. */
enum {
    WHERE_OPENS, /* the window; written by the process when it is told */
    WHERE_CLOSES,
    WHERE_ROOM, /* spans in the ring, at most; written by the parent */
    WHERE_SPANS, /* spans so far: the newest WHERE_ROOM of them are there */
    WHERE_PENDING, /* since when a lock is waited for; 0: none is */
    WHERE_WAITING, /* sums: waiting for a lock */
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

/* Says that it is over. */
void where_end(void);

/* What the parts of the shim write down. One thread works at a time. */

/* A stretch of time at whose ends waiting for a processor may be looked at. */
typedef struct {
    int64_t begin;
    int64_t processor; /* at the begin; -1: it is not looked at */
} Stretch;

/* Adds to a sum of the area what of a stretch lies in the window. No two stretches of these may overlap. */
void record_sum(int word, int64_t begin, int64_t end);

/* Keeps a span, if any of it lies in the window. */
void record_span(int kind, int64_t file, int64_t begin, int64_t end);

/* Begins a stretch; of each `every` ones of its kind, counted by *count, one is looked at more closely. */
Stretch stretch_begin(int64_t now, unsigned *count, unsigned every);

/* Ends it: `seen` is the first of the two words that tell of those looked at. */
void stretch_end(Stretch stretch, int64_t now, int seen);

/* Locks of one open database file: who waits, who holds, and since when. */

typedef struct {
    int64_t file;
    int64_t begun;      /* of the transaction: its first attempt at a lock that counts; 0: none is under way */
    int64_t ended;      /* when it gave its last lock back; a checkpoint may still follow */
    int64_t wrote_from; /* when a lock was obtained; 0: it is not held */
    int64_t read_from;
    int64_t alone_from;
    int64_t checkpoint_from;
    int reads_wal; /* whether it holds one of the WAL's read locks */
    Stretch checkpoint;
} Locks;

/* Whether a checkpoint is under way: its writes and syncs are its own. */
int checkpointing(void);

/* Told after a lock was asked for, and before one is given back: so no two processes ever hold one at once. */
void wal_locked(Locks *locks, int slot, int refused);
void wal_unlocked(Locks *locks, int slot);

/* Told when one of the WAL's read locks was obtained or given back. */
void wal_reads(Locks *locks, int reads);

/* `level` is what was asked for, with a rollback journal; `before` is when that was. */
void rollback_locked(Locks *locks, int level, int64_t before, int refused);
void rollback_unlocked(Locks *locks, int level);

/* Something was written into a file. */
void locks_wrote(void);

/* The file is closed. */
void locks_close(Locks *locks);

/* What is used of a VFS: structs to which only the end is ever added, with a version each.
 * Sources: https://www.sqlite.org/c3ref/vfs.html, https://www.sqlite.org/c3ref/io_methods.html, and for the
 * numbers https://www.sqlite.org/c3ref/constlist.html */

typedef struct sqlite3_vfs sqlite3_vfs;
typedef struct sqlite3_file sqlite3_file;
typedef struct sqlite3_io_methods sqlite3_io_methods;

struct sqlite3_file {
    const sqlite3_io_methods *methods;
};

struct sqlite3_io_methods {
    int version;
    int (*close)(sqlite3_file *);
    int (*read)(sqlite3_file *, void *, int, int64_t);
    int (*write)(sqlite3_file *, const void *, int, int64_t);
    int (*truncate)(sqlite3_file *, int64_t);
    int (*sync)(sqlite3_file *, int);
    int (*file_size)(sqlite3_file *, int64_t *);
    int (*lock)(sqlite3_file *, int);
    int (*unlock)(sqlite3_file *, int);
    int (*check_reserved_lock)(sqlite3_file *, int *);
    int (*file_control)(sqlite3_file *, int, void *);
    int (*sector_size)(sqlite3_file *);
    int (*device_characteristics)(sqlite3_file *);
    int (*shm_map)(sqlite3_file *, int, int, int, void volatile **); /* from version 2 on */
    int (*shm_lock)(sqlite3_file *, int, int, int);
    void (*shm_barrier)(sqlite3_file *);
    int (*shm_unmap)(sqlite3_file *, int);
    int (*fetch)(sqlite3_file *, int64_t, int, void **); /* from version 3 on */
    int (*unfetch)(sqlite3_file *, int64_t, void *);
};

struct sqlite3_vfs {
    int version;
    int file_bytes;
    int longest_path;
    sqlite3_vfs *next;
    const char *name;
    void *data;
    int (*open)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
    int (*delete)(sqlite3_vfs *, const char *, int);
    int (*access)(sqlite3_vfs *, const char *, int, int *);
    int (*full_path)(sqlite3_vfs *, const char *, int, char *);
    Routine dynamic[4];
    Routine others[8]; /* the last four from version 2 and 3 on: fewer are there in an older one */
};

enum { OPEN_MAIN_DB = 0x100, OPEN_MAIN_JOURNAL = 0x800, OPEN_WAL = 0x80000 };
enum { LOCK_NONE, LOCK_SHARED, LOCK_RESERVED, LOCK_PENDING, LOCK_EXCLUSIVE };
enum { SHM_UNLOCK = 1, SHM_LOCK = 2, SHM_SHARED = 4, SHM_EXCLUSIVE = 8 };
enum { SLOT_WRITE, SLOT_CHECKPOINT, SLOT_RECOVER, SLOT_READ /* the first of several */ };

/* Registers the shim over the default VFS as the default one, once; returns whether that went well. */
int shim_register(const Routine *table);

#endif
