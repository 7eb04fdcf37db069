"""The sentences of what is found of commands, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "exit-codes": Phrase(
        "{failed} of {commands} commands, including the warm-up, did not exit with 0. Exit codes, with "
        "their counts: {codes:counts}. They count only in the columns failed and longest."
    ),
    "stderr": Phrase(
        "On standard error, the first of each kind with its count: {messages:quoted}[; the JSON report "
        "has {more} more kinds]."
    ),
    "timed-out": Phrase(
        "{count} commands at {where} took longer than {limit_s} s; they were ended and count as failed. "
        "They may be waiting for input or a lock; raise --timeout."
    ),
    "left-behind": Phrase(
        "At {where}, {escaped?|processes that }{count} {escaped?processes that no worker could reach any "
        "more (it was killed, or they left its group)|commands left running} were ended. Make each "
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
