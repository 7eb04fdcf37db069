/* What is freed stays the process's own. When others have written, SQLite frees the pages of its cache and takes as
 * many again; whether glibc returns them to the system in between depends on what happens to lie at the end of the
 * heap, and then each costs a page fault: luck, which differs from one program to the next.
 * Source: https://man7.org/linux/man-pages/man3/mallopt.3.html */
#include "heap.h"

#include <limits.h>

#ifdef __GLIBC__
#include <malloc.h>

#define LARGEST_IN_HEAP (32 << 20) /* the most that glibc lets */

void heap_keep(void) {
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_THRESHOLD, LARGEST_IN_HEAP); /* it no longer adapts once the other one is set */
}

#else

void heap_keep(void) {}

#endif
