/* The recording of time for `--where`, by a VFS between SQLite and the system's VFS: locks, writes, syncs and
 * sleeps.
 *
 * Each process writes into its own area of shared 64-bit words: sums over the window, and a ring of the newest spans
 * (periods in which the process did, held or waited for one thing). The parent process reads the areas;
 * targets/sqlite/shim.py has the same layout. */
#ifndef SQLSTRESS_WHERE_H
#define SQLSTRESS_WHERE_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "sqlite.h"

/* Words of an area. All times are in ns of the shared clock. The sums have only the time inside the window. */
enum {
    WHERE_OPENS, /* begin of the window; the process writes it when it receives the window */
    WHERE_CLOSES, /* end of the window */
    WHERE_ROOM, /* maximum number of spans in the ring; written before recording starts */
    WHERE_SPANS, /* number of all spans so far; the ring has the newest WHERE_ROOM of them */
    WHERE_PENDING, /* begin of the current wait for a lock; 0 if there is no wait */
    WHERE_WAITING, /* the first of the sums: waits for locks */
    WHERE_WRITING,
    WHERE_SYNCING_WAL,
    WHERE_SYNCING_DATABASE,
    WHERE_SYNCING_JOURNAL,
    WHERE_CHECKPOINTING,
    WHERE_STATEMENTS, /* number of timed statements: one of WHERE_EVERY statements is timed */
    WHERE_STATEMENTS_NS, /* time of the timed statements, without time that is in the sums above */
    WHERE_FROM, /* begin of the interval in which waiting for a processor is measured */
    WHERE_TO, /* end of this interval */
    WHERE_PROCESSOR, /* time of waiting for a processor in this interval; -1 if the system does not report it */
    /* two words per kind: total length of the sampled periods, and time of waiting for a processor in them */
    WHERE_WAITS_SEEN,
    WHERE_WAITS_PROCESSOR,
    WHERE_SYNCS_SEEN,
    WHERE_SYNCS_PROCESSOR,
    WHERE_CHECKPOINTS_SEEN,
    WHERE_CHECKPOINTS_PROCESSOR,
    WHERE_RING = 32, /* offset of the spans; each has three words: begin, end, kind | file << 8 */
    WHERE_SPAN = 3,
};

/* Coprime to the number of statements of a usual transaction. So each statement of the transaction gets sampled. */
enum { WHERE_EVERY = 17 };

/* Kinds of spans */
enum {
    SPAN_TRANSACTION, /* from the first attempt to take a lock to the end of the transaction and its checkpoint */
    SPAN_WAIT_WRITE,  /* wait for the write lock */
    SPAN_WAIT_READ,   /* wait for a read lock while a writer with a rollback journal has the exclusive lock */
    SPAN_WAIT_ALONE,  /* wait of a writer until all readers have ended */
    SPAN_HOLD_WRITE,
    SPAN_HOLD_READ, /* only long holds are recorded */
    SPAN_HOLD_ALONE,
    SPAN_SYNC,
    SPAN_CHECKPOINT,
};

/* Start the recording, for connections that are opened from now on. Return NULL, or the reason why this is
 * impossible. */
const char *where_begin(const Routine *table, int64_t *area);

/* Record that an operation failed with BUSY, so that its wait for a lock has ended. */
void where_gave_up(void);

/* End the recording. */
void where_end(void);

/* The records that the other parts of the shim write. Only one thread of the process works at a time. */

/* A period of time that belongs to a sum. A sampled period also measures the waiting for a processor in it. */
typedef struct {
    int64_t begin;
    int64_t processor; /* time of waiting for a processor before the period; -1 if the period is not sampled */
} Stretch;

/* Add the part of a period inside the window to a sum of the area. The periods of a process must not overlap. */
void record_sum(int word, int64_t begin, int64_t end);

/* Write a span into the ring, if a part of it is inside the window. */
void record_span(int kind, int64_t file, int64_t begin, int64_t end);

/* Begin a period. One of `every` periods is sampled; *count counts the periods of a kind. */
Stretch stretch_begin(int64_t now, unsigned *count, unsigned every);

/* End a period. `seen` is the first of the two words for the sampled periods of its kind. */
void stretch_end(Stretch stretch, int64_t now, int seen);

/* The locks of one open database file: waits, holds, and the times at which they began. */

typedef struct {
    int64_t file;
    /* begin of the transaction: its first recorded attempt to take a lock; 0 if there is no transaction */
    int64_t begun;
    int64_t ended;      /* release of the transaction's last lock; a checkpoint may still follow */
    int64_t wrote_from; /* begin of the hold of the write lock; 0 if the lock is not held */
    int64_t read_from;  /* the next times are begins of holds of the other locks; 0 if not held */
    int64_t alone_from;
    int64_t checkpoint_from;
    int reads_wal; /* whether the connection holds one of the read locks of the WAL */
    Stretch checkpoint;
} Locks;

/* Return whether a checkpoint is running. If so, its writes and syncs are part of the checkpoint's time. */
int checkpointing(void);

/* Call wal_locked after an attempt to take a lock, and wal_unlocked before the release of a lock. So the recorded
 * holds of an exclusive lock by different processes never overlap. `refused`: whether the attempt failed with BUSY. */
void wal_locked(Locks *locks, int slot, int refused);
void wal_unlocked(Locks *locks, int slot);

/* Call this after one of the read locks of the WAL was taken (`reads`) or released (not `reads`). */
void wal_reads(Locks *locks, int reads);

/* With a rollback journal, call these functions instead. `level` is the requested level, `before` the time of the
 * request. */
void rollback_locked(Locks *locks, int level, int64_t before, int refused);
void rollback_unlocked(Locks *locks, int level);

/* Record that the process has written to a file. */
void locks_wrote(void);

/* Record that the file is being closed. */
void locks_close(Locks *locks);

/* The structs of a VFS. Each has a version, and new fields are only added at the end.
 *
 * Sources: https://www.sqlite.org/c3ref/vfs.html, https://www.sqlite.org/c3ref/io_methods.html, and for the numbers
 * https://www.sqlite.org/c3ref/constlist.html */

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
    Routine others[8]; /* version 1 has 4 of them, version 2 has 5, version 3 has 8 */
};

enum { OPEN_MAIN_DB = 0x100, OPEN_MAIN_JOURNAL = 0x800, OPEN_WAL = 0x80000 };
enum { LOCK_NONE, LOCK_SHARED, LOCK_RESERVED, LOCK_PENDING, LOCK_EXCLUSIVE };
enum { SHM_UNLOCK = 1, SHM_LOCK = 2, SHM_SHARED = 4, SHM_EXCLUSIVE = 8 };
enum { SLOT_WRITE, SLOT_CHECKPOINT, SLOT_RECOVER, SLOT_READ /* the first of the read locks */ };

/* Register the shim as the new default VFS, on top of the previous default, once per process. Return whether this
 * succeeded. */
int shim_register(const Routine *table);

#endif
