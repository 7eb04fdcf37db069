"""The sentences of what is found of applications, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import GRAVE, Phrase

PHRASES = {
    "busy-timeout": Phrase(
        "The busy timeout of connections is {timeout}[, although they were opened with {opened_with}]. "
        "{waits?A checkpoint or a larger transaction can take longer. Use several seconds.|SQLite does "
        'not wait for a lock but returns "database is locked" at once. Use several seconds: timeout=5 or '
        "PRAGMA busy_timeout.}"
    ),
    "journal-mode": Phrase(
        "{on_disk?The database uses a rollback journal: readers block commits, and commits block readers. "
        "Run PRAGMA journal_mode=WAL once to let both proceed.|There is no journal on disk (journal_mode "
        "OFF or MEMORY): a process that dies during a transaction can corrupt the database. Use WAL.}"
    ),
    "synchronous-off": Phrase(
        "synchronous is OFF: a power failure can corrupt the database. Use WAL with NORMAL to keep it sound."
    ),
    "foreign-keys": Phrase(
        "Tables declare foreign keys, but foreign keys are off. Run PRAGMA foreign_keys=ON in each "
        "connection."
    ),
    "settings-differ": Phrase("The connections differ: {kinds} combinations of settings were seen."),
    "other-database": Phrase("The app also opened databases that no check reads: {names}.", rank=GRAVE),
    "raised": Phrase(
        "{transaction?|Raised: }[{transaction} raised ]{what}[ (as {kind})], {count:plural time}["
        " ({share:percent} of its calls)][: {example}][ ({meaning})].[ It failed {how}.][ {cure}]",
        rank=GRAVE,
    ),
    "raised-more": Phrase("The JSON report has {kinds:plural more kind} of exceptions."),
    "thread-raised": Phrase(
        "Threads ended by {what}[ (as {of})], {count:plural time}[: {example}]. No transaction failed "
        "because of it."
    ),
    "logged-error": Phrase("Logged at ERROR by {of}, {count:plural time}[: {example}]."),
    "raised-busy": Phrase("a lock was not available"),
    "raised-busy-snapshot": Phrase("its snapshot was out of date when it wrote; no timeout helps"),
    "raised-busy-recovery": Phrase("another process recovers the WAL; a timeout helps"),
    "raised-shared-cache": Phrase(
        "another connection with cache=shared in the same process uses the table; no timeout helps: leave "
        "out cache=shared"
    ),
    "cure-open-select": Phrase(
        "{seen?No transaction was seen to read before it writes. |}Check for a SELECT of the same connection "
        "that was not read to its end: fetch all rows, or close the cursor. A longer timeout does not help."
    ),
    "raised-locked": Phrase("another connection of the same process holds a lock"),
    "raised-serialization": Phrase("others changed what it had read; retry the whole transaction"),
    "raised-deadlock": Phrase("each waited for a lock of another; retry the whole transaction"),
    "raised-lock-timeout": Phrase("a lock was not available, at once or after lock_timeout"),
    "synchronous-commit-off": Phrase(
        "synchronous_commit is off on connections: a power failure can lose the last commits."
    ),
    "other-places": Phrase("The app also used places that no check reads: {names}.", rank=GRAVE),
    "sessions-differ": Phrase(
        "The connections to PostgreSQL differ: {kinds} combinations of settings were seen."
    ),
    "thread-did-not-end": Phrase(
        "Your application's processes did not exit by themselves. {count:plural thread} ({names}) still "
        "ran 2 s after the last transaction and ended with their process. Use daemon=True to let a "
        "process exit."
    ),
}
