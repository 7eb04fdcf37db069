/* What the parts of the shim write down; see where.h. One thread works at a time. */
#ifndef SQLSTRESS_WHERE_RECORDER_H
#define SQLSTRESS_WHERE_RECORDER_H

#include "clock.h"
#include "where.h"

/* A stretch of time at whose ends waiting for a processor may be looked at. */
typedef struct {
    int64_t begin;
    int64_t processor; /* at the begin; -1: it is not looked at */
} Stretch;

void recorder_open(int64_t *area);
int recorder_is_open(void);
void recorder_close(void);

/* Adds to a sum of the area what of a stretch lies in the window. No two stretches of these may overlap. */
void record_sum(int word, int64_t begin, int64_t end);

/* Keeps a span, if any of it lies in the window. */
void record_span(int kind, int64_t file, int64_t begin, int64_t end);

/* Begins a stretch; of each `every` ones of its kind, counted by *count, one is looked at more closely. */
Stretch stretch_begin(int64_t now, unsigned *count, unsigned every);

/* Ends it: `seen` is the first of the two words that tell of those looked at. */
void stretch_end(Stretch stretch, int64_t now, int seen);

/* Says since when a lock is waited for; 0: for none. */
void record_pending(int64_t since);
int64_t recorded_pending(void);

/* Adds one statement's time without what stands in other sums. */
void record_statement(int64_t end, int64_t own_ns);

/* All stretches that ever went into sums, in the window or not. */
int64_t recorded_ns(void);

#endif
