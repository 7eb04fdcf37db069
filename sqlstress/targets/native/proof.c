/* The check whether all rows of a bucket agree with the acknowledged writes (ReadHistory in kv/work.py). It only
 * confirms that all rows are right. If a row is wrong, or may be wrong, kv/work.py checks all rows in Python and
 * reports the faults. */
#include <stdlib.h>
#include <string.h>

#include "loop.h"

static int64_t digits(const uint8_t *bytes, int length) {
    int64_t number = 0;
    if (length < 4 || length >= KEY_ROOM) return -1;
    for (int i = 3; i < length; i++) {
        if (bytes[i] < '0' || bytes[i] > '9' || number > INT64_MAX / 20) return -1;
        number = 10 * number + bytes[i] - '0';
    }
    return number;
}

/* Return the number of a key in the format of key_encode; negative if the column has no such key. */
static int64_t key_read(const Proof *proof, sqlite3_stmt *stmt) {
    const Sqlite *sqlite = &proof->sqlite;
    uint8_t room[KEY_ROOM];
    if (proof->key_type == KEY_INT)
        return sqlite->column_type(stmt, 0) == SQLITE_INTEGER ? sqlite->column_int64(stmt, 0) : -1;
    if (sqlite->column_type(stmt, 0) != (proof->key_type == KEY_TEXT ? SQLITE_TEXT : SQLITE_BLOB)) return -1;
    const uint8_t *bytes = sqlite->column_blob(stmt, 0);
    int length = sqlite->column_bytes(stmt, 0);
    int64_t number = -1;
    if (proof->key_type == KEY_TEXT)
        number = digits(bytes, length);
    else if (length == 2 * VALUE_HEADER)
        number = big_endian(bytes + VALUE_HEADER);
    if (number < 0 || key_encode(proof->key_type, number, room) != length) return -1;
    return memcmp(bytes, room, (size_t)length) ? -1 : number;
}

/* Return whether a value has the type, or the padding, that its writer uses for this sequence number. */
static int is_padded(const Proof *proof, sqlite3_stmt *stmt, int64_t header) {
    const Values *values = &proof->values;
    if (values->size == VALUE_HEADER) return proof->sqlite.column_type(stmt, 1) == SQLITE_INTEGER;
    const uint8_t *bytes = proof->sqlite.column_blob(stmt, 1);
    const uint8_t *padding = proof->paddings + header_worker(header) * (values->size + VALUE_STRETCH);
    int64_t from = header_sequence(header) % VALUE_STRETCH;
    return !memcmp(bytes + VALUE_HEADER, padding + from, (size_t)(values->size - VALUE_HEADER));
}

/* Return whether a write can be the last write to a key: no later write to the key was acknowledged. */
static int is_last(const Proof *proof, int64_t number, int64_t header) {
    const Acks *acks = &proof->acks;
    int64_t slot = acks_slot(acks, number), worker = header_worker(header);
    if (!worker && header_sequence(header) != number) return 0;
    if (slot == UNTRACKED) return 1;
    if (!worker) return proof->latest[slot] == 0;
    const int64_t *own = acks->lasts + (worker - 1) * acks->stride + 3 * slot;
    return own[0] == header_sequence(header) && own[2] >= proof->latest[slot];
}

static int is_right(const Proof *proof, sqlite3_stmt *stmt, int bucket) {
    int64_t number = key_read(proof, stmt), header;
    if (number < 0 || number >= proof->acks.keys || proof->seen[number]) return 0;
    if ((proof->bucket_of ? proof->bucket_of[number] : 0) != bucket) return 0;
    if (!value_read(&proof->values, &proof->sqlite, stmt, 1, &header)) return 0;
    if (header_worker(header) > proof->acks.workers || !is_padded(proof, stmt, header)) return 0;
    proof->seen[number] = 1;
    return is_last(proof, number, header);
}

/* Find the latest acknowledged write to each slot, worker by worker in the order of memory. A search row by row
 * would cause a cache miss per worker for each row. */
int proof_begin(Proof *proof) {
    const Acks *acks = &proof->acks;
    proof->latest = calloc((size_t)acks->slots + 1, sizeof *proof->latest);
    for (int worker = 0; proof->latest && worker < acks->workers; worker++) {
        const int64_t *lasts = acks->lasts + worker * acks->stride;
        for (int64_t slot = 0; slot < acks->slots; slot++)
            if (lasts[3 * slot + 1] > proof->latest[slot]) proof->latest[slot] = lasts[3 * slot + 1];
    }
    return proof->latest != NULL;
}

void proof_end(Proof *proof) { free(proof->latest); }

int64_t proof_rows(const Proof *proof, sqlite3 *db, int bucket, const char *sql) {
    sqlite3_stmt *stmt = NULL;
    int64_t count = 0;
    int code = proof->sqlite.prepare_v2(db, sql, -1, &stmt, NULL);
    if (code == SQLITE_OK) {
        while ((code = proof->sqlite.step(stmt)) == SQLITE_ROW && is_right(proof, stmt, bucket)) count++;
    }
    proof->sqlite.finalize(stmt);
    return code == SQLITE_DONE ? count : -1;
}
