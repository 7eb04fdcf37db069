"""What each cycle cost, its statements and its BEGIN and COMMIT apart."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.engine.protocols import Stamps
from sqlstress.experiments.cycles.moves import BEGIN, COMMIT, DELETE, INSERT
from sqlstress.statistics.series_names import BEGIN_AND_COMMIT, STATEMENTS


class CycleTimes:
    """Adds up the steps of a cycle until it ends."""

    def __init__(self) -> None:
        self._statements: list[int] = []
        self._bounds: list[int] = []
        self._sums = dict.fromkeys(range(256), 0)

    def add(self, kinds: Sequence[int], stamps: Stamps) -> None:
        """Count steps that were done."""
        for kind, begin, end in zip(kinds, *stamps, strict=True):
            self._sums[kind] += end - begin

    def end_cycle(self) -> None:
        """Say that the steps so far were a cycle."""
        self._statements.append(self._sums[INSERT] + self._sums[DELETE])
        self._bounds.append(self._sums[BEGIN] + self._sums[COMMIT])
        self._sums = dict.fromkeys(range(256), 0)

    @property
    def cycles(self) -> int:
        """The cycles that have ended."""
        return len(self._statements)

    def series(self) -> list[tuple[str, str, list[int]]]:
        """Return name, unit and values, one a cycle; BEGIN and COMMIT only where there are any of ours."""
        figures = ((STATEMENTS, self._statements), (BEGIN_AND_COMMIT, self._bounds))
        return [(name, "ns", values) for name, values in figures if any(values)]
