"""The sentences of what is found of applications, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase

PHRASES = {
    "busy-timeout": Phrase(
        "The busy time-out of connections is {timeout}[, though it was opened with {opened_with}]: "
        "{waits?a checkpoint or a larger transaction can take longer. Give it seconds."
        '|SQLite does not wait for a lock, and answers "database is locked" at once. '
        "Give it seconds: timeout=5, or PRAGMA busy_timeout.}",
        timeout="200ms",
        waits=True,
        opened_with="5s",
    ),
    "deferred-upgrade": Phrase(
        "Transactions begin DEFERRED, read, and then write: when another process wrote meanwhile, SQLite "
        'answers "database is locked" at once, whatever the time-out is. Begin with BEGIN IMMEDIATE.'
    ),
    "journal-mode": Phrase(
        "{on_disk?The journal is a rollback journal: who reads keeps others from committing, and who commits "
        "keeps others from reading. PRAGMA journal_mode=WAL, once, lets both go on."
        "|There is no journal on disk (journal_mode OFF or MEMORY): a process that dies amid a transaction "
        "can corrupt the database. Use WAL.}",
        on_disk=True,
    ),
    "synchronous-off": Phrase(
        "synchronous is OFF: a power failure can corrupt the database. With WAL, NORMAL keeps it sound."
    ),
    "foreign-keys": Phrase(
        "Tables declare foreign keys, and they are off: PRAGMA foreign_keys=ON, in each connection."
    ),
    "settings-differ": Phrase("The connections differ: {kinds} kinds of settings were seen.", kinds=2),
    "other-database": Phrase(
        "The app opened other databases too, where no check looks: {names}.", names=["/tmp/other.db"]
    ),
    "raised": Phrase(
        "{transaction?|Raised: }[{transaction} raised ]{what}[ (as {kind})], {count:plural time}[: {example}]"
        "[ ({meaning})].",
        transaction="transfer",
        what="SQLITE_BUSY",
        kind="sqlalchemy.exc.OperationalError",
        count=12,
        example="database is locked",
        meaning=Finding("raised-busy"),
    ),
    "raised-more": Phrase("And {kinds} kinds of exceptions more: see the JSON report.", kinds=2),
    "raised-busy": Phrase("a lock was not free, at once or after the time-out"),
    "raised-busy-snapshot": Phrase(
        "what it had read was out of date when it wrote: no time-out helps, BEGIN IMMEDIATE does"
    ),
    "raised-locked": Phrase("another connection of the same process holds a lock"),
    "raised-serialization": Phrase("others changed what it had read: it is to be begun again, as a whole"),
    "raised-deadlock": Phrase("each waited for a lock of another's: it is to be begun again, as a whole"),
    "raised-lock-timeout": Phrase("a lock was not free, at once or after lock_timeout"),
    "synchronous-commit-off": Phrase(
        "synchronous_commit is off on connections: a power failure can lose the last commits."
    ),
    "other-places": Phrase(
        "The app used other places too, where no check looks: {names}.", names=["another schema"]
    ),
    "sessions-differ": Phrase(
        "The connections to PostgreSQL differ: {kinds} kinds of settings were seen.", kinds=2
    ),
    "thread-did-not-end": Phrase(
        "Processes of your application did not end by themselves: {count:plural thread} ({names}) still "
        "ran 2 s after the last transaction, and ended with their process. daemon=True lets a process end.",
        count=4,
        names=["poller"],
    ),
}
