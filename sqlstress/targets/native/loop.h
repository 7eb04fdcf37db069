/* The parts of the timed loop. What each of them is to do is said by its counterpart in Python, which must
 * agree with it: random.Random, kv/keys.py, kv/worker.py, engine/values.py, kv/acks.py and
 * engine/loop.py. All times are nanoseconds of the shared clock. */
#ifndef SQLSTRESS_LOOP_H
#define SQLSTRESS_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include "sqlite.h"
#include "waiting.h"

enum { GET, REPLACE, UPDATE, PAIR, KINDS, FAILED = 255 };

/* What of a shared word was stored before this is there before what is stored after it, whenever the process is
 * killed: its own stores are kept in their order by the processor, and by this in that of the program. */
#ifdef _MSC_VER
#include <intrin.h>
#define IN_ORDER() _ReadWriteBarrier()
#else
#define IN_ORDER() __asm__ __volatile__("" ::: "memory")
#endif

/* The same for another process that reads them while this one works: in the order of the processors, too. */
#if defined(_MSC_VER) && defined(_M_ARM64)
#define PUBLISHED() __dmb(_ARM64_BARRIER_ISH)
#elif defined(_MSC_VER)
#define PUBLISHED() _ReadWriteBarrier()
#else
#define PUBLISHED() __atomic_thread_fence(__ATOMIC_ACQ_REL)
#endif

/* workload.c: Python's generator, so that both loops draw the same. */

#define RANDOM_WORDS 624

typedef struct {
    uint32_t state[RANDOM_WORDS];
    uint32_t next; /* RANDOM_WORDS: the state is used up */
} Random;

/* workload.c: which keys are drawn, in which bucket they lie, and how they look in the database. */

typedef enum { UNIFORM, ZIPFIAN, SEQUENTIAL } Distribution;
typedef enum { KEY_INT, KEY_TEXT, KEY_BLOB } KeyType;

typedef struct {
    Distribution distribution;
    int64_t key_space, position;            /* position: of the next key, if they come one after the other */
    double total, second, eta, alpha;       /* of the zipfian distribution, as kv/keys.py reckons them */
    int64_t step;
    Random random;
} Keys;

typedef struct {
    int64_t key_space, step;
    const uint16_t *bucket_of; /* of each key; NULL: there is one bucket */
    const uint32_t *order;     /* the keys by bucket; NULL: a key's number is its position */
    const int64_t *starts;     /* of each bucket in `order`, and the end */
    const int64_t *pairs;      /* of each bucket */
} Placement;

#define KEY_ROOM 32

int key_encode(KeyType type, int64_t number, uint8_t to[KEY_ROOM]); /* the bytes of a text or a blob; how many */

/* workload.c: values that say who wrote them. */

typedef struct {
    int64_t base;  /* a worker's sequence numbers are added to it */
    int64_t salt, size;
    uint8_t *padding; /* room for a header, and behind it the worker's padding; NULL: values are integers */
    uint8_t covered[8];
    int64_t header_at; /* where in `padding` the header of the last value lies */
} Values;

#define VALUE_HEADER 8
#define VALUE_STRETCH 256
#define SEQUENCE_BITS 36
#define WORKER_BITS 12
#define SALT_SHIFT (SEQUENCE_BITS + WORKER_BITS)
#define PRELOAD_SALT INT64_C(1)

#define RAW_ROOM 48

/* A column as it was read, or its beginning. */
typedef struct {
    int type;
    int64_t integer;
    int length;
    uint8_t bytes[RAW_ROOM];
} Raw;

const uint8_t *value_make(Values *values, int64_t sequence); /* `size` bytes, until the next one is made */
int value_read(const Values *values, const Sqlite *sqlite, sqlite3_stmt *stmt, int column, int64_t *header);
void raw_read(Raw *raw, const Sqlite *sqlite, sqlite3_stmt *stmt, int column);
int value_is_ours(const Values *values, int64_t header);
int64_t big_endian(const uint8_t bytes[VALUE_HEADER]);
int64_t header_worker(int64_t header);
int64_t header_sequence(int64_t header);

/* workload.c: a stretch of operations, drawn outside the times that are measured. */

typedef struct {
    int simple, only_reads, batch, width; /* width: rows of an operation */
    double read_ratio;
    uint32_t read_below, update_below; /* of 1 << 16, where an operation may be a transaction */
} Mix;

typedef struct {
    int count;
    int64_t first;    /* sequence number of the first row */
    uint8_t *kinds;
    uint16_t *drawn;
    int64_t *numbers; /* `width` for each operation: keys, or a counter; of a pair the first two */
    int *buckets;
    int64_t *headers; /* of the value that a get has read; below 0: none of ours */
} Chunk;

typedef struct {
    Mix mix;
    Keys keys;
    Placement placement;
    int64_t sequence;
    int64_t *spare; /* room for a batch's pairs */
    uint8_t *taken; /* a bit for each pair of a bucket: it is in the batch already */
} Draws;

void chunk_draw(Draws *draws, Chunk *chunk, int count);

/* record.c: what was found wrong in what was read. */

#define EXAMPLES 3

typedef struct {
    int64_t number, header, last; /* last: the worker's own last write to that key, where that is what's wrong */
    Raw value;
} BadRead;

typedef struct {
    int rows;
    Raw keys[2], values[2];
    int64_t headers[2]; /* below 0: nobody's */
} PairRead;

typedef struct {
    int64_t checked, bad, pairs, torn;
    int bad_kept, torn_kept;
    BadRead bad_examples[EXAMPLES];
    PairRead torn_examples[EXAMPLES];
} Reads;

void reads_bad(Reads *reads, const BadRead *bad);
void reads_pair(Reads *reads, const PairRead *pair, int batch);

/* sqlite.c and loop.c (which has those of no store): the operations, each a transaction. They return an (extended)
 * code of SQLite. */

typedef enum { SQL_GET, SQL_PAIR, SQL_PUT, SQL_BEGIN, SQL_COMMIT, SQL_ROLLBACK, SQL_COUNT, SQL_SET_COUNT, SQLS } Sql;

typedef struct {
    sqlite3 *db;
    sqlite3_stmt *prepared[SQLS];
} Bucket;

typedef struct Store Store;
struct Store {
    Sqlite sqlite;
    const char *sql[SQLS];
    Bucket *buckets;
    int count;
    KeyType key_type;
    int batch;
    Values values;
    Waiting waiting;
    Reads *reads; /* NULL: nothing is checked */
    char said[1024]; /* by SQLite, of what went wrong */
    int (*get)(Store *, int bucket, int64_t number, int64_t *header);
    int (*put)(Store *, int bucket, int64_t number, int64_t sequence);
    int (*put_all)(Store *, int bucket, const int64_t *numbers, int64_t sequence);
    int (*update)(Store *, int bucket, int64_t counter);
    int (*read_pair)(Store *, int bucket, const int64_t *numbers);
};

void store_over_sqlite(Store *store);
void store_over_nothing(Store *store);
void store_close(Store *store);

/* record.c: acknowledgements in shared memory. */

#define UNTRACKED (-1)
#define COUNTERS 16

typedef struct {
    int on, stored; /* stored: the store keeps what it is given */
    int64_t *meta, *begins, *ends, *rows, *last, *counts;
    uint8_t *written;
    int64_t keys, slots, step;
    int worker, workers;
    const int64_t *lasts; /* what `last` is of worker 1 */
    int64_t stride; /* from one worker's to the next one's */
} Acks;

int64_t acks_slot(const Acks *acks, int64_t number);
void acks_announce(const Acks *acks, const Chunk *chunk, int width);
void acks_give_up(const Acks *acks, int operation, int width);
void acks_settle(const Acks *acks, const Chunk *chunk, int width, int done, Reads *reads);

/* record.c: only what completes inside the window. */

#define MOST_BINS 600
#define LATENCY_BUCKETS (0x7f7f + 1)

typedef struct {
    int64_t opens, closes, bin_ns;
    int weights[KINDS]; /* rows of an operation */
    int64_t first, last, rows, longest_wait, failed, busy, busy_snapshot, harness, proof;
    int64_t operations[KINDS], largest[KINDS], largest_failed;
    uint64_t *latencies[KINDS];
    uint64_t *failures; /* the latencies of failed operations */
    int64_t bins[MOST_BINS];
    int bins_used;
} Tally;

int tally_open(Tally *tally);
void tally_close(Tally *tally);
void tally_add(Tally *tally, const Chunk *chunk, const int64_t *begins, const int64_t *ends, int done);
int latency_bucket(int64_t ns);

/* proof.c: whether all rows of a bucket are right. */

typedef struct {
    Sqlite sqlite;
    KeyType key_type;
    const uint16_t *bucket_of; /* of each key; NULL: there is one bucket */
    Values values;
    const uint8_t *paddings; /* of each worker, the preload's first; NULL: values are integers */
    Acks acks;
    uint8_t *seen; /* of each key: it was found */
    int64_t *latest; /* of each slot: when the latest of its acknowledged writes began; 0: there is none */
} Proof;

int proof_begin(Proof *proof); /* 0: there is no memory */
void proof_end(Proof *proof);
int64_t proof_rows(const Proof *proof, sqlite3 *db, int bucket, const char *sql); /* how many; below 0: not all are */

/* loop.c */

typedef enum { RAN, STOPPED, OUT_OF_PATIENCE } Ending;

typedef struct {
    Draws draws;
    Chunk chunk;
    Store store;
    Acks acks;
    Tally tally;
    Reads reads;
    volatile int64_t *progress, *stop;
    int64_t limit; /* below 0: none */
    int largest_chunk;
    int64_t patience_ns; /* how long writes may be given up in a row; below 0: for ever */
    int64_t given_up;
    int code; /* of the store, where that is what stopped it */
} Loop;

Ending loop_run(Loop *loop);

#endif
