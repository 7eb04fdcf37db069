/* What is used of a VFS: structs to which only the end is ever added, with a version each.
 * Sources: https://www.sqlite.org/c3ref/vfs.html, https://www.sqlite.org/c3ref/io_methods.html, and for the
 * numbers https://www.sqlite.org/c3ref/constlist.html */
#ifndef SQLSTRESS_WHERE_VFS_H
#define SQLSTRESS_WHERE_VFS_H

#include <stddef.h>

#include "sqlite.h"

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

/* Registers the shim over the default VFS as the default one; returns whether that went well. */
int shim_register(const Routine *table);

/* Lets each connection's statements be timed, opened from now on; returns whether that went well. */
int statements_watch(const Routine *table);

#endif
