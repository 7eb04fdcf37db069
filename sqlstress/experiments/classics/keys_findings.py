"""Findings of primary keys: the type of id to use with each schema, and its cost.

The times of two types are compared over the passes, against the noise of this pair. Sizes have no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlstress.analysis import sentences as shared
from sqlstress.analysis.answers import inconclusive_findings, is_conclusive, more_trials
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, PairwiseTests
from sqlstress.experiments.classics import sentences
from sqlstress.experiments.classics.sentences import TypeCost
from sqlstress.experiments.classics.spec import ID_TYPES, SCHEMAS, Picks
from sqlstress.report import Run, Space
from sqlstress.statistics.compare import NEAR
from sqlstress.statistics.units import finite

TABLE = "picks"
SPACE: Mapping[str, Callable[[Space], float | None]] = {
    "file_bytes": lambda space: space.file_bytes,
    "bytes_per_row": lambda space: space.bytes_per_row(TABLE),
    "table_share": lambda space: space.table_alone(TABLE).share,
    "indices_share": lambda space: space.indices_of(TABLE).share,
    "table_fan_out": lambda space: space.table_alone(TABLE).fan_out,
    "indices_fan_out": lambda space: space.indices_of(TABLE).fan_out,
}
"""Functions that compute a figure of the space, by its column in the CSV.

Sizes are in bytes, shares of the file from 0 to 1, and fan-outs in children per internal page."""
BYTES_IN_MB = 1e6


def space_figure(space: Space | None, name: str) -> float | None:
    """Return a figure of SPACE; None if it was not measured, or if the report contradicts itself."""
    if space is None:
        return None
    try:
        return finite(SPACE[name](space))
    except (KeyError, ZeroDivisionError):
        return None


@dataclass(frozen=True, slots=True, eq=False)
class KeysCell:
    """A measured case whose data was not found wrong."""

    run: Run
    picks: Picks
    processes: int
    seconds: float
    """Duration of the typical trial, in seconds; above 0."""
    space: Space | None

    def figure(self, name: str) -> float | None:
        """Return the figure with this name: "time" (s), or one of SPACE."""
        return self.seconds if name == "time" else space_figure(self.space, name)

    @property
    def file(self) -> float:
        """Size of the file, in bytes; 0 if it was not measured."""
        return self.figure("file_bytes") or 0.0


def cell_of(run: Run) -> KeysCell | None:
    """Return the figures of a run; None if they are not plausible."""
    trial = run.valid_median_trial()
    if trial is None or run.verdict.status == "failed":
        return None
    seconds = finite(trial.seconds)
    if not seconds or seconds < 0:
        return None
    return KeysCell(run, run.case.spec, run.case.concurrency, seconds, trial.space)


class KeysCells:
    """The cells of a group, in the order of its runs."""

    def __init__(self, group: Group) -> None:
        self.all = tuple(cell for run in group.runs if (cell := cell_of(run)))
        self._by_place = {(cell.picks, cell.processes): cell for cell in self.all}

    def twin(self, cell: KeysCell, **changes: Any) -> KeysCell | None:
        """Return the cell whose spec differs from that of `cell` only in `changes`, as id_type="uuid4"."""
        return self._by_place.get((replace(cell.picks, **changes), cell.processes))


def ratio(cell: KeysCell | None, base: KeysCell | None, figure: str) -> float | None:
    """Return a figure of a cell divided by that of the base; None if either is unknown."""
    if cell is None or base is None:
        return None
    over, under = cell.figure(figure), base.figure(figure)
    return over / under if over is not None and under else None


ORDER = ("uuid7", "ulid-monotonic", "ulid", "uuid4", "int")
"""Types in the order of preference, if time and space are equal: a standard first, and types that contain
their creation time before uuid4. "int" needs a database that assigns all ids."""


def keys(group: Group) -> Iterator[Finding]:
    """Yield the type of id to use with each schema, from the cases with the most processes."""
    cells = KeysCells(group).all
    most = max((cell.processes for cell in cells), default=0)
    compared = [cell for cell in cells if cell.processes == most]
    tested = group.pairwise_tests([cell.run for cell in compared]) if compared else None
    if tested is None:
        if len(compared) > 1:
            yield Finding(shared.cannot_tell, advice=more_trials(group.case))
        return
    findings = []
    for schema in SCHEMAS:
        by_type = {cell.picks.id_type: cell for cell in compared if cell.picks.schema == schema}
        if "uuid4" in by_type and len(by_type.keys() & {*ID_TYPES}) > 1:
            findings.append(_advice(schema, by_type, tested))
    yield from findings
    yield from inconclusive_findings(tested, findings, group.case)


def _advice(schema: str, by_type: Mapping[str, KeysCell], tested: PairwiseTests) -> Finding:
    """Return the type to use with a schema, and its cost compared with uuid4."""
    base, integers = by_type["uuid4"], by_type.get("int")
    candidates = [by_type[id_type] for id_type in ORDER if id_type in by_type and id_type != "int"]
    # Drop each type that another one beats: in time beyond doubt, or in space.
    quick = [cell for cell in candidates if not any(_is_quicker(rival, cell, tested) for rival in candidates)]
    least = min((cell.file for cell in quick if cell.file), default=0.0)
    chosen = next((cell for cell in quick if cell.file * (1 - NEAR) <= least), quick[0])
    takes_int = integers is not None and not tested.is_less(integers.run, chosen.run)
    stays = chosen is base
    return Finding(
        sentences.id_type,
        schema=schema,
        chosen=None if stays else chosen.picks.id_type,
        cost=None if stays else _cost(chosen, base, tested),
        int_cost=_cost(integers, base, tested) if integers and takes_int else None,
        dated=not stays and not tested.is_less(base.run, chosen.run),
        unclear=tuple(
            cell.picks.id_type
            for cell in candidates
            if cell not in (chosen, base) and not tested.adds_little(chosen.run, cell.run)
        ),
    )


def _is_quicker(cell: KeysCell, other: KeysCell, tested: PairwiseTests) -> bool:
    """Return whether `cell` is quicker than `other` by more than NEAR, beyond doubt."""
    rates = None if cell is other else tested.ratio(other.run, cell.run)
    return rates is not None and rates.low > 1 / (1 - NEAR)


def _cost(cell: KeysCell, base: KeysCell, tested: PairwiseTests) -> TypeCost:
    """Return the time and the space of a cell compared with uuid4."""
    time = tested.ratio(cell.run, base.run)
    file = ratio(cell, base, "file_bytes")
    if time is None or not is_conclusive(time):
        return TypeCost(unclear=True, file=file)
    equal = time.is_within(NEAR)
    return TypeCost(None if equal else time, equal=equal, file=file)
