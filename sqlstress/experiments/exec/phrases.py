"""The sentences of what is found of commands, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "exit-codes": Phrase(
        "{failed} of {commands} commands, the warm-up included, did not exit with 0 but with {codes:counts}. "
        "They count in no figure but failed and longest.",
        failed=3,
        commands=1200,
        codes={"1": 2, "SIGSEGV": 1},
    ),
    "stderr": Phrase(
        "On standard error, by kind, of each the first: {messages:quoted}"
        "[; and {more} kinds more, which the JSON report has].",
        messages={"Error: no such table: t": 12},
        more=None,
    ),
    "timed-out": Phrase(
        "{count} commands took longer than {limit_s} s and were ended, at {where}: they failed. "
        "Does one wait for input, or for a lock? Let more time with --timeout.",
        count=4,
        limit_s="60",
        where="4 processes",
    ),
    "left-behind": Phrase(
        "{escaped?|What }{count} {escaped?processes that no worker could reach any more "
        "(it was killed, or they left its group)|commands left running behind them} were ended, at {where}. "
        "Let a command wait for what it starts.",
        escaped=False,
        count=4,
        where="4 processes",
    ),
    "commands-locked": Phrase(
        '{count:plural command} said "database is locked". Give the program a busy time-out of its own '
        "(sqlite3: -cmd '.timeout 5000'); where it has one, let its transactions begin IMMEDIATE.",
        count=12,
    ),
    "checks-opened": Phrase(
        "While commands ran, the checks opened and closed the database {low:plural time}"
        "[ (in another trial {high})].",
        low=8,
        high=10,
    ),
}
