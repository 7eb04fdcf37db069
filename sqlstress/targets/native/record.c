/* A worker's records: acknowledgements, wrong reads, and latencies. */
#include <stdlib.h>
#include <string.h>

#include "loop.h"

/* kv/acks.py describes the shared words, and how the parent reads them after a worker has died. */

int64_t acks_slot(const Acks *acks, int64_t number) {
    if (acks->slots >= acks->keys) return number;
    int64_t place = (int64_t)((uint64_t)number * (uint64_t)acks->step % (uint64_t)acks->keys);
    return place < acks->slots ? place : UNTRACKED;
}

void acks_announce(const Acks *acks, const Chunk *chunk, int width) {
    if (!acks->on) return;
    for (int i = 0; i < chunk->count; i++) {
        /* A mask instead of a branch, because the kinds are random: a processor would mispredict half of the
         * branches. UNTRACKED has all bits set. */
        int64_t reads = -(int64_t)(chunk->kinds[i] != REPLACE);
        for (int64_t row = (int64_t)i * width; row < (int64_t)(i + 1) * width; row++) {
            int64_t slot = acks_slot(acks, chunk->numbers[row]) | reads;
            acks->rows[row] = slot;
            acks->written[row] = slot != UNTRACKED;
        }
    }
    memset(acks->ends, 0, (size_t)chunk->count * sizeof *acks->ends);
    acks->meta[1] = chunk->first;
    IN_ORDER();
    acks->meta[0] = chunk->count;
    IN_ORDER();
}

void acks_give_up(const Acks *acks, int operation, int width) {
    if (!acks->on) return;
    memset(acks->written + (size_t)operation * (size_t)width, 0, (size_t)width);
    IN_ORDER();
}

/* Store the writes of an operation as the worker's last writes. The words of a write are adjacent, so this costs one
 * cache miss. */
static void enter(const Acks *acks, const Chunk *chunk, int operation, int width) {
    for (int64_t row = (int64_t)operation * width; row < (int64_t)(operation + 1) * width; row++) {
        if (!acks->written[row]) continue;
        int64_t *last = acks->last + 3 * acks->rows[row];
        /* The sequence number is stored last. So a process that reads it first, and then the end, never gets the end
         * of an earlier write. */
        last[1] = acks->begins[operation];
        last[2] = acks->ends[operation];
        PUBLISHED();
        last[0] = chunk->first + row;
    }
}

/* Check a value of this worker or of the preload. A worker's own value must be from its last write to the key. A
 * value of the preload is wrong if the worker has written the key. */
static void check_own(const Acks *acks, int64_t number, int64_t header, Reads *reads) {
    int64_t worker = header_worker(header), slot = acks_slot(acks, number);
    if (header < 0 || slot == UNTRACKED || (worker != 0 && worker != acks->worker)) return;
    int64_t last = acks->last[3 * slot];
    if (worker ? header_sequence(header) == last : last == 0) return;
    BadRead bad = {.number = number, .header = header, .last = last};
    reads_bad(reads, &bad);
}

/* Check a value of another worker: it is wrong if a later write of that worker to the key was acknowledged before
 * this get began. */
static void check_other(const Acks *acks, int64_t number, int64_t header, int64_t begin, Reads *reads) {
    int64_t worker = header < 0 ? 0 : header_worker(header), slot = acks_slot(acks, number);
    if (worker == 0 || worker == acks->worker || worker > acks->workers || slot == UNTRACKED) return;
    const volatile int64_t *last = acks->lasts + (worker - 1) * acks->stride + 3 * slot;
    int64_t sequence = last[0];
    PUBLISHED();
    if (sequence <= header_sequence(header) || last[2] > begin) return;
    BadRead bad = {.number = number, .header = header, .last = sequence};
    reads_bad(reads, &bad);
}

/* One of this number of gets is compared with the last write of another worker. These words are in other processors'
 * caches, and on pages that this process may not have used yet. A comparison after each get would take 3% to 10% of
 * a get's time (benchmarks/results/hunt.md). */
#define SAMPLED 256

/* Check gets and store writes in their order, so that each get is compared with the writes that were acknowledged
 * before it. */
void acks_settle(const Acks *acks, const Chunk *chunk, int width, int done, Reads *reads) {
    for (int i = 0; i < done; i++) {
        if (chunk->kinds[i] == GET) {
            reads->checked++;
            if (!acks->on || !acks->stored) continue;
            int64_t number = chunk->numbers[(int64_t)i * width];
            check_own(acks, number, chunk->headers[i], reads);
            if (reads->checked % SAMPLED == 0) check_other(acks, number, chunk->headers[i], acks->begins[i], reads);
        } else if (chunk->kinds[i] == REPLACE && acks->on) {
            enter(acks, chunk, i, width);
        }
    }
    if (!acks->on) return;
    IN_ORDER();
    acks->meta[0] = 0;
}

void reads_bad(Reads *reads, const BadRead *bad) {
    reads->bad++;
    if (reads->bad_kept < EXAMPLES) reads->bad_examples[reads->bad_kept++] = *bad;
}

/* Return whether the values of a pair match: two keys, read in one snapshot, that are always written in one
 * transaction. */
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

/* Return the histogram's bin of a latency: the upper 16 bits of the latency as a 32-bit float. This makes 128 bins
 * for every power of two. Source: statistics/histogram.py. */
int latency_bin(int64_t ns) {
    float rounded = (float)(double)ns;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (int)(bits >> 16);
}

int tally_open(Tally *tally) {
    for (int kind = 0; kind < KINDS; kind++) {
        tally->latencies[kind] = calloc(LATENCY_BINS, sizeof *tally->latencies[kind]);
        if (!tally->latencies[kind]) return 0;
    }
    tally->failures = calloc(LATENCY_BINS, sizeof *tally->failures);
    return tally->failures != NULL;
}

void tally_close(Tally *tally) {
    for (int kind = 0; kind < KINDS; kind++) free(tally->latencies[kind]);
    free(tally->failures);
}

static void wait_of(Tally *tally, int64_t ns) {
    if (ns > tally->longest_wait) tally->longest_wait = ns;
}

static void count(Tally *tally, int kind, int64_t ns) {
    tally->operations[kind]++;
    tally->rows += tally->weights[kind];
    tally->latencies[kind][latency_bin(ns)]++;
    if (ns > tally->largest[kind]) tally->largest[kind] = ns;
}

/* Count an operation in its bin, an interval of the window. Operations end in order, so this is nearly always
 * the last bin in use. */
static void fill_bin(Tally *tally, int64_t end) {
    int64_t last = tally->opens + tally->bins_used * tally->bin_ns; /* end of the last bin in use */
    if (end >= last) {
        int64_t bins = (end - tally->opens) / tally->bin_ns + 1;
        if (bins > MOST_BINS) return;
        tally->bins_used = (int)bins;
    }
    tally->bins[tally->bins_used - 1]++;
}

void tally_add(Tally *tally, const Chunk *chunk, const int64_t *begins, const int64_t *ends, int done) {
    if (!done) return;
    if (!tally->first) tally->first = begins[0];
    tally->last = ends[done - 1];
    for (int i = 0; i < done; i++) {
        int64_t ns = ends[i] - begins[i];
        if (ends[i] < tally->opens) continue;
        if (ends[i] >= tally->closes) {
            if (begins[i] < tally->closes) wait_of(tally, ns); /* the operation was pending when the window closed */
            break;
        }
        if (chunk->kinds[i] == FAILED) {
            tally->failed++;
            tally->failures[latency_bin(ns)]++;
            if (ns > tally->largest_failed) tally->largest_failed = ns;
            wait_of(tally, ns);
        } else {
            count(tally, chunk->kinds[i], ns);
            fill_bin(tally, ends[i]);
        }
    }
}
