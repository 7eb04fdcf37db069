"""How primary keys are shown: what its tables, sentences and plots say; pure functions of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlstress.analysis.group import Group
from sqlstress.analysis.proof import partial_proofs
from sqlstress.analysis.trust import trust
from sqlstress.analysis.wording import size
from sqlstress.display.blocks import Block
from sqlstress.display.measures import RATIO, ROWS_PER_S, Measure, of_trial
from sqlstress.display.plot import Plot
from sqlstress.display.shown import TIME, Shown, Value
from sqlstress.experiments.keys.shown import plots, view
from sqlstress.experiments.keys.shown.cells import space_figure
from sqlstress.experiments.keys.shown.findings import keys
from sqlstress.report import Trial

_SPACE = {
    "file_bytes": "file",
    "bytes_per_row": "bytes per row",
    "table_share": "table's share",
    "indices_share": "indices' share",
    "table_fan_out": "table's fan-out",
    "indices_fan_out": "indices' fan-out",
}
"""Column of the CSV → what it has of the space that a database takes."""


class KeysShown(Shown):
    """Time and space of each type of identifier, schema by schema."""

    topics = (keys, partial_proofs, trust)
    measures = (
        (ROWS_PER_S, RATIO),
        (
            TIME,
            Measure(
                "{letter} file",
                ("{letter}", "file"),
                "file: what the database takes",
                of_trial(lambda trial: size(trial.space.file_bytes) if trial.space else None),
            ),
        ),
    )

    def what(self, group: Group) -> str:
        return view.what(group)

    def blocks(self, group: Group) -> Iterator[Block]:
        return view.blocks(group)

    def plots(self, group: Group) -> Iterator[Plot]:
        return plots.plots(group)

    def trial_columns(self, trials: Sequence[Trial]) -> Mapping[str, Callable[[Trial], Value]]:
        return (
            {name: _space(figure) for name, figure in _SPACE.items()}
            if any(one.space for one in trials)
            else {}
        )


def _space(name: str) -> Callable[[Trial], Value]:
    def value(trial: Trial) -> Value:
        figure = space_figure(trial.space, name)
        return int(figure) if figure is not None and figure.is_integer() else figure

    return value
