#include "where.h"

#include "where_locks.h"
#include "where_vfs.h"

#define TRACE_SINCE 3014000

const char *where_begin(const Routine *table, int64_t *area) {
    static int begun;
    Sqlite sqlite;
    sqlite_take(&sqlite, table);
    if (sqlite.libversion_number() < TRACE_SINCE) return "SQLite is older than 3.14";
    if (begun) return "it was told before in this process, and the VFS for it stays";
    begun = 1;
    recorder_open(area);
    if (!shim_register(table)) return "SQLite takes no other VFS";
    if (!statements_watch(table)) return "SQLite does not let statements be watched";
    return NULL;
}

void where_gave_up(void) {
    locks_gave_up();
}

void where_paused(int64_t begin, int64_t end) {
    record_sum(WHERE_PAUSING, begin, end);
}

void where_end(void) {
    locks_settle();
    recorder_close();
}
