#include "loop.h"

#include <string.h>

int64_t big_endian(const uint8_t bytes[VALUE_HEADER]) {
    uint64_t number = 0;
    for (int i = 0; i < VALUE_HEADER; i++) number = number << 8 | bytes[i];
    return (int64_t)number;
}

/* The header is laid over the padding just before the stretch that follows it, so that nothing is copied. */
const uint8_t *value_make(Values *values, int64_t sequence) {
    uint64_t header = (uint64_t)(values->base + sequence);
    memcpy(values->padding + values->header_at, values->covered, VALUE_HEADER);
    values->header_at = sequence % VALUE_STRETCH;
    uint8_t *value = values->padding + values->header_at;
    memcpy(values->covered, value, VALUE_HEADER);
    for (int i = 0; i < VALUE_HEADER; i++) value[i] = (uint8_t)(header >> (56 - 8 * i));
    return value;
}

int value_is_ours(const Values *values, int64_t header) { return header >> SALT_SHIFT == values->salt; }

/* Whether a write of this trial can have made it: its salt and its size; *header is who that was. */
int value_read(const Values *values, const Sqlite *sqlite, sqlite3_stmt *stmt, int column, int64_t *header) {
    if (values->size == VALUE_HEADER) {
        /* Nothing that is no integer becomes one of ours: to ask for its type would cost as much again. */
        *header = sqlite->column_int64(stmt, column);
        return value_is_ours(values, *header);
    }
    const uint8_t *bytes = sqlite->column_blob(stmt, column);
    if (sqlite->column_type(stmt, column) != SQLITE_BLOB || sqlite->column_bytes(stmt, column) != values->size)
        return 0;
    *header = big_endian(bytes);
    return value_is_ours(values, *header);
}

void raw_read(Raw *raw, const Sqlite *sqlite, sqlite3_stmt *stmt, int column) {
    raw->type = sqlite->column_type(stmt, column);
    if (raw->type == SQLITE_INTEGER) {
        raw->integer = sqlite->column_int64(stmt, column);
        return;
    }
    const void *bytes = sqlite->column_blob(stmt, column);
    raw->length = sqlite->column_bytes(stmt, column);
    if (raw->length > RAW_ROOM) raw->length = RAW_ROOM;
    if (bytes) memcpy(raw->bytes, bytes, (size_t)raw->length);
}

int64_t header_worker(int64_t header) { return header >> SEQUENCE_BITS & ((1 << WORKER_BITS) - 1); }

int64_t header_sequence(int64_t header) { return header & ((INT64_C(1) << SEQUENCE_BITS) - 1); }
