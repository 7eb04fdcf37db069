"""What the options of crash tests mean: one case, whose writers are killed again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlstress.analysis.wording import size
from sqlstress.errors import UsageError
from sqlstress.experiments.crash.records import RECORDS
from sqlstress.experiments.power_loss import cases as power_loss
from sqlstress.plan.settings import check_locking, settings_of
from sqlstress.report.case import Case, Load

LARGEST = 64 << 20
"""Bytes of all records: they are read again after every kill."""


def cases(values: dict[str, Any], asked: Mapping[str, Any]) -> Iterator[Case]:
    """Yield the case: `values` holds every option, parsed. Raises UsageError when options don't fit.

    Of power cuts there is a case for each configuration.
    """
    if values["power"] or values["matrix"]:
        yield from power_loss.cases(values, asked)
        return
    _refuse_power(asked)
    check_locking({**values, "concurrency": (values["concurrency"],)})
    _check_size(values)
    yield Case(
        workload="crash",
        driver=values["driver"],
        concurrency=values["concurrency"],
        buckets=values["buckets"],
        duration_s=0.0,
        warmup_s=0.0,
        seed=values["seed"],
        verify="full",
        settings=settings_of(values),
        load=Load(
            read_ratio=0.0,
            key_space=RECORDS * values["batch"] * values["buckets"],
            value_size=values["value-size"],
            batch=values["batch"],
            begin=values["begin"],
        ),
    )


def _check_size(values: Mapping[str, Any]) -> None:
    needed = RECORDS * values["batch"] * values["value-size"] * values["buckets"]
    if needed > LARGEST:
        raise UsageError(
            f"{size(needed)} of rows would be read after every kill, and {size(LARGEST)} is the most: "
            "lower --batch, --value-size or --buckets."
        )


def _refuse_power(asked: Mapping[str, Any]) -> None:
    """Refuse what no writer that is killed would use."""
    for name in power_loss.OWN:
        if name in asked:
            raise UsageError(f"--{name} is for power cuts: add --power or --matrix.")
