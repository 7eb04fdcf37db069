"""The sentences of a watch, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import ASIDE, GRAVE, Phrase

PHRASES = {
    "watch-what": Phrase(
        "Watched {database} from outside for {took_ns:duration}: {samples:plural sample}[, journal "
        "{journal}][, {commits:plural commit}]."
    ),
    "watch-wal": Phrase(
        "WAL at the end: {frames:plural live frame} ({size:size})[, {share:percent} of them "
        "checkpointed][; file size {file:size}]. At most {most:plural live frame} ({most_size:size})."
    ),
    "watch-process": Phrase("process {pid:plain}[ ({command})]{gone?, which has ended,|}"),
    "watch-elsewhere": Phrase("a process of another container"),
    "watch-readers": Phrase("{first}[ and {others} more]"),
    "watch-held": Phrase(
        "^{process} held the write lock {share:percent} of the time, at most {longest} without a break."
    ),
    "watch-too-long": Phrase(
        "FAILED: {process} has held the write lock for {now_ns:duration}, longer than {limit:seconds}."
    ),
    "watch-free": Phrase(
        "Nobody was seen with the write lock.[ There were {commits:plural commit}, all too short to be seen.]"
    ),
    "watch-closed": Phrase("No process had {database} open."),
    "watch-idle": Phrase("No lock was seen. {openers:processes} had the database open."),
    "watch-unseen": Phrase(
        "No lock was seen on {database}.[ The open files of {hidden:processes} cannot be read: run sqlstress "
        "watch as root.]"
    ),
    "watch-lost-deleted": Phrase(
        "FAILED: {process} is writing into a deleted WAL. Its commits are invisible to all other processes "
        "and will be lost. Save its data through its own connection, then restart it. The usual cause: "
        "it opened and closed the database file by other means (a copy, a hash, open().close(), a "
        "second SQLite library), which dropped its locks.",
        rank=GRAVE,
    ),
    "watch-deleted-wal": Phrase(
        "^{process} has a deleted WAL open: what it commits next will be lost. Restart it. The usual "
        "cause: it opened and closed the database file by other means (a copy, a hash, open().close(), "
        "a second SQLite library), which dropped its locks.",
        rank=GRAVE,
    ),
    "watch-lost-other": Phrase(
        "FAILED: {process} is writing to this file under another name, {name}, with another WAL. It and the "
        "users of {database} do not see each other's commits, and some will be lost. Use one name in all "
        "programs.",
        rank=GRAVE,
    ),
    "watch-other-wal": Phrase(
        "^{process} has this file open under another name, {name}, with another WAL. It and the users of "
        "{database} do not see each other's commits. Use one name in all programs.",
        rank=GRAVE,
    ),
    "watch-names": Phrase(
        "The file {links?has several names (hard links)|is a mount point of its own}[: {links}]. Each "
        "name has its own WAL, and programs that use different names lose commits. Use one name, and "
        "mount the folder instead of the file.",
        rank=GRAVE,
    ),
    "watch-no-sample": Phrase("Nothing was seen: the watch ended before its first sample."),
    "watch-often": Phrase(
        "^{process} takes the write lock again and again: {share:percent} of the time, at most "
        "{longest} each. A waiting writer sleeps up to 100 ms between two attempts and can miss every "
        "gap. Write several rows in each transaction, or pause between transactions."
    ),
    "watch-crowd": Phrase(
        "{count:processes} like {command} held the write lock {share:percent} of the time together. Use "
        "fewer of them, or write several rows in each transaction."
    ),
    "watch-exclusive": Phrase(
        "^{process} has the database for itself (PRAGMA locking_mode=EXCLUSIVE): nobody else can read "
        "or write it."
    ),
    "watch-blocking-checkpoint": Phrase(
        "^{process} held the write lock during a checkpoint, {longest_ns:duration} at most: FULL, "
        "RESTART and TRUNCATE keep it while they wait for readers. Use PASSIVE checkpoints, or give this "
        "connection a short busy timeout."
    ),
    "watch-pin": Phrase(
        "^{process} read in one transaction for {took_ns:duration}{before? or longer|}. The {grew:plural "
        "frame} ({size:size}) after frame {frame} {lasts?cannot|could not} be checkpointed, so the WAL "
        "{lasts?grows|grew}. Fetch all rows or close the cursor, then commit or roll "
        "back.[ {more:plural other transaction} did the same.]"
    ),
    "watch-pending": Phrase(
        "A writer that wanted to commit waited for readers {share:percent} of the time[ (readers: "
        "{readers})]. In WAL mode readers do not block writers: PRAGMA journal_mode=WAL."
    ),
    "watch-gaps": Phrase(
        "The write lock was free {share:percent} of the time. It was once taken for {longest} without "
        "a gap. Writers do not queue, so one can miss many turns: set every busy timeout much longer than "
        "that."
    ),
    "watch-checkpoints": Phrase("Checkpoints: {by:commas}."),
    "watch-checkpointer": Phrase("{process} {share:percent} of the time, {longest} at most"),
    "watch-hot-journal": Phrase(
        "A writer died in a transaction and left its rollback journal. The next program that opens the "
        "database rolls it back: keep the -journal file beside it.",
        rank=GRAVE,
    ),
    "watch-deleted": Phrase("The file was deleted after {at_ns:duration}."),
    "watch-replaced": Phrase(
        "Another file took its place after {at_ns:duration}; the watch went on with that one."
    ),
    "watch-journal": Phrase("The journal changed to {journal} after {at_ns:duration}."),
    "watch-not-visible": Phrase(
        "Some locks belong to processes that are not visible here. Run sqlstress watch on the host to "
        "see them."
    ),
    "watch-partly": Phrase("{share:percent} of the time no process had the database open.", rank=ASIDE),
    "watch-rest": Phrase("Also, {count:processes} held locks for less time.", rank=ASIDE),
    # While it goes on, a line a second.
    "watch-line": Phrase("{at:fixed 1}s: {state}[; {wal}][, {pin}]"),
    "watch-line-held": Phrase("{process} holds the write lock for {now_ns:duration}"),
    "watch-line-free": Phrase("write lock free"),
    "watch-line-lost": Phrase("{process} is writing into another WAL, which the others do not see"),
    "watch-line-closed": Phrase("no process has {database} open; waiting"),
    "watch-line-wal": Phrase("WAL {frames:plural frame}, {checkpointed} checkpointed"),
    "watch-line-pin": Phrase("pinned for {took_ns:duration} by {process}"),
}
