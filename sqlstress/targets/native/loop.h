/* The parts of a worker's timed loop. Each part does the same as Python code, which describes it in full and must
 * agree with it: random.Random, kv/keys.py, kv/worker.py, engine/values.py, kv/acks.py or engine/loop.py. All times
 * are in ns of the shared clock. */
#ifndef SQLSTRESS_LOOP_H
#define SQLSTRESS_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "sqlite.h"
#include "waiting.h"

/* Kinds of operations. FAILED replaces the kind of an operation that has failed. */
enum { GET, REPLACE, UPDATE, PAIR, KINDS, FAILED = 255 };

/* Stores to shared memory that come before this macro happen before the stores after it, even if the process is
 * killed in between. The processor keeps a process's own stores in order; the macro keeps the compiler from
 * reordering them. */
#ifdef _MSC_VER
#include <intrin.h>
#define IN_ORDER() _ReadWriteBarrier()
#else
#define IN_ORDER() __asm__ __volatile__("" ::: "memory")
#endif

/* Like IN_ORDER, for another process that reads the stores at the same time: it also orders the processor's memory
 * accesses. */
#if defined(_MSC_VER) && defined(_M_ARM64)
#define PUBLISHED() __dmb(_ARM64_BARRIER_ISH)
#elif defined(_MSC_VER)
#define PUBLISHED() _ReadWriteBarrier()
#else
#define PUBLISHED() __atomic_thread_fence(__ATOMIC_ACQ_REL)
#endif

/* workload.c: Python's random generator, so that the C loop and the Python loop draw the same numbers. */

#define RANDOM_WORDS 624

typedef struct {
    uint32_t state[RANDOM_WORDS];
    uint32_t next; /* index of the next word; RANDOM_WORDS if all words are used */
} Random;

/* workload.c: the drawn keys, their buckets (database files), and their form in the database. A pair is two keys of
 * a bucket that are always written in one transaction. */

typedef enum { UNIFORM, ZIPFIAN, SEQUENTIAL } Distribution;
typedef enum { KEY_INT, KEY_TEXT, KEY_BLOB } KeyType;

typedef struct {
    Distribution distribution;
    int64_t key_space, position;            /* position: number of the next key of the sequential distribution */
    double total, second, eta, alpha;       /* constants of the zipfian distribution, from kv/keys.py */
    int64_t step;                           /* factor that scatters the popular keys of the zipfian distribution */
    Random random;
} Keys;

typedef struct {
    const uint16_t *bucket_of; /* bucket of each key; NULL if there is only one bucket */
    const uint32_t *order;     /* keys, sorted by bucket; NULL if each key's number is its position */
    const int64_t *starts;     /* start of each bucket in `order`, and the end of the last bucket */
    const int64_t *pairs;      /* number of pairs in each bucket */
} Placement;

#define KEY_ROOM 32

/* write a text or blob key; return its size in bytes */
int key_encode(KeyType type, int64_t number, uint8_t to[KEY_ROOM]);

/* workload.c: values. The header of a value (its first eight bytes, or the integer) identifies the worker and the
 * write. */

typedef struct {
    int64_t base;  /* header of the worker's write with sequence number 0 */
    int64_t salt, size; /* salt: number of the trial, which is a part of each header */
    uint8_t *padding; /* VALUE_HEADER bytes, then the worker's padding; NULL if values are integers */
    uint8_t covered[8]; /* the padding's bytes that the last value's header has overwritten */
    int64_t header_at; /* offset in `padding` of the last value's header */
} Values;

#define VALUE_HEADER 8
#define VALUE_STRETCH 256
#define SEQUENCE_BITS 36
#define WORKER_BITS 12
#define SALT_SHIFT (SEQUENCE_BITS + WORKER_BITS)
#define PRELOAD_SALT INT64_C(1) /* salt of the preload, the initial data */

#define RAW_ROOM 48

/* The value of a column. Only its first RAW_ROOM bytes are kept. */
typedef struct {
    int type;
    int64_t integer;
    int length;
    uint8_t bytes[RAW_ROOM];
} Raw;

const uint8_t *value_make(Values *values, int64_t sequence); /* returns `size` bytes, valid until the next call */
int value_read(const Values *values, const Sqlite *sqlite, sqlite3_stmt *stmt, int column, int64_t *header);
void raw_read(Raw *raw, const Sqlite *sqlite, sqlite3_stmt *stmt, int column);
int value_is_ours(const Values *values, int64_t header);
int64_t big_endian(const uint8_t bytes[VALUE_HEADER]);
int64_t header_worker(int64_t header);
int64_t header_sequence(int64_t header);

/* workload.c: chunks. A chunk is the list of operations that the loop runs without other work in between. It is
 * drawn outside the measured time. */

typedef struct {
    int simple; /* whether all operations are gets and single replaces */
    int only_reads;
    int batch, width; /* rows that a replace writes; space for rows per operation. Both are equal. */
    double read_ratio;
    /* thresholds for a draw below 1 << 16, if transactions have several statements */
    uint32_t read_below, update_below;
} Mix;

typedef struct {
    int count;
    int64_t first;    /* sequence number of the first row of the chunk */
    uint8_t *kinds;
    uint16_t *drawn;  /* random numbers from which the kinds follow, unless the mix is simple */
    int64_t *numbers; /* `width` numbers per operation: numbers of keys, or of a counter; a pair uses the first two */
    int *buckets;
    /* for each operation, the header of the value that a get has read; negative if no worker wrote the value */
    int64_t *headers;
} Chunk;

typedef struct {
    Mix mix;
    Keys keys;
    Placement placement;
    int64_t sequence;
    int64_t *spare; /* memory for the pairs of a transaction with several rows */
    uint8_t *taken; /* one bit for each pair of a bucket: whether the transaction already has the pair */
} Draws;

void chunk_draw(Draws *draws, Chunk *chunk, int count);

/* record.c: wrong values that were read. */

#define EXAMPLES 3

typedef struct {
    int64_t number, header, last; /* last: sequence number of the write that should have been read; 0 if unknown */
    Raw value;
} BadRead;

typedef struct {
    int rows;
    Raw keys[2], values[2];
    int64_t headers[2]; /* header of each value; negative if no worker wrote the value */
} PairRead;

typedef struct {
    int64_t checked, bad, pairs, torn;
    int bad_kept, torn_kept;
    BadRead bad_examples[EXAMPLES];
    PairRead torn_examples[EXAMPLES];
} Reads;

void reads_bad(Reads *reads, const BadRead *bad);
void reads_pair(Reads *reads, const PairRead *pair, int batch);

/* sqlite.c, and loop.c for a store that does nothing: the operations. Each is one transaction, and returns a result
 * code of SQLite, perhaps an extended code. */

typedef enum { SQL_GET, SQL_PAIR, SQL_PUT, SQL_BEGIN, SQL_COMMIT, SQL_ROLLBACK, SQL_COUNT, SQL_SET_COUNT, SQLS } Sql;

typedef struct {
    sqlite3 *db;
    sqlite3_stmt *prepared[SQLS];
} Bucket;

#define MOST_REFUSALS 20
#define MOST_WAITS 100

/* Failures of a statement with one result code; failures that were retried count, too. */
typedef struct {
    Sql sql;
    int in_transaction, code;
    int64_t count, longest, waits[MOST_WAITS]; /* waits: of the last failures, in ns */
} Refusal;

typedef struct Store Store;
struct Store {
    Sqlite sqlite;
    const char *sql[SQLS];
    Bucket *buckets;
    int count;
    KeyType key_type;
    int batch; /* rows that a replace writes */
    Values values;
    Waiting waiting;
    Reads *reads; /* NULL if reads are not checked */
    char said[1024]; /* SQLite's message about the last error */
    Sql refused; /* statement that has failed and is not counted yet; SQLS if there is none */
    int refused_in_transaction;
    Refusal refusals[MOST_REFUSALS];
    int refusal_count;
    int (*get)(Store *, int bucket, int64_t number, int64_t *header);
    int (*put)(Store *, int bucket, int64_t number, int64_t sequence);
    int (*put_all)(Store *, int bucket, const int64_t *numbers, int64_t sequence);
    int (*update)(Store *, int bucket, int64_t counter);
    int (*read_pair)(Store *, int bucket, const int64_t *numbers);
};

void store_over_sqlite(Store *store);
void store_over_nothing(Store *store);
/* Count the statement that has failed, if there is one. `begun` is the begin of its transaction. */
void store_refuse(Store *store, int code, int64_t begun);
void store_close(Store *store);

/* record.c: acknowledgements in shared memory. */

#define UNTRACKED (-1)
#define COUNTERS 16

typedef struct {
    int on, stored; /* stored: whether the store keeps the written data */
    int64_t *meta, *begins, *ends, *rows, *last, *counts; /* parts of the worker's area, as in kv/acks.py */
    uint8_t *written;
    int64_t keys, slots, step; /* step: factor of the hash that selects the keys with slots */
    int worker, workers;
    const int64_t *lasts; /* the `last` (last write to each slot) of worker 1 */
    int64_t stride; /* distance from one worker's `last` to the next worker's, in words */
} Acks;

int64_t acks_slot(const Acks *acks, int64_t number);
void acks_announce(const Acks *acks, const Chunk *chunk, int width);
void acks_give_up(const Acks *acks, int operation, int width);
void acks_settle(const Acks *acks, const Chunk *chunk, int width, int done, Reads *reads);

/* record.c: counts of the operations that end inside the window. */

#define MOST_BINS 600
#define LATENCY_BINS (0x7f7f + 1)

typedef struct {
    int64_t opens, closes, bin_ns;
    int weights[KINDS]; /* rows per operation */
    int64_t first, last; /* begin of the first operation, end of the last operation */
    int64_t rows, longest_wait, failed, busy, busy_snapshot;
    int64_t harness, proof; /* time between chunks (drawing, counting, checking), and the checking in it */
    int64_t operations[KINDS], largest[KINDS], largest_failed;
    uint64_t *latencies[KINDS];
    uint64_t *failures; /* latencies of failed operations */
    int64_t bins[MOST_BINS];
    int bins_used;
} Tally;

int tally_open(Tally *tally);
void tally_close(Tally *tally);
void tally_add(Tally *tally, const Chunk *chunk, const int64_t *begins, const int64_t *ends, int done);
int latency_bin(int64_t ns);

/* proof.c: the check whether all rows of a bucket are right. */

typedef struct {
    Sqlite sqlite;
    KeyType key_type;
    const uint16_t *bucket_of; /* bucket of each key; NULL if there is only one bucket */
    Values values;
    const uint8_t *paddings; /* padding of the preload, then of each worker; NULL if values are integers */
    Acks acks;
    uint8_t *seen; /* for each key, whether its row was found */
    int64_t *latest; /* for each slot, the begin of its latest acknowledged write; 0 if there is none */
} Proof;

int proof_begin(Proof *proof); /* returns 0 if there is not enough memory */
void proof_end(Proof *proof);
/* Returns the number of rows of a bucket if all are right, else a negative number. */
int64_t proof_rows(const Proof *proof, sqlite3 *db, int bucket, const char *sql);

/* loop.c */

typedef enum { RAN, STOPPED, OUT_OF_PATIENCE } Ending;

typedef struct {
    Draws draws;
    Chunk chunk;
    Store store;
    Acks acks;
    Tally tally;
    Reads reads;
    volatile int64_t *progress, *stop; /* shared memory: number of completed operations; not 0 to stop the loop */
    int64_t limit; /* maximum number of operations; negative means no limit */
    int largest_chunk;
    int64_t patience_ns; /* maximum total timeout of writes that fail in a row; negative means no limit */
    int64_t given_up; /* number of writes that failed in a row */
    int code; /* result code of the store that stopped the loop, or 0 */
} Loop;

Ending loop_run(Loop *loop);

#endif
