"""Published settings of well-known projects, measured in turns on the user's own load."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from itertools import chain
from statistics import median

from sqlstress.analysis.advice import partial_proofs, wrong_data
from sqlstress.analysis.durability import durability_of, waits
from sqlstress.analysis.finding import PROVED, UNTOLD, WRONG, Conclusion, Finding, Part
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.wording import EQUAL, cells, duration, finite, interval, plural, times
from sqlstress.experiment import face_of
from sqlstress.experiments.tune.presets import SQLITE, YOURS, Preset
from sqlstress.experiments.tune.results import MeasuredPreset, PresetComparison
from sqlstress.report import Report, Run
from sqlstress.report.power_failure import risk
from sqlstress.report.study_results import Gain
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
    count_cell,
)
from sqlstress.show.phrases import phrase
from sqlstress.show.shown import ResultShown, Tile
from sqlstress.statistics.units import NS_PER_S

# How presets are shown: which there are, and what each gained on a load beside what it risks.


LEGEND = (
    "TPS: the median of the slices. Over {base}: the mean of the ratios, round by round, with its interval. "
    "All intervals hold together with a probability of 95%, those of any two presets too."
)


_YOURS_BEFORE = "default"


class PresetsShown(ResultShown[PresetComparison]):
    """A comparison of published settings."""

    def part(self, result: PresetComparison) -> Part:
        name = "comparison of presets"
        return Part(name, verdict(result), result.seconds, result.error, "presets", "Presets")

    def result_blocks(self, report: Report, result: PresetComparison) -> Iterator[Block]:
        yield Lines(tuple(_heading(report, result)))
        if report.runs:
            yield _table(report, result)
            yield Paragraph(LEGEND.format(base=_base(result)))
        yield Verdict(phrase(verdict(result).finding))
        yield Bullets(tuple(chain(_risks(result), _about(result.presets), _notes(report, result))))

    def tiles(self, result: PresetComparison) -> Iterator[Tile]:
        if result.wrong is not None:
            yield FAILED, "the data is wrong", "failed"
            return
        for one in result.presets:
            if one.gain:
                sure = one.gain.is_above or one.gain.is_below or one.gain.is_within(EQUAL)
                value = times(one.gain.ratio) if sure else "can't tell"
                yield (
                    value,
                    f"{one.name} over {result.against}: {interval(one.gain)}",
                    "" if sure else "unknown",
                )

    def progress(self, result: PresetComparison) -> str:
        return rounds(result)


def rounds(result: PresetComparison) -> str:
    """Return how far a comparison has come: "3 of 10 rounds"."""
    return f"{result.rounds:,} of {plural(result.planned, 'round')}"


def verdict(result: PresetComparison) -> Conclusion:
    """Return what each preset gains."""
    if result.wrong is not None:
        return Conclusion(WRONG, Finding("study-wrong", example=result.wrong))
    gains = {one.name: one.gain for one in result.presets if one.gain}
    if not gains:
        few = result.rounds == result.planned < 10
        return Conclusion(UNTOLD, Finding("presets-too-few", rounds=rounds(result), planned_few=few))
    compared = tuple(_compared(name, gain, _base(result)) for name, gain in gains.items())
    unclear = tuple(name for name, gain in gains.items() if not _is_told(gain))
    enough = min(500, 4 * max(result.planned, 1)) if unclear else None
    status = UNTOLD if unclear else PROVED
    return Conclusion(status, Finding("presets-gain", gains=compared, unclear=unclear, enough=enough))


def _compared(name: str, gain: Gain, base: str) -> Finding:
    code = "preset-equal" if gain.is_within(EQUAL) else "preset-gains" if _is_told(gain) else "preset-unclear"
    return Finding(code, name=name, base=base, gain=gain)


def _base(result: PresetComparison) -> str:
    own = "your own settings"
    return {SQLITE: "SQLite's defaults", YOURS: own, _YOURS_BEFORE: own}.get(result.against, result.against)


def _is_told(gain: Gain) -> bool:
    return gain.is_above or gain.is_below or gain.is_within(EQUAL)


def _heading(report: Report, result: PresetComparison) -> Iterator[str]:
    own = tuple(run for run in report.runs if run.arm == result.against) or (Run(result.case),)
    group, every = Group(result.case, own), Group(result.case, report.runs or own)
    what = face_of(result.case).show().what(group)
    yield heading.describe(f"Published settings in turns. {what}", group, report)
    took = duration((finite(result.seconds) or 0.0) * NS_PER_S)
    yield f"{rounds(result)}, a slice of each preset in each, in an order that is drawn; {took}."
    base = next((one for one in result.presets if one.name == result.against), None)
    if base and (found := durability_of(base.effective, report.environment.sync)):
        yield f"Set against {_base(result)}: {found.name}."
    yield from heading.warnings(every, report.environment, ())


def _table(report: Report, result: PresetComparison) -> Table:
    columns = (
        Column("preset", ("", "preset"), "left", NAME),
        Column("TPS", ("", "TPS")),
        Column(f"over {result.against}", ("over", result.against)),
        Column("from", ("95%", "from")),
        Column("to", ("", "to")),
        Column("a commit waits for", ("a commit", "waits for"), "left"),
        Column("a power failure can", ("a power", "failure can"), "left"),
    )
    runs = {run.arm: run for run in report.runs}
    rows = tuple(_row(one, runs.get(one.name), report, result) for one in result.presets)
    return Table(columns, rows, leaving=("a commit waits for",))


def _row(one: MeasuredPreset, run: Run | None, report: Report, result: PresetComparison) -> tuple[str, ...]:
    rates = [rate for trial in run.valid if (rate := finite(trial.tps)) is not None] if run else []
    tps = count_cell(median(rates)) if rates else None
    gain = ("1", MISSING, MISSING) if one.name == result.against else cells(one.gain, MISSING)
    return one.name, tps or MISSING, *gain, _waited(one, report), _short(one)


def _waited(one: MeasuredPreset, report: Report) -> str:
    """Return what a commit waits for, in a few words."""
    found = durability_of(one.effective, report.environment.sync)
    if found is None:
        return MISSING
    return waits(found).removeprefix("each commit waits for ") if found.syncs else "nothing"


def _short(one: MeasuredPreset) -> str:
    """Return what a power failure can do, in a few words."""
    words = {"good": "take nothing", "lost": "take commits", "torn": "tear", "corrupt": "corrupt"}
    found = durability_of(one.effective, None)
    return words[risk(found.journal, found.level).worst] if found else MISSING


def _risks(result: PresetComparison) -> Iterator[str]:
    """Yield what a power failure can do with the presets, those together of which it can do the same."""
    names: dict[str, list[str]] = {}
    for one in result.presets:
        if found := durability_of(one.effective, None):
            clause = (
                risk(found.journal, found.level).told or "a power failure takes nothing that was committed"
            )
            names.setdefault(clause, []).append(one.name)
    for clause, own in names.items():
        yield f"{', '.join(own)}: {clause}."


def _about(presets: Iterable[MeasuredPreset]) -> Iterator[str]:
    """Yield whose settings they are, where from, and what of them is not measured."""
    for one in presets:
        if one.source:
            apart = f" Not measured: {'; '.join(one.apart)}." if one.apart else ""
            where = f"{one.source}, {one.looked_up}"
            yield f"{one.name} ({one.project}): {shlex.join(one.options)}.{apart} {where}."


def _notes(report: Report, result: PresetComparison) -> Iterator[str]:
    for one in result.presets:
        if one.error:
            yield f"{one.name} was not measured to the end: {one.error.removesuffix('.')}."
    for group in group_runs(report.runs):
        yield from (phrase(finding) for finding in chain(wrong_data(group), partial_proofs(group)))


def listed(presets: Iterable[Preset]) -> Iterator[Block]:
    """Yield the presets that there are: what each sets, what it risks, and where it was published."""
    for one in presets:
        told_of = one.risk or "a power failure takes nothing that was committed"
        apart = f" Not measured: {'; '.join(one.apart)}." if one.apart else ""
        yield Lines(
            (
                f"{one.name}: {one.project}.",
                f"{shlex.join(one.words)}",
                f"{told_of[0].upper()}{told_of[1:]}.{apart}",
                f"{one.source}, {one.looked_up}.",
            )
        )
