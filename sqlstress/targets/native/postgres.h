/* What is used of libpq, by the addresses of the driver's own functions: none is linked or bundled.
 *
 * Source: PostgreSQL's documentation, chapter "libpq - C Library", and appendix A, "PostgreSQL Error Codes".
 */
#ifndef SQLSTRESS_POSTGRES_H
#define SQLSTRESS_POSTGRES_H

#include <stdint.h>

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;

enum { PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2 };
enum { PQTRANS_IDLE = 0 };
enum { PG_DIAG_SQLSTATE = 'C', PG_DIAG_MESSAGE_PRIMARY = 'M' };
#define SERIALIZATION_FAILURE "40001"
#define DEADLOCK_DETECTED "40P01"
#define LOCK_NOT_AVAILABLE "55P03"

/* result, name, parameters */
#define LIBPQ_ROUTINES(ROUTINE)                                                                               \
    ROUTINE(PGresult *, PQexec, (PGconn *, const char *))                                                     \
    ROUTINE(PGresult *, PQexecPrepared,                                                                       \
            (PGconn *, const char *, int, const char *const *, const int *, const int *, int))                \
    ROUTINE(int, PQresultStatus, (const PGresult *))                                                          \
    ROUTINE(char *, PQresultErrorField, (const PGresult *, int))                                              \
    ROUTINE(char *, PQerrorMessage, (const PGconn *))                                                         \
    ROUTINE(int, PQtransactionStatus, (const PGconn *))                                                       \
    ROUTINE(int, PQntuples, (const PGresult *))                                                               \
    ROUTINE(int, PQgetisnull, (const PGresult *, int, int))                                                   \
    ROUTINE(int, PQgetlength, (const PGresult *, int, int))                                                   \
    ROUTINE(char *, PQgetvalue, (const PGresult *, int, int))                                                 \
    ROUTINE(void, PQclear, (PGresult *))

#define LIBPQ_FIELD(result, name, parameters) result(*name) parameters;
typedef struct {
    LIBPQ_ROUTINES(LIBPQ_FIELD)
} Libpq;
#undef LIBPQ_FIELD

typedef enum { PREPARED_GET, PREPARED_PAIR, PREPARED_PUT, PREPARED_COUNT, PREPARED_SET_COUNT, PREPARED } Prepared;

typedef struct {
    int64_t number, sequence;
} Placed;

typedef struct {
    Libpq libpq;
    PGconn *connection; /* NULL: there is no server */
    const char **names; /* of the prepared statements, PREPARED for each bucket */
    int in_order;       /* whether batches take their locks in an order that all have in common */
    Placed *rows;       /* room for a batch */
} Server;

#endif
