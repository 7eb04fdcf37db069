"""What the options of the experiment with cycles mean: settings outside, concurrencies inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.plan.settings import check_locking, is_exclusive, settings_of
from sqlstress.report.case import Case
from sqlstress.report.parts import Cycling


def cases(values: dict[str, Any], asked: Mapping[str, Any]) -> Iterator[Case]:
    """Yield the cases: `values` holds every option, parsed; `asked` only those that were given.

    Raises UsageError when options contradict each other.
    """
    _check_together(values, asked)
    for name in values["settings"]:
        for concurrency in values["concurrency"]:
            yield _case(values, name, concurrency)


def _check_together(values: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    settings = values["settings"]
    if "transaction" in asked and not any("-tx" in name for name in settings):
        raise UsageError("--transaction is for settings in one transaction: add one with tx to --settings.")
    if "wal-autocheckpoint" in asked and not {"wal", "wal-tx"} & set(settings):
        raise UsageError("--wal-autocheckpoint is for the settings wal and wal-tx: add one of them.")
    check_locking(values)
    if is_exclusive(values) and any(name.startswith("wal") for name in settings):
        raise UsageError(
            "PRAGMA locking_mode=exclusive hides the WAL's index, in which checkpoints are seen: "
            "use it with --settings delete,delete-tx only."
        )


def _case(values: Mapping[str, Any], name: str, concurrency: int) -> Case:
    journal, *rest = name.split("-")
    autocheckpoint = 0 if "off" in rest else values["wal-autocheckpoint"] if journal == "wal" else None
    return Case(
        workload="cycles",
        driver=values["driver"],
        concurrency=concurrency,
        duration_s=0.0,
        warmup_s=0.0,
        repeat=values["repeat"],
        seed=values["seed"],
        verify=values["verify"],
        settings=settings_of({**values, "journal-mode": journal, "wal-autocheckpoint": autocheckpoint}),
        cycling=Cycling(
            cycles=values["cycles"],
            rows=values["rows"],
            transaction=values["transaction"] if "tx" in rest else "none",
            timeout_s=values["timeout"],
        ),
    )
