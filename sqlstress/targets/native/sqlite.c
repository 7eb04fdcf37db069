/* Access to the driver's SQLite, which calls the entry point of this extension for each connection. */
#include <stdio.h>

#include "clock.h"
#include "loop.h"
#include "sqlite.h"

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

/* Connections that SQLite has passed. Only one thread at a time opens connections and then takes them from here. If
 * there are too many, the caller notices that some are missing. */
enum { MOST_HANDED = 10000 };
static Handed handed[MOST_HANDED];
static int handed_count;

void sqlite_take(Sqlite *to, const Routine *table) {
#define TAKE(place, result, name, parameters) to->name = (result(*) parameters)table[place];
    SQLITE_ROUTINES(TAKE)
#undef TAKE
}

/* SQLite derives this function name from the name of the file, so that bindings need not pass it. */
EXPORTED int sqlite3_native_init(sqlite3 *db, char **message, const Routine *table) {
    (void)message;
    if (handed_count < MOST_HANDED) handed[handed_count++] = (Handed){db, table};
    return SQLITE_OK; /* an error would close the driver's connection */
}

int handed_take(const Handed **list) {
    int count = handed_count;
    *list = handed;
    handed_count = 0;
    return count;
}

/* The operations on SQLite: those of targets/sqlite/connections.py, without a binding. */

/* Return SQLite's code of the last call; store its message, because a rollback would replace the message. */
static int failed(Store *store, const Bucket *bucket) {
    int code = store->sqlite.extended_errcode(bucket->db);
    if ((code & 0xff) != SQLITE_BUSY) snprintf(store->said, sizeof store->said, "%s", store->sqlite.errmsg(bucket->db));
    return code;
}

/* Remember the statement that has failed, for store_refuse. */
static void refused(Store *store, const Bucket *bucket, Sql which) {
    store->refused = which;
    store->refused_in_transaction = !store->sqlite.get_autocommit(bucket->db);
}

void store_refuse(Store *store, int code, int64_t begun) {
    const Sql which = store->refused;
    const int in_transaction = store->refused_in_transaction;
    const int64_t waited = clock_ns() - begun;
    store->refused = SQLS;
    if (which == SQLS) return;
    int i = 0;
    for (; i < store->refusal_count; i++) {
        const Refusal *refusal = &store->refusals[i];
        if (refusal->sql == which && refusal->code == code && refusal->in_transaction == in_transaction) break;
    }
    if (i == MOST_REFUSALS) return;
    Refusal *refusal = &store->refusals[i];
    if (i == store->refusal_count) {
        *refusal = (Refusal){.sql = which, .in_transaction = in_transaction, .code = code};
        store->refusal_count++;
    }
    refusal->waits[refusal->count++ % MOST_WAITS] = waited;
    if (waited > refusal->longest) refusal->longest = waited;
}

/* Return a statement, prepared at its first use, as in the bindings; NULL on an error, which SQLite reports. */
static sqlite3_stmt *statement(Store *store, Bucket *bucket, Sql which) {
    sqlite3_stmt **prepared = &bucket->prepared[which];
    if (!*prepared && store->sqlite.prepare_v2(bucket->db, store->sql[which], -1, prepared, NULL) != SQLITE_OK)
        refused(store, bucket, which);
    return *prepared;
}

/* Return SQLITE_ROW if there is a row, SQLITE_OK if there is no further row, else the error's code. */
static int step(Store *store, const Bucket *bucket, sqlite3_stmt *stmt) {
    int code = store->sqlite.step(stmt);
    if (code == SQLITE_ROW) return SQLITE_ROW;
    if (code == SQLITE_DONE) return SQLITE_OK;
    code = failed(store, bucket);
    for (int which = 0; which < SQLS; which++)
        if (bucket->prepared[which] == stmt) refused(store, bucket, (Sql)which);
    store->sqlite.reset(stmt);
    return code;
}

static int finish(Store *store, const Bucket *bucket, sqlite3_stmt *stmt) {
    return store->sqlite.reset(stmt) == SQLITE_OK ? SQLITE_OK : failed(store, bucket);
}

static int run(Store *store, Bucket *bucket, Sql which) {
    sqlite3_stmt *stmt = statement(store, bucket, which);
    if (!stmt) return failed(store, bucket);
    TRY(step(store, bucket, stmt));
    return finish(store, bucket, stmt);
}

static void bind_key(const Store *store, sqlite3_stmt *stmt, int place, int64_t number, uint8_t room[KEY_ROOM]) {
    if (store->key_type == KEY_INT) {
        store->sqlite.bind_int64(stmt, place, number);
        return;
    }
    int length = key_encode(store->key_type, number, room);
    if (store->key_type == KEY_TEXT)
        store->sqlite.bind_text(stmt, place, (const char *)room, length, SQLITE_STATIC);
    else
        store->sqlite.bind_blob(stmt, place, room, length, SQLITE_STATIC);
}

static void bad(Store *store, int64_t number, sqlite3_stmt *stmt) {
    BadRead found = {.number = number, .header = -1};
    if (stmt) raw_read(&found.value, &store->sqlite, stmt, 0);
    reads_bad(store->reads, &found);
}

static int get(Store *store, int which, int64_t number, int64_t *header) {
    Bucket *bucket = &store->buckets[which];
    uint8_t key[KEY_ROOM];
    sqlite3_stmt *stmt = statement(store, bucket, SQL_GET);
    if (!stmt) return failed(store, bucket);
    bind_key(store, stmt, 1, number, key);
    int code = step(store, bucket, stmt);
    if (code != SQLITE_OK && code != SQLITE_ROW) return code;
    if (code != SQLITE_ROW || !value_read(&store->values, &store->sqlite, stmt, 0, header)) {
        *header = -1;
        if (store->reads) bad(store, number, code == SQLITE_ROW ? stmt : NULL);
    }
    return finish(store, bucket, stmt);
}

static int put(Store *store, int which, int64_t number, int64_t sequence) {
    Bucket *bucket = &store->buckets[which];
    uint8_t key[KEY_ROOM];
    sqlite3_stmt *stmt = statement(store, bucket, SQL_PUT);
    if (!stmt) return failed(store, bucket);
    bind_key(store, stmt, 1, number, key);
    if (store->values.padding)
        store->sqlite.bind_blob(stmt, 2, value_make(&store->values, sequence), (int)store->values.size, SQLITE_STATIC);
    else
        store->sqlite.bind_int64(stmt, 2, store->values.base + sequence);
    TRY(step(store, bucket, stmt));
    return finish(store, bucket, stmt);
}

static int try_put_all(Store *store, int which, const int64_t *numbers, int64_t sequence) {
    Bucket *bucket = &store->buckets[which];
    TRY(run(store, bucket, SQL_BEGIN));
    for (int i = 0; i < store->batch; i++) TRY(put(store, which, numbers[i], sequence + i));
    return run(store, bucket, SQL_COMMIT);
}

static int try_update(Store *store, int which, int64_t counter) {
    Bucket *bucket = &store->buckets[which];
    const Sqlite *sqlite = &store->sqlite;
    sqlite3_stmt *count = statement(store, bucket, SQL_COUNT);
    /* After an error SQLite is not called again, because `failed` reports the last call. */
    sqlite3_stmt *set = count ? statement(store, bucket, SQL_SET_COUNT) : NULL;
    if (!set) return failed(store, bucket);
    TRY(run(store, bucket, SQL_BEGIN));
    sqlite->bind_int64(count, 1, counter);
    int code = step(store, bucket, count);
    if (code != SQLITE_ROW && code != SQLITE_OK) return code;
    int64_t before = sqlite->column_int64(count, 0);
    TRY(finish(store, bucket, count));
    sqlite->bind_int64(set, 1, before + 1);
    sqlite->bind_int64(set, 2, counter);
    TRY(step(store, bucket, set));
    TRY(finish(store, bucket, set));
    return run(store, bucket, SQL_COMMIT);
}

static int read_pair(Store *store, int which, const int64_t *numbers) {
    Bucket *bucket = &store->buckets[which];
    const Sqlite *sqlite = &store->sqlite;
    uint8_t keys[2][KEY_ROOM];
    PairRead pair = {.rows = 0};
    int code;
    sqlite3_stmt *stmt = statement(store, bucket, SQL_PAIR);
    if (!stmt) return failed(store, bucket);
    for (int i = 0; i < 2; i++) bind_key(store, stmt, i + 1, numbers[i], keys[i]);
    while ((code = step(store, bucket, stmt)) == SQLITE_ROW) {
        int row = pair.rows++ % 2;
        raw_read(&pair.keys[row], sqlite, stmt, 0);
        raw_read(&pair.values[row], sqlite, stmt, 1);
        if (!value_read(&store->values, sqlite, stmt, 1, &pair.headers[row])) pair.headers[row] = -1;
    }
    if (code != SQLITE_OK) return code;
    TRY(finish(store, bucket, stmt));
    if (store->reads) reads_pair(store->reads, &pair, store->batch);
    return SQLITE_OK;
}

/* Roll back the transaction that a failed attempt has left open. The result stays the attempt's code. */
static void recover(Store *store, Bucket *bucket) {
    if (!store->sqlite.get_autocommit(bucket->db)) run(store, bucket, SQL_ROLLBACK);
}

typedef struct {
    int64_t begun;
    int attempt;
    int64_t attempt_begun;
} Attempts;

static Attempts attempts_begin(void) {
    int64_t now = clock_ns();
    return (Attempts){now, 0, now};
}

/* Return whether to retry an operation from its start: `code` is BUSY, and the timeout has not passed. */
static int again(Store *store, int which, int code, Attempts *attempts) {
    if (code == SQLITE_OK) return 0;
    store_refuse(store, code, attempts->attempt_begun);
    recover(store, &store->buckets[which]);
    store->refused = SQLS; /* a failed rollback is not counted */
    if ((code & 0xff) != SQLITE_BUSY || !waiting_again(&store->waiting, attempts->attempt, attempts->begun)) return 0;
    waiting_count(&store->waiting, code);
    attempts->attempt++;
    attempts->attempt_begun = clock_ns();
    return 1;
}

static int put_all(Store *store, int which, const int64_t *numbers, int64_t sequence) {
    Attempts attempts = attempts_begin();
    int code;
    do code = try_put_all(store, which, numbers, sequence);
    while (again(store, which, code, &attempts));
    return code;
}

static int update(Store *store, int which, int64_t counter) {
    Attempts attempts = attempts_begin();
    int code;
    do code = try_update(store, which, counter);
    while (again(store, which, code, &attempts));
    return code;
}

void store_over_sqlite(Store *store) {
    store->refused = SQLS;
    store->get = get;
    store->put = put;
    store->read_pair = read_pair;
    store->put_all = put_all;
    store->update = update;
}

void store_close(Store *store) {
    for (int i = 0; i < store->count; i++) {
        Bucket *bucket = &store->buckets[i];
        for (int which = 0; which < SQLS; which++) store->sqlite.finalize(bucket->prepared[which]);
    }
}
