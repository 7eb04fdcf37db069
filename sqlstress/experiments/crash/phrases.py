"""The sentences of what is found of writers that were killed, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "kills-wrong": Phrase(
        "FAILED: after {kills:plural kill}, {wrong}.[ journal_mode={keeps_nothing} keeps nothing on disk "
        "to roll back with: use WAL or DELETE.]"
    ),
    "kills-not-acknowledged": Phrase("{count:plural transaction} did not match what was acknowledged"),
    "kills-not-whole": Phrase("{count:plural record} did not match the log"),
    "kills-not-sound": Phrase("integrity_check reported errors {once?once|}[{times} times]"),
    "kills-not-gone-on": Phrase(
        "{once?once|}[{times} times] the other writers did not continue after a kill"
    ),
    "kills-check-failed": Phrase("{name} failed"),
    "kills-unproved": Phrase("Nothing is proved: no transaction was acknowledged before its writer died."),
    "kills-proved": Phrase(
        "Nothing was lost: all {acknowledged:plural acknowledged transaction} survived {kills:plural kill}, "
        "none was torn, and integrity_check found nothing. This says nothing about power loss: the system "
        "still writes what a dead process has written, even with synchronous=OFF."
    ),
}
