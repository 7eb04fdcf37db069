"""How a search for better settings is shown: what each value does, the race, and one line to paste."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import chain, islice, repeat
from typing import Any

from sqlstress.analysis.advice import partial_proofs, wrong_data
from sqlstress.analysis.finding import PROVED, UNTOLD, WRONG, Conclusion, Finding, Part
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.wording import (
    EQUAL,
    cells,
    duration,
    finite,
    interval,
    listing,
    plural,
    times,
)
from sqlstress.experiment import face_of
from sqlstress.experiments.tune.results import TunedRow, Tuning
from sqlstress.report import Report, Run
from sqlstress.show import heading
from sqlstress.show.blocks import (
    FAILED,
    MISSING,
    NAME,
    Block,
    Bullets,
    Column,
    Lines,
    Paragraph,
    Table,
    Verdict,
    whole_cell,
)
from sqlstress.show.phrases import phrase
from sqlstress.show.shown import ResultShown, Tile
from sqlstress.statistics.units import NS_PER_S, format_duration

DEFAULT = "the default"
LONGER = 3
"""How many times as long is advised where nothing could be told."""
EFFECTS = (
    "Over the default: by least squares over {slices} of a balanced design, whatever the other settings are; "
    "the intervals hold together, 95%."
)
RACE = (
    "The race: rounds in turns; what is worse than the leader beyond doubt leaves it. These figures choose, "
    "and flatter what they choose: the verdict is from pairs measured afterwards."
)


class TuningShown(ResultShown[Tuning]):
    """A search for better settings."""

    def part(self, result: Tuning) -> Part:
        name = "search for better settings"
        return Part(name, verdict(result), result.seconds, result.error, "tune", "Better settings")

    def result_blocks(self, report: Report, result: Tuning) -> Iterator[Block]:
        yield Lines(tuple(_heading(report, result)))
        if any(level.gain for level in result.levels):
            yield _effects(result)
            yield Paragraph(EFFECTS.format(slices=plural(result.designed, "slice")))
        if result.raced:
            yield _race(result)
            yield Paragraph(RACE)
        yield Verdict(phrase(verdict(result).finding))
        if found := tuple(chain(_paste(result), _notes(report, result))):
            yield Bullets(found)

    def tiles(self, result: Tuning) -> Iterator[Tile]:
        gain, options = result.gain, shlex.join(result.chosen)
        if result.wrong is not None:
            yield FAILED, "the data is wrong", "failed"
        elif gain and gain.is_above:
            yield times(gain.ratio), f"the default, {interval(gain)}: {options}", "ok"
        elif gain and (gain.is_below or gain.is_within(EQUAL)):
            yield DEFAULT, "is as good as what was found", "ok"
        else:
            yield "can't tell", "whether anything is better than the default", "unknown"
        yield duration((finite(result.seconds) or 0.0) * NS_PER_S), "of searching", ""

    def progress(self, result: Tuning) -> str:
        raced = f" and a race of {len(result.raced)}" if result.raced else ""
        return f"{plural(result.designed, 'slice')} of the design{raced}"


def verdict(found: Tuning) -> Conclusion:
    """Return what to set."""
    gain = found.gain
    if found.wrong is not None:
        return Conclusion(WRONG, Finding("study-wrong", example=found.wrong))
    longer = format_duration(LONGER * (finite(found.max_time_s) or 0.0))
    if gain is None:
        ended_early = (finite(found.seconds) or 0.0) < (finite(found.max_time_s) or 0.0) / 2
        more = None if ended_early else longer
        return Conclusion(UNTOLD, Finding("tune-too-little", ended_early=ended_early, longer=more))
    facts: dict[str, Any] = {"options": shlex.join(found.chosen), "gain": gain, "pairs": gain.rounds}
    if gain.is_within(EQUAL):
        return Conclusion(PROVED, Finding("tune-equal", share=EQUAL, **facts))
    if gain.is_above:
        return Conclusion(PROVED, Finding("tune-better", **facts))
    if gain.is_below:
        return Conclusion(PROVED, Finding("tune-worse", **facts))
    return Conclusion(UNTOLD, Finding("tune-unclear", longer=longer, **facts))


def _heading(report: Report, found: Tuning) -> Iterator[str]:
    own = tuple(run for run in report.runs if run.case == found.case) or (Run(found.case),)
    group, every = Group(found.case, own), Group(found.case, report.runs or own)
    what = face_of(found.case).show().what(group)
    yield heading.describe(f"Search for better settings. {what}", group, report)
    yield from heading.durability(group, report.environment)
    yield f"Searched: {listing([*found.factors])}; journal mode, synchronous and batch stay as they are."
    yield from heading.warnings(every, report.environment, ())


def _effects(found: Tuning) -> Table:
    columns = (
        Column("setting", ("", "setting"), "left", NAME),
        Column("value", ("", "value"), role=NAME),
        Column("over the default", ("over the", "default")),
        Column("from", ("95%", "from")),
        Column("to", ("", "to")),
    )
    rows = tuple(
        (level.factor, level.value, *cells(level.gain, MISSING)) for level in found.levels if level.gain
    )
    return Table(columns, rows)


def _race(found: Tuning) -> Table:
    names = tuple(Column(name, _two_lines(name), role=NAME) for name in found.factors)
    columns = (
        *names,
        Column("rounds", ("", "rounds")),
        Column("over the default", ("over the", "default")),
        Column("from", ("95%", "from")),
        Column("to", ("", "to")),
        Column("left the race", ("left", "the race"), "left"),
    )
    rows = tuple((*_values(row, len(names)), *_figures(row)) for row in found.raced)
    return Table(columns, rows, leaving=("left the race", "from", "to"))


def _two_lines(name: str) -> tuple[str, str]:
    first, dash, rest = name.partition("-")
    return (f"{first}{dash}", rest) if rest else ("", name)


def _values(row: TunedRow, count: int) -> tuple[str, ...]:
    values = (value or MISSING for value in row.values)
    return tuple(islice(chain(values, repeat(MISSING)), count))


def _figures(row: TunedRow) -> tuple[str, ...]:
    figures = cells(row.gain, MISSING) if any(row.values) else ("1", MISSING, MISSING)
    return whole_cell(row.rounds), *figures, "" if row.races else "yes"


def _paste(found: Tuning) -> Iterator[str]:
    """Yield the line to paste, and what it changes beside the figures."""
    if found.gain is None or not found.gain.is_above or found.gain.is_within(EQUAL):
        return
    if found.pragmas:
        yield f"To paste: {'; '.join(found.pragmas)};"
    chosen = dict(zip(found.chosen[::2], found.chosen[1::2], strict=False))
    if "--page-size" in chosen:
        yield "page_size is for a new database; another one takes it by VACUUM while its journal is no WAL."
    if "--checkpointer" in chosen:
        yield f"One more process checkpoints, {chosen['--checkpointer'].upper()}, every 20ms."
    if "--busy" in chosen:
        yield "--busy fair is a busy handler of your own: waits that grow with the number of waiters."
    if "--buckets" in chosen:
        files = chosen["--buckets"]
        yield f"{files} files, over which the keys are hash-partitioned: no transaction spans two."
    if (
        chosen.keys() & {"--wal-autocheckpoint", "--checkpointer"}
        and found.case.settings.synchronous == "normal"
    ):
        yield (
            "With synchronous=NORMAL a power failure can lose what was committed since the last checkpoint: "
            "with fewer checkpoints that is more."
        )


def _notes(report: Report, found: Tuning) -> Iterator[str]:
    yield from (f"Not taken: {text.removesuffix('.')}." for text in found.refused)
    if found.error:
        yield f"Ended early: {found.error.removesuffix('.')}."
    for group in group_runs(report.runs):
        yield from (phrase(finding) for finding in chain(wrong_data(group), partial_proofs(group)))
