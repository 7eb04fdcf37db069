"""The sentences of what is found of commands, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "checks-opened": Phrase(
        "While commands ran, the checks opened and closed the database {low} to {high} times a trial.",
        low=8,
        high=10,
    ),
}
