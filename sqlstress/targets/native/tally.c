#include "loop.h"

#include <stdlib.h>
#include <string.h>

/* The upper half of a float of 32 bits: 128 buckets for every power of two. Source: statistics/histogram.py. */
int latency_bucket(int64_t ns) {
    float rounded = (float)(double)ns;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (int)(bits >> 16);
}

int tally_open(Tally *tally) {
    for (int kind = 0; kind < KINDS; kind++) {
        tally->latencies[kind] = calloc(LATENCY_BUCKETS, sizeof *tally->latencies[kind]);
        if (!tally->latencies[kind]) return 0;
    }
    return 1;
}

void tally_close(Tally *tally) {
    for (int kind = 0; kind < KINDS; kind++) free(tally->latencies[kind]);
}

static void wait_of(Tally *tally, int64_t ns) {
    if (ns > tally->longest_wait) tally->longest_wait = ns;
}

static void count(Tally *tally, int kind, int64_t ns) {
    tally->operations[kind]++;
    tally->rows += tally->weights[kind];
    tally->latencies[kind][latency_bucket(ns)]++;
    if (ns > tally->largest[kind]) tally->largest[kind] = ns;
}

/* Operations end in order, so that the bin of the one before is nearly always this one's. */
static void fill_bin(Tally *tally, int64_t end) {
    int64_t last = tally->opens + tally->bins_used * tally->bin_ns; /* where the last bin ends */
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
            if (begins[i] < tally->closes) wait_of(tally, ns); /* pending when the window closed */
            break;
        }
        if (chunk->kinds[i] == FAILED) {
            tally->failed++;
            wait_of(tally, ns);
        } else {
            count(tally, chunk->kinds[i], ns);
            fill_bin(tally, ends[i]);
        }
    }
}
