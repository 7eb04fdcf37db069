/* The VFS shim: it passes every call to the previous default VFS, measures some calls, and may pause at any call. A
 * VFS is SQLite's interface to files. */
#include "pauses.h"
#include "where.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNED(bytes) (((bytes) + 15) / 16 * 16)

typedef struct {
    sqlite3_file own;
    sqlite3_file *lower;
    int syncing; /* word of the area that sums the syncs of this file */
    int is_rollback; /* whether the file's locks are those of a rollback journal: no wal-index was opened */
    Locks locks;
} File;

static sqlite3_vfs *lower_vfs;
static sqlite3_vfs shim;
static unsigned syncs;

#define LOWER(file) (((File *)(file))->lower)
#define ON(file, call, ...) LOWER(file)->methods->call(LOWER(file), ##__VA_ARGS__)

/* Calls that are passed on unchanged, and at which the process may pause. */
#define PASSED_ON(call, point, parameters, ...)            \
    static int shim_##call parameters {                    \
        return PAUSED(point, ON(file, call, __VA_ARGS__)); \
    }

PASSED_ON(read, PAUSE_READ, (sqlite3_file *file, void *to, int bytes, int64_t at), to, bytes, at)
PASSED_ON(file_size, PAUSE_SIZE, (sqlite3_file *file, int64_t *size), size)
PASSED_ON(check_reserved_lock, PAUSE_LOCK, (sqlite3_file *file, int *found), found)
PASSED_ON(file_control, PAUSE_CONTROL, (sqlite3_file *file, int what, void *with), what, with)
PASSED_ON(shm_unmap, PAUSE_SHM_MAP, (sqlite3_file *file, int removed), removed)
PASSED_ON(fetch, PAUSE_FETCH, (sqlite3_file *file, int64_t at, int bytes, void **to), at, bytes, to)
PASSED_ON(unfetch, PAUSE_FETCH, (sqlite3_file *file, int64_t at, void *from), at, from)

static int shim_sector_size(sqlite3_file *file) {
    return ON(file, sector_size);
}

static int shim_device_characteristics(sqlite3_file *file) {
    return ON(file, device_characteristics);
}

static int shim_shm_map(sqlite3_file *file, int page, int bytes, int extend, void volatile **to) {
    ((File *)file)->is_rollback = 0;
    return PAUSED(PAUSE_SHM_MAP, ON(file, shm_map, page, bytes, extend, to));
}

static void shim_shm_barrier(sqlite3_file *file) {
    pause_at(PAUSE_BARRIER, PAUSE_BEFORE);
    ON(file, shm_barrier);
    pause_at(PAUSE_BARRIER, PAUSE_AFTER);
}

static int shim_close(sqlite3_file *file) {
    if (((File *)file)->locks.file) locks_close(&((File *)file)->locks);
    return PAUSED(PAUSE_OPEN, ON(file, close));
}

/* Add the time since `begin` to a sum, except during a checkpoint: its writes and syncs are part of its time. */
static void timed(int word, int64_t begin) {
    if (!checkpointing()) record_sum(word, begin, clock_ns());
}

static int shim_write(sqlite3_file *file, const void *from, int bytes, int64_t at) {
    int64_t begin = clock_ns();
    int result = PAUSED(PAUSE_WRITE, ON(file, write, from, bytes, at));
    locks_wrote();
    timed(WHERE_WRITING, begin);
    return result;
}

static int shim_truncate(sqlite3_file *file, int64_t size) {
    int64_t begin = clock_ns();
    int result = PAUSED(PAUSE_TRUNCATE, ON(file, truncate, size));
    timed(WHERE_WRITING, begin);
    return result;
}

static void synced(Stretch stretch, int word) {
    int64_t now = clock_ns();
    record_span(SPAN_SYNC, 0, stretch.begin, now);
    if (checkpointing()) return;
    record_sum(word, stretch.begin, now);
    stretch_end(stretch, now, WHERE_SYNCS_SEEN);
}

static int shim_sync(sqlite3_file *file, int flags) {
    Stretch stretch = stretch_begin(clock_ns(), &syncs, 16);
    int result = PAUSED(PAUSE_SYNC, ON(file, sync, flags));
    synced(stretch, ((File *)file)->syncing);
    return result;
}

static int shim_lock(sqlite3_file *file, int level) {
    File *own = (File *)file;
    int64_t before = level == LOCK_EXCLUSIVE ? clock_ns() : 0;
    int result = PAUSED(level == LOCK_RESERVED ? PAUSE_WRITE_LOCK : PAUSE_LOCK, ON(file, lock, level));
    if (own->is_rollback && (result == SQLITE_OK || (result & 0xff) == SQLITE_BUSY)) {
        rollback_locked(&own->locks, level, before, result != SQLITE_OK);
    }
    return result;
}

static int shim_unlock(sqlite3_file *file, int level) {
    File *own = (File *)file;
    if (own->is_rollback) rollback_unlocked(&own->locks, level);
    return PAUSED(PAUSE_UNLOCK, ON(file, unlock, level));
}

static int lock_point(int slot, int flags) {
    if (flags & SHM_UNLOCK) return PAUSE_SHM_UNLOCK;
    return slot == SLOT_WRITE && flags & SHM_EXCLUSIVE ? PAUSE_WRITE_LOCK : PAUSE_SHM_LOCK;
}

static int shim_shm_lock(sqlite3_file *file, int slot, int count, int flags) {
    Locks *locks = &((File *)file)->locks;
    int counts = slot <= SLOT_CHECKPOINT && flags & SHM_EXCLUSIVE;
    if (counts && flags & SHM_UNLOCK) wal_unlocked(locks, slot);
    int result = PAUSED(lock_point(slot, flags), ON(file, shm_lock, slot, count, flags));
    if (counts && flags & SHM_LOCK && (result == SQLITE_OK || (result & 0xff) == SQLITE_BUSY)) {
        wal_locked(locks, slot, result != SQLITE_OK);
    }
    if (slot >= SLOT_READ && flags & SHM_SHARED && result == SQLITE_OK) wal_reads(locks, flags & SHM_LOCK);
    return result;
}

#define METHODS(number)                                                                                        \
    {number,         shim_close,     shim_read,    shim_write,       shim_truncate,            shim_sync,         \
     shim_file_size, shim_lock,      shim_unlock,  shim_check_reserved_lock, shim_file_control, shim_sector_size,  \
     shim_device_characteristics,    shim_shm_map, shim_shm_lock,    shim_shm_barrier,         shim_shm_unmap,    \
     shim_fetch,     shim_unfetch}

/* The methods of a file, by their version. SQLite calls only the methods that the version has. */
static const sqlite3_io_methods methods[] = {METHODS(1), METHODS(2), METHODS(3)};

static int64_t hash(const char *name) {
    uint64_t found = UINT64_C(14695981039346656037);
    while (*name) found = (found ^ (unsigned char)*name++) * UINT64_C(1099511628211);
    return (int64_t)(found >> 16);
}

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
    File *own = (File *)file;
    int is_database = flags & OPEN_MAIN_DB, is_journal = flags & OPEN_MAIN_JOURNAL;
    (void)vfs;
    if (!name || !(is_database || is_journal || flags & OPEN_WAL)) {
        return lower_vfs->open(lower_vfs, name, file, flags, out);
    }
    memset(own, 0, sizeof *own);
    own->lower = (sqlite3_file *)((char *)file + ALIGNED(sizeof *own));
    int result = PAUSED(PAUSE_OPEN, lower_vfs->open(lower_vfs, name, own->lower, flags, out));
    if (!own->lower->methods) return result;
    int version = own->lower->methods->version;
    own->own.methods = &methods[version > 3 ? 2 : version - 1];
    own->syncing = is_database ? WHERE_SYNCING_DATABASE : is_journal ? WHERE_SYNCING_JOURNAL : WHERE_SYNCING_WAL;
    own->is_rollback = is_database != 0;
    own->locks.file = is_database ? hash(name) : 0;
    return result;
}

static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync_folder) {
    Stretch stretch = stretch_begin(clock_ns(), &syncs, 16);
    (void)vfs;
    int result = PAUSED(PAUSE_DELETE, lower_vfs->delete(lower_vfs, name, sync_folder));
    if (sync_folder) {
        synced(stretch, WHERE_SYNCING_JOURNAL);
    } else {
        timed(WHERE_WRITING, stretch.begin);
    }
    return result;
}

int shim_register(const Routine *table) {
    sqlite3_vfs *(*find)(const char *) = (sqlite3_vfs * (*)(const char *)) table[141];
    int (*enter)(sqlite3_vfs *, int) = (int (*)(sqlite3_vfs *, int))table[142];
    if (lower_vfs) return 1;
    lower_vfs = find(NULL);
    if (!lower_vfs) return 0;
    size_t known = offsetof(sqlite3_vfs, others) + sizeof(Routine) * (lower_vfs->version > 2 ? 8 : lower_vfs->version > 1 ? 5 : 4);
    memset(&shim, 0, sizeof shim);
    memcpy(&shim, lower_vfs, known);
    if (shim.version > 3) shim.version = 3;
    shim.next = NULL;
    shim.name = "sqlstress";
    shim.file_bytes = (int)ALIGNED(sizeof(File)) + lower_vfs->file_bytes;
    shim.open = shim_open;
    shim.delete = shim_delete;
    return enter(&shim, 1) == SQLITE_OK;
}

/* Pauses, by a schedule. */

enum { SEED, LENGTHS, RATES, FIRST_LENGTH = RATES + PAUSE_POINTS * PAUSE_SIDES };

const int64_t *pauses;
static uint64_t state;
static int64_t made;

/* xorshift64*. Threads may draw at the same time: this only changes the sequence of draws. */
static uint64_t draw(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * UINT64_C(0x2545f4914f6cdd1d)) >> 16;
}

void pause_drawn(int point, int side) {
    int64_t one_in = pauses[RATES + PAUSE_SIDES * point + side];
    if (one_in <= 0 || draw() % (uint64_t)one_in) return;
    made++;
    sleep_ns(pauses[FIRST_LENGTH + (int64_t)(draw() % (uint64_t)pauses[LENGTHS])]);
}

const char *pauses_begin(const Routine *table, const void *schedule, size_t bytes) {
    int64_t *kept = malloc(bytes);
    if (!kept || bytes < FIRST_LENGTH * sizeof *kept) return "there is no schedule";
    memcpy(kept, schedule, bytes);
    if (bytes < (FIRST_LENGTH + (size_t)kept[LENGTHS]) * sizeof *kept) return "the schedule is too short";
    if (!shim_register(table)) return "SQLite takes no other VFS";
    state = (uint64_t)kept[SEED] | 1;
    pauses = kept;
    return NULL;
}

int64_t pauses_made(void) {
    return made;
}
