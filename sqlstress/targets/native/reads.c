#include "loop.h"

void reads_bad(Reads *reads, const BadRead *bad) {
    reads->bad++;
    if (reads->bad_kept < EXAMPLES) reads->bad_examples[reads->bad_kept++] = *bad;
}

/* Two keys that are always written in one transaction, read in one snapshot. */
static int is_whole(const PairRead *pair, int batch) {
    if (pair->rows != 2 || pair->headers[0] < 0 || pair->headers[1] < 0) return 0;
    int first = pair->headers[0] > pair->headers[1];
    int64_t worker = header_worker(pair->headers[first]), sequence = header_sequence(pair->headers[first]);
    if (worker != header_worker(pair->headers[!first])) return 0;
    if (worker == 0) return 1;
    int64_t next = header_sequence(pair->headers[!first]);
    return next == sequence + 1 && (sequence - 1) / batch == (next - 1) / batch;
}

void reads_pair(Reads *reads, const PairRead *pair, int batch) {
    reads->pairs++;
    if (is_whole(pair, batch)) return;
    reads->torn++;
    if (reads->torn_kept < EXAMPLES) reads->torn_examples[reads->torn_kept++] = *pair;
}
