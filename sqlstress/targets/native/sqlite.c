/* How the driver's SQLite is reached: it calls the entry point of an extension for each connection. */
#include "sqlite.h"

#include <stdlib.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

/* Connections are opened by one thread at a time, and only while somebody waits for them here. */
static Handed *handed;
static int handed_count, handed_room, handed_lost;

void sqlite_take(Sqlite *to, const Routine *table) {
#define TAKE(place, result, name, parameters) to->name = (result(*) parameters)table[place];
    SQLITE_ROUTINES(TAKE)
#undef TAKE
}

static int handed_grow(void) {
    int room = handed_room ? 2 * handed_room : 16;
    Handed *grown = realloc(handed, (size_t)room * sizeof *grown);
    if (!grown) return 0;
    handed = grown;
    handed_room = room;
    return 1;
}

/* The name is what SQLite makes of the file's, so that no binding has to be told it. */
EXPORTED int sqlite3_native_init(sqlite3 *db, char **message, const Routine *table) {
    (void)message;
    if (handed_count == handed_room && !handed_grow()) {
        handed_lost = 1;
        return SQLITE_OK; /* an error would take the driver's connection away */
    }
    handed[handed_count++] = (Handed){db, table};
    return SQLITE_OK;
}

int handed_take(Handed **list) {
    int count = handed_lost ? -1 : handed_count;
    *list = handed;
    handed = NULL;
    handed_count = handed_room = handed_lost = 0;
    return count;
}
