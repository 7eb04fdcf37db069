"""The sentences of what is found of key-value loads, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import GRAVE, Phrase

PHRASES = {
    "where-processor": Phrase(
        "At {where}, operations wait for a processor {share:percent} of their time, more than for "
        "anything else. Use fewer processes, down to one per processor, to make operations shorter."
    ),
    "where-slowest": Phrase(
        "Slowest 1% of the operations that took a lock, at {where}: {count:plural operation} of "
        "{fastest_ns:duration} or longer. Their time: {parts}.[ {remedies:sentences}]"
    ),
    "slowest-behind": Phrase("{share:percent} waiting for {what} of {whose}"),
    "slowest-asleep": Phrase("{share:percent} asleep while the lock was free"),
    "slowest-checkpoint": Phrase("{share:percent} in their own checkpoints"),
    "slowest-sync": Phrase("{share:percent} in their own syncs"),
    "slowest-own": Phrase("{share:percent} in their other work, including waits for a processor"),
    "remedy-sleep": Phrase("To sleep less, use {ways:or}."),
    "remedy-checkpointer": Phrase(
        "Use --checkpointer passive to checkpoint in a separate process; the WAL grows meanwhile."
    ),
    "remedy-syncs": Phrase("To sync less, use {ways:or}."),
    "way-batch": Phrase("more rows per transaction (--batch)"),
    "way-normal": Phrase("--synchronous normal (a power failure can then lose the last commits)"),
    "checkpoint-starvation": Phrase(
        "Checkpoints starved at {where}. Up to {stuck} in a row left frames in the WAL and made no "
        "progress, with or without a busy result. {pinned?The pinned reader holds its snapshot. In your "
        "application, look for a transaction that stays open.|A reader keeps its snapshot open: find it "
        "and end its transaction sooner.}"
    ),
    "busy-checkpoints": Phrase(
        "{busy} of {made:plural checkpoint} ({mode}) at {where} returned busy, after up to "
        "{longest_ns:duration}. A reader blocked them, or the write lock was taken. While such a checkpoint "
        "waits for a reader, it holds the write lock and nobody can write."
    ),
    "large-wal": Phrase(
        "A WAL grew to {largest:size} at {where}. That is over {times} times the {frames} pages at which "
        "SQLite checkpoints by default. {snapshot?The WAL cannot restart while a snapshot stays open: "
        "find the long reader.|}{passive?After a PASSIVE checkpoint the WAL restarts only if nobody has "
        "written meanwhile: use RESTART.|}{seldom?Checkpoint more often (--checkpoint-interval).|}{stays? "
        "Only a TRUNCATE checkpoint or PRAGMA journal_size_limit shrinks the file.|}"
    ),
    "usual-timeout": Phrase(
        "{count:plural operation} at {where} waited longer than {usual_s} s. With the usual busy timeout "
        'of {usual_s} s an application {again?could|would} have seen "database is locked": try '
        "--busy-timeout {usual_s}s."
    ),
    "usual-timeout-hidden": Phrase(
        "An operation at {where} waited for the whole window, up to {longest_ns:duration}. Use --duration "
        "{window_s}s to see whether it would wait longer than the usual busy timeout of {usual_s} s."
    ),
    "usual-timeout-likely": Phrase(
        'An operation may wait longer than {usual_s} s, the usual busy timeout, and fail with "database is '
        'locked". At {where}, {starved:processes} waited for the whole of an extra window of '
        "{window_s:seconds}, which is not in the table. "
        "Use --duration {enough_s}s to count such waits."
    ),
    "usual-timeout-no-sign": Phrase(
        "No sign of waits over {usual_s} s, the usual busy timeout: at {where}, the longest wait was "
        "{table_ns:duration}, and {extra_ns:duration} in an extra window of {window_s:seconds}."
    ),
    "usual-timeout-unclear": Phrase(
        "Cannot tell whether an operation would wait longer than {usual_s} s, the usual busy timeout. At "
        "{where}, the longest wait was {table_ns:duration} in the table's windows and {extra_ns:duration} "
        "in an extra window of {window_s:seconds}. Use --duration {enough_s}s."
    ),
    "p99-uneven": Phrase(
        "At {where}, 99% of all {kind}s took at most {all_ns:duration}. Shares were uneven: in the "
        "slowest process, p99 was {worst_ns:duration} (* in the table)."
    ),
    "lost-updates": Phrase(
        "At read committed, a transaction that reads a row and then writes it overwrites changes made in "
        "between. Use SELECT ... FOR UPDATE (--begin immediate) to wait for them, or --isolation "
        "repeatable-read to refuse them.",
        rank=GRAVE,
    ),
    "given-up": Phrase(
        '{count:plural operation} failed with "database is locked" at {where}[, {how}]. That is {most?up to '
        "|}{share:percent} of all[ (at {most})]. The figures leave them out.[ Try {ways:or}.]",
        rank=GRAVE,
    ),
    "given-up-at-server": Phrase(
        "At {where}, {count:plural operation} gave up after {timeout}. The figures leave them out. Try a "
        "longer --busy-timeout or fewer processes."
    ),
    "begun-again": Phrase(
        "Transactions retried at {where}: {refused} after a serialization failure, {locked} after a "
        "deadlock or an unavailable lock. An application must retry them itself."
    ),
    "stall": Phrase(
        "An operation of {where} took up to {longest_ns:duration} with no other process to wait for. A "
        "checkpoint or the disk delayed it."
    ),
    "busy-snapshot": Phrase(
        "Transactions retried at {where}: {count} after BUSY_SNAPSHOT[, {refused} after an immediate "
        "BUSY]. A deferred transaction that has read cannot wait for its turn to write: use BEGIN "
        "IMMEDIATE (--begin immediate)."
    ),
}
