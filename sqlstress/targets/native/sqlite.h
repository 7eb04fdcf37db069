/* The functions of SQLite that the loop uses, from the driver's own table of functions: no SQLite is linked or
 * bundled.
 *
 * SQLite passes an sqlite3_api_routines to a loadable extension: a struct of function pointers. New pointers are
 * only added at its end, so that the position of a function never changes.
 *
 * Source: https://www.sqlite.org/loadext.html, and the comment on this struct in sqlite3ext.h. */
#ifndef SQLSTRESS_SQLITE_H
#define SQLSTRESS_SQLITE_H

#include <stdint.h>

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef void (*Routine)(void);

/* Source of the numbers: https://www.sqlite.org/rescode.html and https://www.sqlite.org/c3ref/c_blob.html */
enum { SQLITE_OK = 0, SQLITE_ERROR = 1, SQLITE_BUSY = 5, SQLITE_NOMEM = 7, SQLITE_ROW = 100, SQLITE_DONE = 101, SQLITE_BUSY_SNAPSHOT = 517 };
enum { SQLITE_INTEGER = 1, SQLITE_TEXT = 3, SQLITE_BLOB = 4, SQLITE_NULL = 5 };
#define SQLITE_STATIC ((void (*)(void *))0)

/* Position in sqlite3_api_routines, type of the result, name, parameters. */
#define SQLITE_ROUTINES(ROUTINE)                                                                    \
    ROUTINE(2, int, bind_blob, (sqlite3_stmt *, int, const void *, int, void (*)(void *)))          \
    ROUTINE(5, int, bind_int64, (sqlite3_stmt *, int, int64_t))                                     \
    ROUTINE(10, int, bind_text, (sqlite3_stmt *, int, const char *, int, void (*)(void *)))         \
    ROUTINE(19, const void *, column_blob, (sqlite3_stmt *, int))                                   \
    ROUTINE(20, int, column_bytes, (sqlite3_stmt *, int))                                           \
    ROUTINE(29, int64_t, column_int64, (sqlite3_stmt *, int))                                       \
    ROUTINE(38, int, column_type, (sqlite3_stmt *, int))                                            \
    ROUTINE(53, const char *, errmsg, (sqlite3 *))                                                  \
    ROUTINE(57, int, finalize, (sqlite3_stmt *))                                                    \
    ROUTINE(60, int, get_autocommit, (sqlite3 *))                                                   \
    ROUTINE(67, int, libversion_number, (void))                                                     \
    ROUTINE(77, int, reset, (sqlite3_stmt *))                                                        \
    ROUTINE(94, int, step, (sqlite3_stmt *))                                                       \
    ROUTINE(116, int, prepare_v2, (sqlite3 *, const char *, int, sqlite3_stmt **, const char **))   \
    ROUTINE(166, int, extended_errcode, (sqlite3 *))

#define ROUTINE_FIELD(place, result, name, parameters) result(*name) parameters;
typedef struct {
    SQLITE_ROUTINES(ROUTINE_FIELD)
} Sqlite;
#undef ROUTINE_FIELD

/* A driver's connection and table of functions, as SQLite passed them to the extension. */
typedef struct {
    sqlite3 *db;
    const Routine *table;
} Handed;

/* Copy the functions that the loop uses out of a table of functions. */
void sqlite_take(Sqlite *to, const Routine *table);

/* Point *list at the connections that SQLite has passed since the last call; return their number. */
int handed_take(const Handed **list);

#define TRY(call)                             \
    do {                                      \
        int code_ = (call);                   \
        if (code_ != SQLITE_OK) return code_; \
    } while (0)

#endif
