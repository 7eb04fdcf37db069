/* kv/acks.py says what the words mean, and how the parent reads them when a worker has died. */
#include "loop.h"

#include <string.h>

static int64_t slot_of(const Acks *acks, int64_t number) {
    if (acks->slots >= acks->keys) return number;
    int64_t place = (int64_t)((uint64_t)number * (uint64_t)acks->step % (uint64_t)acks->keys);
    return place < acks->slots ? place : UNTRACKED;
}

void acks_announce(const Acks *acks, const Chunk *chunk, int width) {
    if (!acks->on) return;
    for (int i = 0; i < chunk->count; i++) {
        /* A mask, as which of them write is chance: a branch would be foretold wrongly half of the time.
         * UNTRACKED has all bits set. */
        int64_t reads = -(int64_t)(chunk->kinds[i] != REPLACE);
        for (int64_t row = (int64_t)i * width; row < (int64_t)(i + 1) * width; row++) {
            int64_t slot = slot_of(acks, chunk->numbers[row]) | reads;
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

/* Enters the writes of an operation as the worker's last ones: side by side, a cache miss each. */
static void enter(const Acks *acks, const Chunk *chunk, int operation, int width) {
    for (int64_t row = (int64_t)operation * width; row < (int64_t)(operation + 1) * width; row++) {
        if (!acks->written[row]) continue;
        int64_t *last = acks->last + 3 * acks->rows[row];
        last[0] = chunk->first + row;
        last[1] = acks->begins[operation];
        last[2] = acks->ends[operation];
    }
}

/* A value of one's own, or the one that the key had before, must be one's own last write to it. */
static void check_own(const Acks *acks, int64_t number, int64_t header, Reads *reads) {
    int64_t worker = header_worker(header), slot = slot_of(acks, number);
    if (header < 0 || slot == UNTRACKED || (worker != 0 && worker != acks->worker)) return;
    int64_t last = acks->last[3 * slot];
    if (worker ? header_sequence(header) == last : last == 0) return;
    BadRead bad = {.number = number, .header = header, .last = last};
    reads_bad(reads, &bad);
}

/* Operation by operation: so a read is held against what had been acknowledged before it. */
void acks_settle(const Acks *acks, const Chunk *chunk, int width, int done, Reads *reads) {
    for (int i = 0; i < done; i++) {
        if (chunk->kinds[i] == GET) {
            reads->checked++;
            if (acks->on && acks->stored) check_own(acks, chunk->numbers[(int64_t)i * width], chunk->headers[i], reads);
        } else if (chunk->kinds[i] == REPLACE && acks->on) {
            enter(acks, chunk, i, width);
        }
    }
    if (!acks->on) return;
    IN_ORDER();
    acks->meta[0] = 0;
}
