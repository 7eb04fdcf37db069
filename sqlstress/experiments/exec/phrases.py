"""The sentences of what is found of commands, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "commands-locked": Phrase(
        '{count:plural command} said "database is locked". Give the program a busy time-out of its own '
        "(sqlite3: -cmd '.timeout 5000'); where it has one, let its transactions begin IMMEDIATE.",
        count=12,
    ),
    "checks-opened": Phrase(
        "While commands ran, the checks opened and closed the database {low} to {high} times a trial.",
        low=8,
        high=10,
    ),
}
