"""The sentences of what is found of applications, as `show.phrases` has them."""

from __future__ import annotations

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
    "thread-did-not-end": Phrase(
        "Processes of your application did not end by themselves: {count:plural thread} ({names}) still "
        "ran 2 s after the last transaction, and ended with their process. daemon=True lets a process end.",
        count=4,
        names=["poller"],
    ),
}
