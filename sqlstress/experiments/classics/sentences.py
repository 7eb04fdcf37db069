"""Sentences in the reports of methods, keys and cycles.

Each function returns a sentence. Its parameters are the facts of a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlstress.analysis.wording import between, duration, listing, with_interval, without_interval
from sqlstress.statistics.compare import Ratio
from sqlstress.statistics.units import digits, plural, rounded

# Methods.


class MethodLead(NamedTuple):
    """Fastest methods of a phase (insert, allocate or query)."""

    methods: Sequence[str]
    """Names of the methods; several if they are about equal or cannot be ranked."""
    rate: float
    """Rows per second of the fastest method at its best scale."""
    ratio: Ratio | None = None
    """Rate relative to the method 1b1 (row by row); None if 1b1 is fastest or the ratio is inconclusive."""
    equal: bool = False
    """Whether several methods are about equal."""
    unranked: bool = False
    """Whether the measurement cannot rank several methods."""
    unclear: bool = False
    """Whether the rank, or the ratio to 1b1, is inconclusive."""


class Phase(NamedTuple):
    """Fastest methods of a phase, with and without SPC (rows that are made inside SQLite)."""

    doing: str
    fastest: MethodLead
    others: MethodLead | None = None
    """Fastest methods except SPC; None if SPC is not among the fastest."""


class Gain(NamedTuple):
    """Rate of a phase with a setting (WAL or one transaction), relative to the rate without the setting."""

    doing: str
    ratio: Ratio


def _lead(lead: MethodLead) -> str:
    about = "about " if len(lead.methods) > 1 else ""
    details = [f"{about}{rounded(lead.rate)} rows/s"]
    if lead.ratio:
        details[0] += f", {without_interval(lead.ratio, 'as fast as')} 1b1, {between(lead.ratio)}"
    if lead.equal:
        details.append("about equal")
    if lead.unranked:
        details.append("cannot tell which is fastest")
    return f"{listing(lead.methods)} ({'; '.join(details)})"


def _phase(phase: Phase) -> str:
    others = f", or without SPC by {_lead(phase.others)}" if phase.others else ""
    return f"{phase.doing} by {_lead(phase.fastest)}{others}"


def methods_fastest(*, driver: str, phases: Sequence[Phase]) -> str:
    return f"Fastest with {driver}: {'; '.join(map(_phase, phases))}."


def _gains(gains: Sequence[Gain], unclear: Sequence[str]) -> str:
    parts = []
    if gains:
        parts.append(listing([f"{gain.doing} {with_interval(gain.ratio, 'as fast')}" for gain in gains]))
    if unclear:
        parts.append(f"cannot tell for {listing(unclear)}")
    return ", and ".join(parts)


def transaction(*, gains: Sequence[Gain], unclear: Sequence[str] = ()) -> str:
    return f"Put writes into one transaction. Compared with a commit per row: {_gains(gains, unclear)}."


def wal(*, how: str, gains: Sequence[Gain], unclear: Sequence[str] = ()) -> str:
    return f"WAL compared with DELETE, {how}: {_gains(gains, unclear)}."


def method_limit(
    *, doing: str, rows: int, method: str, drivers: Sequence[str], reason: str, instead: str
) -> str:
    return (
        f"LIMIT when {doing} {plural(rows, 'row')} by {method} ({listing(drivers)}): {reason}. Use {instead} "
        "instead."
    )


# Keys.


class TypeCost(NamedTuple):
    """Time and space of a type of id, relative to uuid4."""

    ratio: Ratio | None = None
    """Time divided by the time of uuid4; None if the times are about equal or unknown."""
    equal: bool = False
    """Whether the times are about equal."""
    unclear: bool = False
    """Whether the comparison of the times is inconclusive."""
    file: float | None = None
    """Size of the file divided by the size with uuid4; None if unknown."""


def _type_cost(cost: TypeCost) -> str:
    time = ""
    if cost.ratio:
        time = f"{between(cost.ratio)} of uuid4's time"
    elif cost.equal:
        time = "about equal to uuid4's time"
    elif cost.unclear:
        time = "cannot tell whether faster than uuid4"
    file = f"; {rounded(cost.file, 2)} of its file size" if cost.file is not None else ""
    return f"{time}{file}"


def id_type(
    *,
    schema: str,
    chosen: str | None = None,
    cost: TypeCost | None = None,
    int_cost: TypeCost | None = None,
    dated: bool = False,
    unclear: Sequence[str] = (),
) -> str:
    """Advise a type of id for a schema. `chosen` is None if no type is better than uuid4."""
    integers = f"use int if one database assigns all ids ({_type_cost(int_cost)}). " if int_cost else ""
    use = "Otherwise use" if int_cost else "use"
    choice = chosen or "uuid4 (no other type saves time or space)"
    if dated:
        choice += ", which contains its creation time"
    if cost:
        choice += f" ({_type_cost(cost)})"
    doubt = f" Cannot tell whether {listing(unclear, 'or')} is faster." if unclear else ""
    return f"{schema}: {integers}{use} {choice}.{doubt}"


# Cycles.


class Checkpoint(NamedTuple):
    """Cycle in which a checkpoint was seen: its number, from 1, and its time."""

    cycle: int
    ns: float | None
    """Time of the cycle, in ns; None if unknown."""


def timeout(*, where: str, reason: str, limit_ns: float | None = None) -> str:
    after = f" after {duration(limit_ns)}" if limit_ns is not None else ""
    return f"TIMEOUT at {where}{after}: {reason}."


def fastest(*, settings: Sequence[str], total_ns: float, equal: bool = False, unclear: bool = False) -> str:
    """Name the fastest settings. `total_ns` is the total time of the first setting."""
    text = f"Fastest: {listing(settings)}, {'about ' if len(settings) > 1 else ''}{duration(total_ns)}"
    if equal:
        text += " (about equal)"
    if unclear:
        text += " (cannot tell which is fastest)"
    return f"{text}."


def checkpoint(
    *,
    where: str,
    frames: int,
    due: int,
    commits: int,
    spike: int,
    spike_ns: float,
    median_ns: float,
    is_it: bool,
    seen: Checkpoint | None = None,
    later: Sequence[int] = (),
) -> str:
    """Report in which cycle a checkpoint was due, in which cycles one was seen, and the slowest cycle."""
    found = "None was seen"
    if seen:
        there = "there" if seen.cycle == due else f"in cycle {digits(seen.cycle)}"
        time = f" ({duration(seen.ns)})" if seen.ns is not None else ""
        found = f"It was seen {there}{time}"
    if later:
        found += f", then in {listing(list(map(digits, later)))}"
    return (
        f"{where}: the checkpoint at {plural(frames, 'frame')} was due in cycle {digits(due)} "
        f"({plural(commits, 'commit')} per cycle, one frame each). {found}. The slowest cycle "
        f"except the first is {digits(spike)} ({duration(spike_ns)}; "
        f"median {duration(median_ns)}): "
        f"{'the checkpoint' if is_it else 'not a checkpoint'}."
    )
