/* The key-value loop with nothing between it and SQLite: the upper limit for all other loops.
 *
 * The source has two builds:
 *   cc climit.c -lsqlite3                     a program that is one worker process
 *   cc -DCLIMIT_EXTENSION -shared climit.c    an extension with an SQL function that runs the loop inside the
 *                                             SQLite library that loads it
 *
 * The database must exist and have the keys 0 to key_space - 1. The loop counts the operations that end in
 * [t0 + warmup, t0 + warmup + duration) of the monotonic clock that all processes share.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef CLIMIT_EXTENSION
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1
#else
#include <dlfcn.h>
#include <sqlite3.h>
#endif

#include "../sqlstress/targets/native/clock.c" /* the clock and the allocator of the native loop */

#define POLL_NS INT64_C(2000000)
#define BUSY_TIMEOUT_MS 60000
#define RESULT_LATE (-1)

typedef struct {
    const char *path;
    double read_ratio;
    int64_t key_space;
    const char *synchronous;
    int64_t warmup_ns, duration_ns;
    uint64_t seed; /* different for each worker, because each value contains it */
} Load;

typedef struct {
    sqlite3 *db;
    sqlite3_stmt *get, *replace;
    int64_t value; /* last value written */
    uint64_t random;
} Session;

typedef struct {
    int64_t counted;      /* number of operations that ended inside the window */
    int64_t done, cpu_ns; /* number of all operations, and their processor time */
} Result;

static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void wait_until(int64_t moment) {
    int64_t left = moment - POLL_NS - clock_ns();
    if (left > 0) sleep_ns(left);
    while (clock_ns() < moment) {
    }
}

/* Return the state for a seed, by the finisher of splitmix64: similar seeds must not give similar streams. */
static uint64_t scramble(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) | 1;
}

/* Return a random number of 32 bits: the upper half of xorshift64*. */
static uint64_t draw(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * UINT64_C(0x2545f4914f6cdd1d)) >> 32;
}

static void session_close(Session *s) {
    sqlite3_finalize(s->get);
    sqlite3_finalize(s->replace);
    sqlite3_close(s->db);
}

/* Return SQLite's result code. The flags are those of the bindings, so that both sides pay for the mutexes. */
static int session_open(Session *s, const Load *load) {
    char pragma[64];
    heap_keep();
    memset(s, 0, sizeof *s);
    s->random = scramble(load->seed);
    /* Values as in a trial: each worker has its own range, and writes each value once. */
    s->value = INT64_C(1) << 62 | (int64_t)(load->seed % 64 + 1) << 36;
    int rc = sqlite3_open_v2(load->path, &s->db, SQLITE_OPEN_READWRITE, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_busy_timeout(s->db, BUSY_TIMEOUT_MS);
    if (rc == SQLITE_OK) rc = sqlite3_exec(s->db, "PRAGMA journal_mode=wal", NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
        snprintf(pragma, sizeof pragma, "PRAGMA synchronous=%.16s", load->synchronous);
        rc = sqlite3_exec(s->db, pragma, NULL, NULL, NULL);
    }
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(s->db, "SELECT value FROM kv WHERE key = ?", -1, &s->get, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(s->db, "REPLACE INTO kv (key, value) VALUES (?, ?)", -1, &s->replace, NULL);
    return rc;
}

static int get(sqlite3_stmt *stmt, int64_t key, int64_t *value) {
    sqlite3_bind_int64(stmt, 1, key);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) *value = sqlite3_column_int64(stmt, 0);
    int reset = sqlite3_reset(stmt);
    return rc == SQLITE_ROW ? reset : (rc == SQLITE_DONE ? SQLITE_NOTFOUND : rc);
}

static int replace(sqlite3_stmt *stmt, int64_t key, int64_t value) {
    sqlite3_bind_int64(stmt, 1, key);
    sqlite3_bind_int64(stmt, 2, value);
    int rc = sqlite3_step(stmt);
    int reset = sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? reset : rc;
}

/* Return SQLITE_OK and the result, RESULT_LATE if the window was already open, or SQLite's error code. */
static int measure(Session *s, const Load *load, int64_t t0, Result *result) {
    const uint64_t gets_below = (uint64_t)(load->read_ratio * 4294967296.0);
    const int64_t begin = t0 + load->warmup_ns, end = begin + load->duration_ns;
    int64_t value_read = 0;

    if (clock_ns() >= begin) return RESULT_LATE;
    wait_until(t0);
    *result = (Result){.cpu_ns = -cpu_ns()};
    for (;;) {
        int64_t key = (int64_t)((draw(&s->random) * (uint64_t)load->key_space) >> 32);
        int rc = draw(&s->random) < gets_below ? get(s->get, key, &value_read) : replace(s->replace, key, ++s->value);
        if (rc != SQLITE_OK) return rc;
        int64_t now = clock_ns();
        result->done++;
        if (now >= end) break;
        result->counted += now >= begin;
    }
    result->cpu_ns += cpu_ns();
    return SQLITE_OK;
}

static const char *explain(const Session *s, int rc) {
    if (rc == RESULT_LATE) return "late: the window was open before the loop began";
    if (rc == SQLITE_NOTFOUND) return "a preloaded key was not found";
    return sqlite3_errmsg(s->db);
}

#define RESULT_FORMAT "%" PRId64 " %" PRId64 " %" PRId64

#ifdef CLIMIT_EXTENSION

static Session session; /* the session of the process, opened by the first call */

/* The SQL function climit(path, read_ratio, key_space, synchronous, t0_ns, warmup_ns, duration_ns, seed). It returns
 * the result as "counted done cpu_ns". If t0_ns is 0, it opens the session instead; if negative, it closes it. */
static void climit(sqlite3_context *context, int argc, sqlite3_value **argv) {
    Result result = {0, 0, 0};
    char text[64];
    (void)argc;
    Load load = {
        .path = (const char *)sqlite3_value_text(argv[0]),
        .read_ratio = sqlite3_value_double(argv[1]),
        .key_space = sqlite3_value_int64(argv[2]),
        .synchronous = (const char *)sqlite3_value_text(argv[3]),
        .warmup_ns = sqlite3_value_int64(argv[5]),
        .duration_ns = sqlite3_value_int64(argv[6]),
        .seed = (uint64_t)sqlite3_value_int64(argv[7]),
    };
    int64_t t0 = sqlite3_value_int64(argv[4]);
    int rc = SQLITE_OK;
    if (t0 == 0)
        rc = session_open(&session, &load);
    else if (t0 < 0)
        session_close(&session);
    else
        rc = measure(&session, &load, t0, &result);
    snprintf(text, sizeof text, RESULT_FORMAT, result.counted, result.done, result.cpu_ns);
    if (rc == SQLITE_OK)
        sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
    else
        sqlite3_result_error(context, explain(&session, rc), -1);
}

int sqlite3_climit_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
    (void)message;
    SQLITE_EXTENSION_INIT2(api);
    return sqlite3_create_function(db, "climit", 8, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, climit, NULL, NULL);
}

#else

static int fail(const char *text) {
    fprintf(stderr, "%s\n", text);
    return 1;
}

/* Print the SQLite of this program: version, check-in, file. */
static int identify(void) {
    Dl_info library;
    int has_file = dladdr((void *)sqlite3_libversion, &library) && library.dli_fname;
    printf("%s\n%s\n%s\n", sqlite3_libversion(), sqlite3_sourceid(), has_file ? library.dli_fname : "");
    return 0;
}

/* Run climit PATH READ_RATIO KEY_SPACE SYNCHRONOUS WARMUP_NS DURATION_NS SEED: print "ready". For each t0 on the
 * standard input, print a result. */
int main(int argc, char **argv) {
    Session session;
    int64_t t0 = 0;
    Result result;
    if (argc == 2 && !strcmp(argv[1], "--library")) return identify();
    if (argc != 8) return fail("usage: climit PATH READ_RATIO KEY_SPACE SYNCHRONOUS WARMUP_NS DURATION_NS SEED");
    Load load = {argv[1], atof(argv[2]), atoll(argv[3]), argv[4], atoll(argv[5]), atoll(argv[6]),
                 strtoull(argv[7], NULL, 10)};
    if (session_open(&session, &load) != SQLITE_OK) return fail(sqlite3_errmsg(session.db));
    puts("ready");
    fflush(stdout);
    while (scanf("%" SCNd64, &t0) == 1) {
        int rc = measure(&session, &load, t0, &result);
        if (rc != SQLITE_OK) return fail(explain(&session, rc));
        printf(RESULT_FORMAT "\n", result.counted, result.done, result.cpu_ns);
        fflush(stdout);
    }
    session_close(&session);
    return 0;
}

#endif
