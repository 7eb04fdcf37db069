"""Options and spec of the experiment with cycles."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.options.option import LOAD, SWEEP, option
from sqlstress.options.parsing import choices, duration, whole_number
from sqlstress.report.case import Case
from sqlstress.request import Request

PUBLISHED = ("delete", "delete-tx", "wal", "wal-tx", "wal-tx-off")
"""The published settings: journal; tx: in a transaction; off: without automatic checkpoints."""
SETTINGS = (*PUBLISHED, "wal-off", "delete-cycle", "wal-cycle", "wal-cycle-off")
WORDS = {"run": "tx", "cycle": "cycle"}
"""Content of one transaction → its word in the name of a setting."""


@dataclass(frozen=True, slots=True)
class Cycling:
    """The experiment with cycles: insert rows, delete all of them, insert rows again."""

    cycles: int = option(
        whole_number(1, 100_000), 100, LOAD, "Number of cycles: insert rows, delete all, insert rows."
    )
    rows: int = option(whole_number(1, 10_000), 5, LOAD, "Rows per insertion, each in its own statement.")
    transaction: str = "none"
    """Content of one transaction: none (each statement is its own transaction), cycle or run."""
    timeout_s: float | None = option(
        duration(0.001),
        "60s",
        LOAD,
        "Stop a run after this time. The report shows the completed cycles.",
        name="timeout",
        metavar="TIME",
        meaning="Time of work after which a run stops, in seconds; None: never.",
        unsaid=None,
    )


@dataclass(frozen=True, slots=True)
class CyclesSelection:
    """Options that only say which cases there are."""

    settings: tuple[str, ...] = option(
        choices(*SETTINGS),
        ",".join(PUBLISHED),
        SWEEP,
        f"Settings to measure: a list of {', '.join(SETTINGS)}. In these names, tx means one transaction for "
        "the run, cycle one for each cycle, and off no automatic checkpoints.",
        metavar="LIST",
    )


CyclesRequest = Request[Cycling, CyclesSelection]


def setting_of(case: Case) -> str:
    """Return the name of a case's setting, as in --settings, with its --wal-autocheckpoint at the end."""
    held, frames = case.spec.transaction, case.settings.wal_autocheckpoint
    parts = [case.settings.journal_mode]
    parts += [WORDS.get(held, held)] * (held != "none")
    parts += [str(frames) if frames else "off"] * (frames is not None)
    return "-".join(parts)
