"""The sentences of what is found of commands, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import GRAVE, Phrase

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
        "or they left its group)|commands left running} ({escaped?processes|commands}: {count}). Make each "
        "command wait for the processes it starts."
    ),
    "commands-locked": Phrase(
        '{count:plural command} printed "database is locked". Set a busy timeout in the program (sqlite3: '
        "-cmd '.timeout 5000'). If it has one, use BEGIN IMMEDIATE."
    ),
    "checks-opened": Phrase(
        "While commands ran, the checks opened and closed the database {low:plural time}[ ({high} in "
        "another trial)]."
    ),
}
