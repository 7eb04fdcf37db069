"""Sentences of hunt reports: one function per sentence, whose parameters are its facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlstress.analysis.wording import duration, listing
from sqlstress.statistics.units import digits, plural


def hunt_found(*, took_ns: float, wrong: Sequence[str], library: str | None = None) -> str:
    return f"FAILED after {duration(took_ns)}: {f'{library} ' if library else ''}{listing(wrong)}."


class Repeats(NamedTuple):
    """Number of repetitions of a round that failed, and number of all repetitions."""

    failed: int
    tries: int


def hunt_again(*, round: Repeats, smallest: Repeats | None = None) -> str:
    if not round.failed:
        return (
            f"Repeated {plural(round.tries, 'time')}, this round did not fail again. The report keeps what "
            "was found."
        )
    text = f"Repeated, this round failed {digits(round.failed)} of {plural(round.tries, 'time')}"
    if smallest:
        tries = plural(smallest.tries, "time")
        text += f"; the smallest round (below) failed {digits(smallest.failed)} of {tries}"
    return f"{text}."


def hunt_round(*, load: str, smallest: bool) -> str:
    return f"{'Smallest round that still fails' if smallest else 'The round that failed'}: {load}."


def hunt_command(*, command: str) -> str:
    return f"Repeat it: {command}"


def hunt_wal_reset(*, probable: bool) -> str:
    if probable:
        return (
            "Probable cause: the WAL-reset bug of SQLite 3.7.0 to 3.51.2. When a checkpoint and a commit "
            "coincide, the checkpoint can skip frames of the new WAL and lose commits. Use 3.51.3 or later, "
            "3.50.7 or 3.44.6: https://www.sqlite.org/wal.html"
        )
    return (
        "This SQLite also has the WAL-reset bug, which loses commits. Repeat with SQLite 3.51.3 or later "
        "to rule it out: https://www.sqlite.org/wal.html"
    )


def hunt_nothing() -> str:
    return (
        "Nothing found. This does not prove that there is nothing to find: hunt longer (--max-time 10m) "
        "or again."
    )


def hunt_unchecked() -> str:
    return (
        "No check was given, so nothing that only you know of your data was verified. Add a check to "
        "find lost updates."
    )


def hunt_no_round() -> str:
    return "No round finished."
