/* A store that does nothing: what remains is the loop's own cost. */
#include "loop.h"

static int get(Store *store, int bucket, int64_t number, int64_t *header) {
    (void)bucket;
    (void)number;
    *header = store->values.salt << SALT_SHIFT; /* the preload's */
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
