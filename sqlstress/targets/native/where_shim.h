/* The parts of the shim between SQLite and the system: what they write down, locks, and what is used of a VFS. */
#ifndef SQLSTRESS_WHERE_SHIM_H
#define SQLSTRESS_WHERE_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "where.h"

/* What the parts of the shim write down; see where.h. One thread works at a time. */

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
