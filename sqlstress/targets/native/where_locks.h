/* Locks of one open database file: who waits, who holds, and since when. */
#ifndef SQLSTRESS_WHERE_LOCKS_H
#define SQLSTRESS_WHERE_LOCKS_H

#include "where_recorder.h"

typedef struct {
    int64_t file;
    int64_t begun;      /* of the transaction: its first attempt at a lock that counts; 0: none is under way */
    int64_t ended;      /* when it gave its last lock back; a checkpoint may still follow */
    int64_t wrote_from; /* when a lock was obtained; 0: it is not held */
    int64_t read_from;
    int64_t alone_from;
    int64_t checkpoint_from;
    int reads_wal; /* whether it holds one of the WAL's read locks */
    Stretch checkpoint;
} Locks;

/* Whether a checkpoint is under way: its writes and syncs are its own. */
int checkpointing(void);

/* Told after a lock was asked for, and before one is given back: so no two processes ever hold one at once. */
void wal_locked(Locks *locks, int slot, int refused);
void wal_unlocked(Locks *locks, int slot);

/* Told when one of the WAL's read locks was obtained or given back. */
void wal_reads(Locks *locks, int reads);

/* `level` is what was asked for, with a rollback journal; `before` is when that was. */
void rollback_locked(Locks *locks, int level, int64_t before, int refused);
void rollback_unlocked(Locks *locks, int level);

void locks_gave_up(void);

/* A statement begins. */
void locks_statement(void);

/* Something was written into a file. */
void locks_wrote(void);

/* Writes down the transaction that has ended last. */
void locks_settle(void);

/* The file is closed. */
void locks_close(Locks *locks);

#endif
