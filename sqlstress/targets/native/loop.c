/* engine/loop.py in C: it runs chunks of operations. The measured time of an operation is that of one call of the
 * store. */
#include "clock.h"
#include "loop.h"
#include "where.h"

#define FIRST_CHUNK 8
#define SHORT_NS 8000000
#define LONG_NS 32000000

static int operate(Loop *loop, int i) {
    Store *store = &loop->store;
    const Chunk *chunk = &loop->chunk;
    const int width = loop->draws.mix.width, bucket = chunk->buckets[i];
    const int64_t *numbers = chunk->numbers + (int64_t)i * width;
    int code;
    switch (chunk->kinds[i]) {
    case GET:
        return store->get(store, bucket, *numbers, &chunk->headers[i]);
    case PAIR:
        return store->read_pair(store, bucket, numbers);
    case UPDATE:
        code = store->update(store, bucket, *numbers);
        /* Count now, once. The other acknowledgements are stored after the chunk, perhaps twice. */
        if (code == SQLITE_OK) loop->acks.counts[(int64_t)bucket * COUNTERS + *numbers]++;
        IN_ORDER();
        return code;
    default:
        if (width > 1) return store->put_all(store, bucket, numbers, chunk->first + (int64_t)i * width);
        return store->put(store, bucket, *numbers, chunk->first + i);
    }
}

/* Handle an error of an operation that began at `begun`; return whether to continue. BUSY makes the operation fail.
 * Any other error ends the loop. */
static int give_up(Loop *loop, int i, int code, int64_t begun) {
    waiting_count(&loop->store.waiting, code);
    store_refuse(&loop->store, code, begun);
    if ((code & 0xff) != SQLITE_BUSY) {
        loop->code = code;
        return 0;
    }
    where_gave_up();
    if (loop->chunk.kinds[i] == REPLACE) acks_give_up(&loop->acks, i, loop->draws.mix.width);
    loop->chunk.kinds[i] = FAILED;
    return 1;
}

/* Run a chunk until the window closes; return the number of operations that were completed or failed. The end of
 * each operation is written to shared memory at once: it is the acknowledgement, and the begin of the next
 * operation. */
static int run_chunk(Loop *loop, int64_t begin) {
    volatile int64_t *ends = loop->acks.ends;
    loop->acks.begins[0] = begin;
    for (int i = 0; i < loop->chunk.count; i++) {
        int code = operate(loop, i);
        if (code != SQLITE_OK && !give_up(loop, i, code, i ? ends[i - 1] : begin)) return i;
        int64_t now = clock_ns();
        ends[i] = now;
        if (now >= loop->tally.closes) return i + 1;
    }
    return loop->chunk.count;
}

/* Return the size of the next chunk: twice the last size after a short chunk, half of it after a long chunk. */
static int next_size(int size, int done, int64_t took, int largest) {
    if (done < size) return size;
    if (took < SHORT_NS) return 2 * size < largest ? 2 * size : largest;
    if (took <= LONG_NS) return size;
    return size / 2 > FIRST_CHUNK ? size / 2 : FIRST_CHUNK;
}

/* Count the chunk's failed operations, and return whether to continue: false if writes have failed for too long.
 * Without this check, a fixed number of operations would never end if another program kept its lock. */
static int is_patient(Loop *loop, int done, int64_t *failed) {
    int wrote = 0;
    *failed = 0;
    for (int i = 0; i < done; i++) {
        *failed += loop->chunk.kinds[i] == FAILED;
        wrote |= loop->chunk.kinds[i] == REPLACE || loop->chunk.kinds[i] == UPDATE;
    }
    loop->given_up = wrote ? 0 : loop->given_up + *failed;
    return loop->patience_ns < 0 || loop->given_up * (loop->store.waiting.timeout_ns / 1000) <= loop->patience_ns / 1000;
}

Ending loop_run(Loop *loop) {
    Tally *tally = &loop->tally;
    Waiting *waiting = &loop->store.waiting;
    const int width = loop->draws.mix.width;
    int64_t left = loop->limit, busy = 0, busy_snapshot = 0, last = clock_ns();
    int size = FIRST_CHUNK;
    while (last < tally->closes && !*loop->stop && left != 0) {
        chunk_draw(&loop->draws, &loop->chunk, left >= 0 && left < size ? (int)left : size);
        acks_announce(&loop->acks, &loop->chunk, width);
        int64_t ready = clock_ns();
        int done = run_chunk(loop, ready);
        if (loop->code) return STOPPED;
        int64_t ended = loop->acks.ends[done - 1];
        tally_add(tally, &loop->chunk, loop->acks.begins, loop->acks.ends, done);
        int64_t settling = clock_ns(), failed;
        if (loop->store.reads) acks_settle(&loop->acks, &loop->chunk, width, done, &loop->reads);
        if (!is_patient(loop, done, &failed)) return OUT_OF_PATIENCE;
        *loop->progress += done - failed;
        if (left > 0) left -= done;
        size = next_size(size, done, ended - ready, loop->largest_chunk);
        int64_t now = clock_ns();
        if (tally->opens <= ended && ended < tally->closes) {
            tally->harness += ready - last + now - ended;
            tally->proof += now - settling;
            tally->busy += waiting->busy - busy;
            tally->busy_snapshot += waiting->busy_snapshot - busy_snapshot;
        }
        busy = waiting->busy;
        busy_snapshot = waiting->busy_snapshot;
        last = now;
    }
    return RAN;
}

/* A store that does nothing, to measure the cost of the loop itself. */

static int get(Store *store, int bucket, int64_t number, int64_t *header) {
    (void)store;
    (void)bucket;
    (void)number;
    *header = PRELOAD_SALT << SALT_SHIFT;
    return SQLITE_OK;
}

static int put(Store *store, int bucket, int64_t number, int64_t sequence) {
    (void)bucket;
    (void)number;
    if (store->values.padding) value_make(&store->values, sequence);
    return SQLITE_OK;
}

static int put_all(Store *store, int bucket, const int64_t *numbers, int64_t sequence) {
    for (int i = 0; i < store->batch; i++) put(store, bucket, numbers[i], sequence + i);
    return SQLITE_OK;
}

static int update(Store *store, int bucket, int64_t counter) {
    (void)store;
    (void)bucket;
    (void)counter;
    return SQLITE_OK;
}

static int read_pair(Store *store, int bucket, const int64_t *numbers) {
    PairRead pair = {.rows = 2};
    for (int i = 0; i < 2; i++) get(store, bucket, numbers[i], &pair.headers[i]);
    if (store->reads) reads_pair(store->reads, &pair, store->batch);
    return SQLITE_OK;
}

void store_over_nothing(Store *store) {
    store->get = get;
    store->put = put;
    store->put_all = put_all;
    store->update = update;
    store->read_pair = read_pair;
}
