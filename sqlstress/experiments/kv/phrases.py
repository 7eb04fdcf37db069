"""The sentences of what is found of key-value loads, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
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
        ways=("a longer --busy-timeout", "fewer processes"),
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
