"""The sentences of a watch, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import ASIDE, GRAVE, Phrase

_PROCESS = Finding("watch-process", pid=2598, command="python manage.py import")
_FOR = Finding("watch-for", ns=304_000_000)
_READERS = Finding("watch-readers", first=_PROCESS, others=2)

PHRASES = {
    "watch-what": Phrase(
        "Watched {database} from outside for {took_ns:duration}: {samples} samples[, journal "
        "{journal}][, {commits:plural commit}].",
        database="app.db",
        took_ns=10_000_000_000,
        samples=1000,
        journal="WAL",
        commits=812,
    ),
    "watch-wal": Phrase(
        "WAL: at most {frames:plural frame} ({size:size})[, {checkpointed} of them in the database "
        "file at the end][; its file has {file:size}].",
        frames=8231,
        size=33_000_000,
        checkpointed=4,
        file=34_000_000,
    ),
    "watch-process": Phrase(
        "process {pid:plain}[ ({command})]{gone?, which has ended,|}",
        pid=2598,
        command="python app.py",
        gone=True,
    ),
    "watch-elsewhere": Phrase("a process of another container"),
    "watch-readers": Phrase("{first}[ and {others} more]", first=_PROCESS, others=2),
    "watch-for": Phrase("{ns:duration}", ns=304_000_000),
    "watch-below": Phrase("{ns:duration}", ns=20_000_000),
    "watch-held": Phrase(
        "^{process} held the write lock {share:percent} of the time, at most {longest} without a break.",
        process=_PROCESS,
        share=0.86,
        longest=_FOR,
    ),
    "watch-too-long": Phrase(
        "FAILED: {process} has held the write lock for {now_ns:duration}, longer than {limit:seconds}.",
        process=_PROCESS,
        now_ns=2_010_000_000,
        limit=2.0,
    ),
    "watch-free": Phrase(
        "Nobody was seen with the write lock.[ There were {commits:plural commit}, all too short to be "
        "seen.]",
        commits=12,
    ),
    "watch-closed": Phrase("Nobody had {database} open.", database="app.db"),
    "watch-no-sample": Phrase("Nothing was seen: the watch ended before its first sample."),
    "watch-long-write": Phrase(
        "^{process} {lasts?has kept|kept} the write lock for {longest_ns:duration} in one transaction. "
        'Writers with a shorter busy time-out get "database is locked". Commit after fewer rows, and keep '
        "network calls and long computations out of the transaction.",
        process=_PROCESS,
        longest_ns=4_200_000_000,
        lasts=True,
    ),
    "watch-often": Phrase(
        "^{process} takes the write lock again and again: {share:percent} of the time, at most "
        "{longest} each. A waiting writer sleeps up to 100 ms between two attempts and can miss every "
        "gap. Write several rows in each transaction, or pause between transactions.",
        process=_PROCESS,
        share=0.86,
        longest=_FOR,
    ),
    "watch-exclusive": Phrase(
        "^{process} has the database for itself (PRAGMA locking_mode=EXCLUSIVE): nobody else can read "
        "or write it.",
        process=_PROCESS,
    ),
    "watch-blocking-checkpoint": Phrase(
        "^{process} held the write lock during a checkpoint, {longest_ns:duration} at most: FULL, "
        "RESTART and TRUNCATE wait for readers with it. Use PASSIVE checkpoints, or give this "
        "connection a short busy time-out.",
        process=_PROCESS,
        longest_ns=2_000_000_000,
    ),
    "watch-pin": Phrase(
        "^{process} read in one transaction for {took_ns:duration}{before? or longer|}. {grew:plural "
        "frame} ({size:size}) committed after its frame {frame} {lasts?cannot|could not} be "
        "checkpointed, so the WAL grows. Fetch all rows or close the cursor, then commit or roll "
        "back.[ {more:plural other transaction} did the same.]",
        process=_READERS,
        took_ns=4_000_000_000,
        before=True,
        grew=8227,
        size=33_000_000,
        frame=4,
        lasts=True,
        more=1,
    ),
    "watch-pending": Phrase(
        "A writer that wanted to commit waited for readers {share:percent} of the time[ (readers: "
        "{readers})]. In WAL mode readers do not block writers: PRAGMA journal_mode=WAL.",
        share=0.2,
        readers=(_PROCESS,),
    ),
    "watch-gaps": Phrase(
        "The write lock was free {share:percent} of the time, and taken without a gap for up to "
        "{longest}. Set every busy time-out to more than that.",
        share=0.14,
        longest=_FOR,
    ),
    "watch-checkpoints": Phrase(
        "Checkpoints: {by:commas}.",
        by=(Finding("watch-checkpointer", process=_PROCESS, share=0.04, longest=_FOR),),
    ),
    "watch-checkpointer": Phrase(
        "{process} {share:percent} of the time, {longest} at most", process=_PROCESS, share=0.04, longest=_FOR
    ),
    "watch-hot-journal": Phrase(
        "A writer died in a transaction and left its rollback journal. The next program that opens the "
        "database rolls it back: keep the -journal file beside it.",
        rank=GRAVE,
    ),
    "watch-deleted": Phrase("The file was deleted after {at_ns:duration}.", at_ns=3_000_000_000),
    "watch-replaced": Phrase(
        "Another file took its place after {at_ns:duration}; the watch went on with that one.",
        at_ns=3_000_000_000,
    ),
    "watch-journal": Phrase(
        "The journal became {journal} after {at_ns:duration}.", at_ns=3_000_000_000, journal="wal"
    ),
    "watch-not-visible": Phrase(
        "Some locks belong to processes that are not visible here. Run sqlstress watch on the host to "
        "see them."
    ),
    "watch-partly": Phrase(
        "{share:percent} of the time nobody had the database open.", rank=ASIDE, share=0.2
    ),
    "watch-rest": Phrase("{count:processes} more held locks, for less time.", rank=ASIDE, count=12),
    # While it goes on, a line a second.
    "watch-line": Phrase(
        "{at:fixed 1}s: {state}[; {wal}][, {pin}]",
        at=12.0,
        state=Finding("watch-line-held", process=_PROCESS, now_ns=1_200_000_000),
        wal=Finding("watch-line-wal", frames=8231, checkpointed=4),
        pin=Finding("watch-line-pin", process=_READERS, took_ns=9_000_000_000),
    ),
    "watch-line-held": Phrase(
        "{process} holds the write lock for {now_ns:duration}", process=_PROCESS, now_ns=1.2e9
    ),
    "watch-line-free": Phrase("write lock free"),
    "watch-line-closed": Phrase("nobody has {database} open; waiting", database="app.db"),
    "watch-line-wal": Phrase(
        "WAL {frames:plural frame}, {checkpointed} checkpointed", frames=8231, checkpointed=4
    ),
    "watch-line-pin": Phrase("pinned for {took_ns:duration} by {process}", took_ns=9e9, process=_READERS),
}
