"""The sentences of what is found of writers that were killed, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase

PHRASES = {
    "kills-wrong": Phrase(
        "FAILED: after {kills:plural kill} {wrong}."
        "[ journal_mode={keeps_nothing} keeps nothing on disk to roll back with: use WAL or DELETE.]",
        kills=50,
        wrong=(Finding("kills-not-acknowledged", count=2, once=False, times=2),),
        keeps_nothing="OFF",
    ),
    "kills-not-acknowledged": Phrase(
        "{count:plural transaction} {once?was|were} not there as acknowledged", count=2, once=False
    ),
    "kills-not-whole": Phrase(
        "{count:plural record} {once?was|were} not wholly as the log says", count=2, once=False
    ),
    "kills-not-sound": Phrase("integrity_check complained {once?once|}[{times} times]", once=False, times=2),
    "kills-not-gone-on": Phrase(
        "{once?once|}[{times} times] the others did not go on after a kill", once=False, times=2
    ),
    "kills-check-failed": Phrase("{name} failed", name="rows"),
    "kills-unproved": Phrase("Nothing is proved: no transaction was acknowledged before its writer died."),
    "kills-proved": Phrase(
        "Nothing was lost: after {kills:plural kill} all of {acknowledged} acknowledged transactions were "
        "there, none was torn, and integrity_check found nothing. That is about processes that die, and says "
        "nothing about power loss: what a dead process has written the system still writes out, even with "
        "synchronous=OFF. --power tries what a power cut can leave.",
        kills=50,
        acknowledged=12_000,
    ),
}
