/* The operations on PostgreSQL: what targets/postgres/client.py does through psycopg, done without it. They
 * return SQLite's codes, which the loop knows: BUSY for a lock that was not to be had, BUSY_SNAPSHOT for a
 * serialization failure, and SQLITE_ERROR for all else, of which the server's own words are kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "loop.h"

#define WIDTH 8 /* bytes of an integer */
#define BINARY 1

typedef struct {
    const char *values[2];
    int lengths[2];
    uint8_t room[2][KEY_ROOM];
    int count;
} Parameters;

static void put_integer(uint8_t to[WIDTH], int64_t number) {
    for (int i = 0; i < WIDTH; i++) to[i] = (uint8_t)((uint64_t)number >> (56 - 8 * i));
}

static void add(Parameters *parameters, const void *bytes, int length) {
    parameters->values[parameters->count] = bytes;
    parameters->lengths[parameters->count++] = length;
}

static void add_integer(Parameters *parameters, int64_t number) {
    uint8_t *room = parameters->room[parameters->count];
    put_integer(room, number);
    add(parameters, room, WIDTH);
}

static void add_key(const Store *store, Parameters *parameters, int64_t number) {
    if (store->key_type == KEY_INT) {
        add_integer(parameters, number);
        return;
    }
    uint8_t *room = parameters->room[parameters->count];
    int length = key_encode(store->key_type, number, room);
    add(parameters, room, length);
}

/* Keeps the server's words of what is no matter of waiting, behind five characters of its code. */
static int failed(Store *store, const PGresult *result) {
    const Libpq *libpq = &store->server.libpq;
    const char *state = result ? libpq->PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    if (state && !strcmp(state, SERIALIZATION_FAILURE)) return SQLITE_BUSY_SNAPSHOT;
    if (state && (!strcmp(state, DEADLOCK_DETECTED) || !strcmp(state, LOCK_NOT_AVAILABLE))) return SQLITE_BUSY;
    const char *words = result ? libpq->PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    if (!words) words = libpq->PQerrorMessage(store->server.connection);
    snprintf(store->said, sizeof store->said, "%-5.5s%s", state ? state : "", words);
    return SQLITE_ERROR;
}

/* Takes a result, and gives it on where it is wanted and none of an error. */
static int taken(Store *store, PGresult *result, PGresult **wanted) {
    const Libpq *libpq = &store->server.libpq;
    int status = libpq->PQresultStatus(result);
    int code = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK ? SQLITE_OK : failed(store, result);
    if (code == SQLITE_OK && wanted)
        *wanted = result;
    else
        libpq->PQclear(result);
    return code;
}

static int run(Store *store, const char *sql) {
    return taken(store, store->server.libpq.PQexec(store->server.connection, sql), NULL);
}

static int execute(Store *store, int bucket, Prepared which, const Parameters *parameters, PGresult **wanted) {
    static const int formats[2] = {BINARY, BINARY};
    const Server *server = &store->server;
    return taken(store,
                 server->libpq.PQexecPrepared(server->connection, server->names[bucket * PREPARED + which],
                                              parameters->count, parameters->values, parameters->lengths, formats,
                                              BINARY),
                 wanted);
}

static int is_integer(const Store *store, const PGresult *result, int row, int place) {
    return store->server.libpq.PQgetlength(result, row, place) == WIDTH;
}

static int64_t integer_at(const Store *store, const PGresult *result, int row, int place) {
    return big_endian((const uint8_t *)store->server.libpq.PQgetvalue(result, row, place));
}

/* A column of one of SQLite's types, or what stands there instead. */
static Raw column(const Store *store, const PGresult *result, int row, int place, int type) {
    const Libpq *libpq = &store->server.libpq;
    Raw raw = {.type = SQLITE_NULL};
    if (libpq->PQgetisnull(result, row, place)) return raw;
    raw.type = type == SQLITE_INTEGER && !is_integer(store, result, row, place) ? SQLITE_BLOB : type;
    if (raw.type == SQLITE_INTEGER) {
        raw.integer = integer_at(store, result, row, place);
        return raw;
    }
    raw.length = libpq->PQgetlength(result, row, place);
    if (raw.length > RAW_ROOM) raw.length = RAW_ROOM;
    memcpy(raw.bytes, libpq->PQgetvalue(result, row, place), (size_t)raw.length);
    return raw;
}

static Raw key_column(const Store *store, const PGresult *result, int row) {
    static const int types[] = {[KEY_INT] = SQLITE_INTEGER, [KEY_TEXT] = SQLITE_TEXT, [KEY_BLOB] = SQLITE_BLOB};
    return column(store, result, row, 0, types[store->key_type]);
}

static Raw value_column(const Store *store, const PGresult *result, int row, int place) {
    return column(store, result, row, place, store->values.padding ? SQLITE_BLOB : SQLITE_INTEGER);
}

/* As value_read does it: an integer, or a header and padding, lies there with its highest byte first. */
static int value_found(const Store *store, const PGresult *result, int row, int place, int64_t *header) {
    if (store->server.libpq.PQgetlength(result, row, place) != store->values.size) return 0;
    *header = integer_at(store, result, row, place);
    return value_is_ours(&store->values, *header);
}

static int try_get(Store *store, int bucket, int64_t number, int64_t *header) {
    const Libpq *libpq = &store->server.libpq;
    Parameters parameters = {.count = 0};
    PGresult *result;
    add_key(store, &parameters, number);
    TRY(execute(store, bucket, PREPARED_GET, &parameters, &result));
    int is_there = libpq->PQntuples(result) > 0;
    if (!is_there || !value_found(store, result, 0, 0, header)) {
        BadRead found = {.number = number, .header = -1};
        *header = -1;
        if (is_there) found.value = value_column(store, result, 0, 0);
        if (store->reads) reads_bad(store->reads, &found);
    }
    libpq->PQclear(result);
    return SQLITE_OK;
}

static int try_put(Store *store, int bucket, int64_t number, int64_t sequence) {
    Parameters parameters = {.count = 0};
    add_key(store, &parameters, number);
    if (store->values.padding)
        add(&parameters, value_make(&store->values, sequence), (int)store->values.size);
    else
        add_integer(&parameters, store->values.base + sequence);
    return execute(store, bucket, PREPARED_PUT, &parameters, NULL);
}

static int by_number(const void *one, const void *other) {
    int64_t a = ((const Placed *)one)->number, b = ((const Placed *)other)->number;
    return (a > b) - (a < b);
}

/* In an order that all have in common, nobody waits for one who waits for him. */
static int try_put_all(Store *store, int bucket, const int64_t *numbers, int64_t sequence) {
    Server *server = &store->server;
    for (int i = 0; i < store->batch; i++) server->rows[i] = (Placed){numbers[i], sequence + i};
    if (server->in_order) qsort(server->rows, (size_t)store->batch, sizeof *server->rows, by_number);
    TRY(run(store, "BEGIN"));
    for (int i = 0; i < store->batch; i++) TRY(try_put(store, bucket, server->rows[i].number, server->rows[i].sequence));
    return run(store, "COMMIT");
}

static int try_update(Store *store, int bucket, int64_t counter) {
    const Libpq *libpq = &store->server.libpq;
    Parameters number = {.count = 0}, both = {.count = 0};
    PGresult *result;
    TRY(run(store, "BEGIN"));
    add_integer(&number, counter);
    TRY(execute(store, bucket, PREPARED_COUNT, &number, &result));
    int is_there = libpq->PQntuples(result) > 0 && is_integer(store, result, 0, 0);
    int64_t before = is_there ? integer_at(store, result, 0, 0) : 0;
    libpq->PQclear(result);
    add_integer(&both, before + 1);
    add_integer(&both, counter);
    TRY(execute(store, bucket, PREPARED_SET_COUNT, &both, NULL));
    return run(store, "COMMIT");
}

static int try_read_pair(Store *store, int bucket, const int64_t *numbers) {
    const Libpq *libpq = &store->server.libpq;
    Parameters parameters = {.count = 0};
    PairRead pair = {.rows = 0};
    PGresult *result;
    for (int i = 0; i < 2; i++) add_key(store, &parameters, numbers[i]);
    TRY(execute(store, bucket, PREPARED_PAIR, &parameters, &result));
    for (int row = 0; row < libpq->PQntuples(result); row++) {
        int place = pair.rows++ % 2;
        pair.keys[place] = key_column(store, result, row);
        pair.values[place] = value_column(store, result, row, 1);
        if (!value_found(store, result, row, 1, &pair.headers[place])) pair.headers[place] = -1;
    }
    libpq->PQclear(result);
    if (store->reads) reads_pair(store->reads, &pair, store->batch);
    return SQLITE_OK;
}

/* Whether an operation is to be begun again, as a whole: it was not served, and its time-out is not over. */
static int again(Store *store, int code, int64_t begun) {
    if (code == SQLITE_OK) return 0;
    if (store->server.libpq.PQtransactionStatus(store->server.connection) != PQTRANS_IDLE)
        store->server.libpq.PQclear(store->server.libpq.PQexec(store->server.connection, "ROLLBACK"));
    if ((code & 0xff) != SQLITE_BUSY || clock_ns() - begun >= store->waiting.timeout_ns) return 0;
    waiting_count(&store->waiting, code);
    return 1;
}

/* An operation that is tried until it is done. */
#define UNTIL_DONE(operation, parameters, ...)                      \
    static int operation parameters {                               \
        int64_t begun = clock_ns();                                 \
        int code;                                                   \
        do code = try_##operation(store, bucket, __VA_ARGS__);      \
        while (again(store, code, begun));                          \
        return code;                                                \
    }

UNTIL_DONE(get, (Store *store, int bucket, int64_t number, int64_t *header), number, header)
UNTIL_DONE(put, (Store *store, int bucket, int64_t number, int64_t sequence), number, sequence)
UNTIL_DONE(put_all, (Store *store, int bucket, const int64_t *numbers, int64_t sequence), numbers, sequence)
UNTIL_DONE(update, (Store *store, int bucket, int64_t counter), counter)
UNTIL_DONE(read_pair, (Store *store, int bucket, const int64_t *numbers), numbers)

void store_over_postgres(Store *store) {
    store->get = get;
    store->put = put;
    store->put_all = put_all;
    store->update = update;
    store->read_pair = read_pair;
}
