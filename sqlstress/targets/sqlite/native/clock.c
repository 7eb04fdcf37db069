#ifndef _WIN32
#define _GNU_SOURCE
#endif
#include "clock.h"

#define NS_PER_S INT64_C(1000000000)

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

int64_t clock_ns(void) {
    static int64_t per_s; /* is the same as long as the system runs */
    LARGE_INTEGER now;
    if (!per_s) {
        LARGE_INTEGER found;
        QueryPerformanceFrequency(&found);
        per_s = found.QuadPart;
    }
    QueryPerformanceCounter(&now);
    return now.QuadPart / per_s * NS_PER_S + now.QuadPart % per_s * NS_PER_S / per_s;
}

void sleep_ns(int64_t ns) {
    Sleep((DWORD)((ns + 999999) / 1000000));
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
