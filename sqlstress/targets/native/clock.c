/* System functions: the clock that all processes share, a sleep, and an allocator that keeps freed memory. */
#ifndef _WIN32
#define _GNU_SOURCE
#endif
#include <limits.h>

#include "clock.h"

#define NS_PER_S INT64_C(1000000000)

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

int64_t clock_ns(void) {
    static int64_t per_s; /* constant while the system runs */
    LARGE_INTEGER now;
    if (!per_s) {
        LARGE_INTEGER found;
        QueryPerformanceFrequency(&found);
        per_s = found.QuadPart;
    }
    QueryPerformanceCounter(&now);
    return now.QuadPart / per_s * NS_PER_S + now.QuadPart % per_s * NS_PER_S / per_s;
}

#ifndef CREATE_WAITABLE_TIMER_HIGH_RESOLUTION
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 2
#endif

/* Sleep() has the resolution of the system's ticks, usually 16 ms. This timer is more exact; Python's time.sleep
 * uses it, too. It exists since Windows 10, version 1803.
 *
 * Source: https://learn.microsoft.com/windows/win32/api/synchapi/nf-synchapi-createwaitabletimerexw */
void sleep_ns(int64_t ns) {
    static HANDLE timer;
    LARGE_INTEGER after = {.QuadPart = -((ns + 99) / 100)}; /* relative, in steps of 100 ns */
    if (!timer) timer = CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);
    if (timer && SetWaitableTimer(timer, &after, 0, NULL, NULL, FALSE)) {
        WaitForSingleObject(timer, INFINITE);
    } else {
        Sleep((DWORD)((ns + 999999) / 1000000));
    }
}

#else
#include <time.h>

#ifdef __APPLE__
#define SHARED_CLOCK CLOCK_UPTIME_RAW
#else
#define SHARED_CLOCK CLOCK_MONOTONIC
#endif

int64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(SHARED_CLOCK, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

void sleep_ns(int64_t ns) {
    struct timespec length = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
    nanosleep(&length, NULL);
}

#endif

/* An allocator that keeps freed memory in the process. After a write by another connection, SQLite frees the pages
 * of its cache and allocates the same number again. If the end of the heap happens to be free, glibc returns these
 * pages to the system in between, and each page then costs a page fault. This chance would differ from one program
 * to the next.
 *
 * Source: https://man7.org/linux/man-pages/man3/mallopt.3.html */

#ifdef __GLIBC__
#include <malloc.h>

#define LARGEST_IN_HEAP (32 << 20) /* maximum that glibc allows */

void heap_keep(void) {
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_THRESHOLD, LARGEST_IN_HEAP); /* after the call above, glibc no longer adapts this threshold */
}

#else

void heap_keep(void) {}

#endif
