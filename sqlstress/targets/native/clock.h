/* The clock that all processes of a machine share: the clock of Python's time.perf_counter_ns. */
#ifndef SQLSTRESS_CLOCK_H
#define SQLSTRESS_CLOCK_H

#include <stdint.h>

int64_t clock_ns(void);

void sleep_ns(int64_t ns);

/* Make the allocator keep freed memory in the process instead of returning it to the system. */
void heap_keep(void);

#endif
