"""The sentences of what is found of key-value loads, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase

PHRASES = {
    "where-processor": Phrase(
        "{share:percent} of the time of an operation at {where} is waiting for a processor, more than "
        "anything else: with fewer processes, down to one for each processor, operations are shorter.",
        share=0.61,
        where="16 processes on 20 files",
    ),
    "where-slowest": Phrase(
        "Of the time of the slowest 1% of the operations that took a lock, at {where} ({count}, from "
        "{fastest_ns:duration} on): {parts}.[ {remedies:sentences}]",
        where="8 processes on 1 file",
        count=120,
        fastest_ns=31_000_000,
        parts=(Finding("slowest-behind", share=0.6, what="commits", whose="others"),),
        remedies=(Finding("remedy-fair"),),
    ),
    "slowest-behind": Phrase(
        "{share:percent} behind {what} of {whose}", share=0.6, what="commits", whose="others"
    ),
    "slowest-asleep": Phrase("{share:percent} asleep while the lock was free", share=0.3),
    "slowest-checkpoint": Phrase("{share:percent} in checkpoints of their own", share=0.3),
    "slowest-sync": Phrase("{share:percent} in syncs of their own", share=0.3),
    "slowest-own": Phrase(
        "{share:percent} in the rest of their own work, with waiting for a processor", share=0.3
    ),
    "remedy-fair": Phrase("--busy fair takes the sleep away."),
    "remedy-checkpointer": Phrase(
        "A process of its own can checkpoint in their place (--checkpointer passive), while the WAL grows."
    ),
    "remedy-syncs": Phrase("Fewer syncs: {ways:or}.", ways=(Finding("way-batch"), Finding("way-normal"))),
    "way-batch": Phrase("more rows in a transaction (--batch)"),
    "way-normal": Phrase("--synchronous normal, which can lose the last commits when the power fails"),
    "checkpoint-starvation": Phrase(
        "Checkpoints starved at {where}: up to {stuck} in a row left frames in the WAL and got no further, "
        "whether SQLite answered busy or not. "
        "{pinned?The pinned reader holds its snapshot; elsewhere, find who stays in a transaction."
        "|Somebody stays in a snapshot: find the long reader, and end its transaction sooner.}",
        where="8 processes on 1 file",
        stuck=12,
        pinned=True,
    ),
    "busy-checkpoints": Phrase(
        "Of {made} {mode} checkpoints {busy} answered busy at {where}, after up to {longest_ns:duration}: a "
        "reader was in the way, or the write lock taken. While such a checkpoint waits for a reader it holds "
        "that lock, and nobody can write.",
        made=40,
        mode="RESTART",
        busy=7,
        where="8 processes on 1 file",
        longest_ns=512_000_000,
    ),
    "large-wal": Phrase(
        "A WAL grew to {largest:size} at {where}: over {times} times the {frames} pages at which SQLite "
        "would checkpoint by itself. "
        "{snapshot?It can't begin anew while a snapshot stays open: find the long reader.|}"
        "{passive?After PASSIVE it begins anew only if nobody has written meanwhile: use RESTART.|}"
        "{seldom?Checkpoint more often (--checkpoint-interval).|}"
        "{stays? Only a TRUNCATE checkpoint or PRAGMA journal_size_limit makes the file small again.|}",
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
        "{count:plural operation} waited longer than {usual_s} s, at {where}. An application "
        "with the usual busy "
        'time-out of {usual_s} s {again?could|would} have seen "database is locked": '
        "try --busy-timeout {usual_s}s.",
        count=3,
        usual_s=5,
        where="8 processes on 1 file",
        again=False,
    ),
    "usual-timeout-hidden": Phrase(
        "An operation at {where} waited for the whole window, up to {longest_ns:duration}. "
        "Whether it would have "
        "waited longer than the usual busy time-out of {usual_s} s, --duration {window_s}s shows.",
        where="8 processes on 1 file",
        longest_ns=2_600_000_000,
        usual_s=5,
        window_s=20,
    ),
    "lost-updates": Phrase(
        "At read committed, who reads a row and then writes it overwrites what others wrote in between: "
        "SELECT ... FOR UPDATE (--begin immediate) waits for them, --isolation repeatable-read refuses."
    ),
    "given-up": Phrase(
        "Operations given up after the busy time-out of {timeout}: {count}, at {where}; up to "
        "{share:percent} of "
        'all (at {most}). An application sees them as "database is locked", and they count in no figure: '
        "try {ways:or}.",
        timeout="500ms",
        count=12,
        where="4 and 8 processes on 1 file",
        share=0.02,
        most="8 processes on 1 file",
        ways=(Finding("way-timeout"), Finding("way-processes")),
    ),
    "given-up-at-server": Phrase(
        "Operations given up after {timeout}: {count}, at {where}. They count in no figure: "
        "try a longer --busy-timeout or fewer processes.",
        timeout="500ms",
        count=12,
        where="8 processes",
    ),
    "begun-again": Phrase(
        "Transactions begun again, at {where}: {refused} after a serialization failure, {locked} after a "
        "deadlock or a lock that stayed taken. An application has to begin them again itself.",
        where="8 processes",
        refused=71,
        locked=2,
    ),
    "stall": Phrase(
        "With nobody else to wait for, an operation of {where} took up to {longest_ns:duration}: "
        "a checkpoint or "
        "the disk held it up.",
        where="1 process on 1 file",
        longest_ns=1_300_000_000,
    ),
    "busy-snapshot": Phrase(
        "Transactions begun again after BUSY_SNAPSHOT: {count}[, and after a BUSY that came at "
        "once: {refused}], "
        "at {where}. A deferred transaction that has read can't wait for its turn to write: "
        "use BEGIN IMMEDIATE (--begin immediate).",
        count=71,
        refused=4,
        where="8 processes on 1 file",
    ),
}
