"""The sentences of what is found of key-value loads, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import GRAVE, Phrase

PHRASES = {
    "where-processor": Phrase(
        "At {where}, operations wait for a processor {share:percent} of their time, more than for "
        "anything else. Use fewer processes, down to one per processor, to make operations shorter.",
        share=0.61,
        where="16 processes on 20 files",
    ),
    "where-slowest": Phrase(
        "Slowest 1% of the operations that took a lock, at {where}: {count} operations of "
        "{fastest_ns:duration} or longer. Their time: {parts}.[ {remedies:sentences}]",
        where="8 processes on 1 file",
        count=120,
        fastest_ns=31_000_000,
        parts=(Finding("slowest-behind", share=0.6, what="commits", whose="others"),),
        remedies=(Finding("remedy-fair"),),
    ),
    "slowest-behind": Phrase(
        "{share:percent} waiting for {what} of {whose}", share=0.6, what="commits", whose="others"
    ),
    "slowest-asleep": Phrase("{share:percent} asleep while the lock was free", share=0.3),
    "slowest-checkpoint": Phrase("{share:percent} in their own checkpoints", share=0.3),
    "slowest-sync": Phrase("{share:percent} in their own syncs", share=0.3),
    "slowest-own": Phrase("{share:percent} in their other work, including waits for a processor", share=0.3),
    "remedy-fair": Phrase("Use --busy fair to avoid the sleep."),
    "remedy-checkpointer": Phrase(
        "Use --checkpointer passive to checkpoint in a separate process; the WAL grows meanwhile."
    ),
    "remedy-syncs": Phrase(
        "To sync less, use {ways:or}.", ways=(Finding("way-batch"), Finding("way-normal"))
    ),
    "way-batch": Phrase("more rows per transaction (--batch)"),
    "way-normal": Phrase("--synchronous normal (a power failure can then lose the last commits)"),
    "checkpoint-starvation": Phrase(
        "Checkpoints starved at {where}. Up to {stuck} in a row left frames in the WAL and made no "
        "progress, with or without a busy result. {pinned?The pinned reader holds its snapshot. In your "
        "application, look for a transaction that stays open.|A reader keeps its snapshot open: find it "
        "and end its transaction sooner.}",
        where="8 processes on 1 file",
        stuck=12,
        pinned=True,
    ),
    "busy-checkpoints": Phrase(
        "{busy} of {made} {mode} checkpoints at {where} returned busy, after up to {longest_ns:duration}. "
        "A reader blocked them, or the write lock was taken. While such a checkpoint waits for a reader, "
        "it holds the write lock and nobody can write.",
        made=40,
        mode="RESTART",
        busy=7,
        where="8 processes on 1 file",
        longest_ns=512_000_000,
    ),
    "large-wal": Phrase(
        "A WAL grew to {largest:size} at {where}. That is over {times} times the {frames} pages at which "
        "SQLite checkpoints by default. {snapshot?The WAL cannot restart while a snapshot stays open: "
        "find the long reader.|}{passive?After a PASSIVE checkpoint the WAL restarts only if nobody has "
        "written meanwhile: use RESTART.|}{seldom?Checkpoint more often (--checkpoint-interval).|}{stays? "
        "Only a TRUNCATE checkpoint or PRAGMA journal_size_limit shrinks the file.|}",
        largest=85_000_000,
        where="8 processes on 1 file",
        times=4,
        frames=1000,
        snapshot=True,
        passive=False,
        seldom=False,
        stays=True,
    ),
    "usual-timeout": Phrase(
        "{count:plural operation} at {where} waited longer than {usual_s} s. With the usual busy timeout "
        'of {usual_s} s an application {again?could|would} have seen "database is locked": try '
        "--busy-timeout {usual_s}s.",
        count=3,
        usual_s=5,
        where="8 processes on 1 file",
        again=False,
    ),
    "usual-timeout-hidden": Phrase(
        "An operation at {where} waited for the whole window, up to {longest_ns:duration}. Use --duration "
        "{window_s}s to see whether it would wait longer than the usual busy timeout of {usual_s} s.",
        where="8 processes on 1 file",
        longest_ns=2_600_000_000,
        usual_s=5,
        window_s=20,
    ),
    "lost-updates": Phrase(
        "At read committed, a transaction that reads a row and then writes it overwrites changes made in "
        "between. Use SELECT ... FOR UPDATE (--begin immediate) to wait for them, or --isolation "
        "repeatable-read to refuse them.",
        rank=GRAVE,
    ),
    "given-up": Phrase(
        "At {where}, {count:plural operation} gave up after the busy timeout of {timeout}. That is up to "
        '{share:percent} of all (at {most}). An application sees "database is locked". The figures leave '
        "them out. Try {ways:or}.",
        timeout="500ms",
        count=12,
        where="4 and 8 processes on 1 file",
        share=0.02,
        most="8 processes on 1 file",
        ways=(Finding("way-timeout"), Finding("way-processes")),
    ),
    "given-up-at-server": Phrase(
        "At {where}, {count:plural operation} gave up after {timeout}. The figures leave them out. Try a "
        "longer --busy-timeout or fewer processes.",
        timeout="500ms",
        count=12,
        where="8 processes",
    ),
    "begun-again": Phrase(
        "Transactions retried at {where}: {refused} after a serialization failure, {locked} after a "
        "deadlock or an unavailable lock. An application must retry them itself.",
        where="8 processes",
        refused=71,
        locked=2,
    ),
    "stall": Phrase(
        "An operation of {where} took up to {longest_ns:duration} with no other process to wait for. A "
        "checkpoint or the disk delayed it.",
        where="1 process on 1 file",
        longest_ns=1_300_000_000,
    ),
    "busy-snapshot": Phrase(
        "Transactions retried at {where}: {count} after BUSY_SNAPSHOT[, {refused} after an immediate "
        "BUSY]. A deferred transaction that has read cannot wait for its turn to write: use BEGIN "
        "IMMEDIATE (--begin immediate).",
        count=71,
        refused=4,
        where="8 processes on 1 file",
    ),
}
