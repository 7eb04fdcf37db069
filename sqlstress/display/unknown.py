"""How cases are shown whose experiment is not known: what all cases have in common, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlstress.analysis.group import Group
from sqlstress.display.clean import shortened
from sqlstress.display.measures import RATIO, TPS
from sqlstress.display.shown import Shown
from sqlstress.report import Run
from sqlstress.report.case import Case

_LONGEST = 60


class ShownUnknown(Shown):
    """Says that it does not know what the processes did."""

    measures = ((TPS, RATIO),)

    def what(self, group: Group) -> str:
        own = group.case.spec.said()
        its_own = f": not its own {shortened(_written(own, own), _LONGEST)}" if own else ""
        return (
            f"The experiment {group.case.workload!r:.60} is not known to this version of sqlstress, which "
            f"can show only what all experiments have in common{its_own}"
        )

    def rate(self, run: Run) -> float | None:
        return run.median_tps()

    def loads(self, cases: Sequence[Case]) -> list[str]:
        said = [case.spec.said() for case in cases]
        names = dict.fromkeys(name for own in said for name in own)
        differing = [name for name in names if len({own.get(name) for own in said}) > 1]
        return _apart([_written(own, differing) for own in said])


def _written(own: Mapping[str, str], names: Iterable[str]) -> str:
    """Return what a case says under names that nobody here knows."""
    return ", ".join(f"{name} {own[name]}" if name in own else f"no {name}" for name in names)


def _apart(texts: Sequence[str]) -> list[str]:
    """Return texts as short as a line takes them; those that differ later on have numbers."""
    kinds = list(dict.fromkeys(texts))
    short = [shortened(text, _LONGEST) for text in kinds]
    if len(set(short)) < len(kinds):
        short = [f"{text} ({number})" for number, text in enumerate(short, 1)]
    return [short[kinds.index(text)] for text in texts]
