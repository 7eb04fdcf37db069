"""The sentences of what is found of commands, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import ASIDE, GRAVE, Phrase

PHRASES = {
    "copy-unused": Phrase(
        "No command opened the copy of {database}: these are not figures of your database. Write {variable} "
        "in the command, or read the variable SQLSTRESS_DATABASE.",
        rank=GRAVE,
    ),
    "original-changed": Phrase(
        "{database} itself changed during the load ({changes}), by a program that was not seen. If it is "
        "your command, write {variable} in it, or read the variable SQLSTRESS_DATABASE.",
        rank=GRAVE,
    ),
    "original-in-use": Phrase(
        "{database} itself changed during the load ({changes}), while process {process} had it open.",
        rank=ASIDE,
    ),
    "exit-codes": Phrase(
        "{failed} of {commands:plural command}, including the warm-up, did not exit with 0. Exit codes, with "
        "their counts: {codes:counts}. They count only in the columns failed and longest."
    ),
    "stderr": Phrase(
        "On standard error, the first of each kind with its count: {messages:quoted}[; the JSON report "
        "has {more:plural more kind}]."
    ),
    "answers": Phrase(
        "Answers other than ok, the first of each kind with its count: {messages:quoted}[; the JSON report "
        "has {more:plural more kind}]."
    ),
    "program-ended": Phrase(
        "The program ended {count:plural time} before its input did, and was started again. Exit codes, with "
        "their counts: {codes:counts}."
    ),
    "program-stayed": Phrase(
        "The program was ended {count:plural time}: it still ran 2 s after the end of its input or its "
        "output. Let it exit when its input ends."
    ),
    "starting-hides-races": Phrase(
        "Starting and ending takes {share:percent} of a command's time, so commands rarely use the database "
        "at the same time and races stay hidden. {inner?Raise --inner.|Let the program read lines and use "
        "--lines; if it cannot, repeat the work within a command and use --inner N.}",
        rank=GRAVE,
    ),
    "timed-out": Phrase(
        "{count} {flush?lines|commands} at {where} took longer than {limit_s} s; {flush?the program was "
        "started again, and they|they were ended and} count as failed. {flush?The program may not flush its "
        "output, or wait for a lock|They may be waiting for input or a lock}; raise --timeout."
    ),
    "left-behind": Phrase(
        "At {where}, sqlstress ended processes that {escaped?no worker could reach any more (it was killed, "
        "or they left its group)|commands left running} ({count} in all). Make each command wait for the "
        "processes it starts."
    ),
    "locked-soon": Phrase(
        '{count:plural operation} failed with "database is locked"[, {how}]. Without a busy timeout a '
        "program fails at once: set it first on every connection, before PRAGMA journal_mode (sqlite3: "
        "-cmd '.timeout 5000'). If the program has a longer timeout, it was not waited for: a transaction "
        "read before it wrote (use BEGIN IMMEDIATE), or a SELECT was still open. The output does not tell "
        "which.",
        rank=GRAVE,
    ),
    "locked-long": Phrase(
        '{count:plural operation} failed with "database is locked"[, {how}], probably after the whole busy '
        "timeout. Use --where to see which command holds the write lock, and for how long.",
        rank=GRAVE,
    ),
    "locked-alone": Phrase(
        '{count:plural operation} failed with "database is locked" at 1 process[, {how}]. No other process '
        "was there to hold a lock: the program waits for another connection of its own, with an open "
        "transaction or an unread SELECT. Commit or close it; a longer timeout does not help.",
        rank=GRAVE,
    ),
    "locked-snapshot": Phrase(
        "{count:plural operation} failed with SQLITE_BUSY_SNAPSHOT (517)[, {how}]: a transaction read, "
        "another process committed, and then it wrote.[ Probably for the same reason {busy} failed with "
        "SQLITE_BUSY, without waiting.] No timeout helps. Use BEGIN IMMEDIATE and repeat from BEGIN; read "
        "every SELECT to its end.",
        rank=GRAVE,
    ),
    "locked-table": Phrase(
        "{count:plural operation} failed with SQLITE_LOCKED[, {how}]: another connection of the same program "
        "has the table. No timeout helps. Leave out cache=shared, and read every SELECT to its end.",
        rank=GRAVE,
    ),
    "locked-recovery": Phrase(
        "{count:plural operation} failed with SQLITE_BUSY_RECOVERY (261)[, {how}]: another process was "
        "recovering the WAL. Set a busy timeout first on every connection.",
        rank=GRAVE,
    ),
    "checks-opened": Phrase(
        "While commands ran, the checks opened and closed the database {low:plural time}[ ({high} in "
        "another trial)]."
    ),
}
