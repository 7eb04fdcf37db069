"""How both searches for settings are shown: what each setting gains, what it risks, and what to set."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat
from statistics import median
from typing import Any

from sqlstress.analysis.advice import partial_proofs, wrong_data
from sqlstress.analysis.durability import durability_of, waits
from sqlstress.analysis.finding import PROVED, UNTOLD, WRONG, Conclusion, Finding, Part
from sqlstress.analysis.group import Group, group_runs
from sqlstress.analysis.wording import (
    EQUAL,
    cells,
    duration,
    finite,
    gained,
    interval,
    listing,
    plural,
    times,
)
from sqlstress.experiment import face_of
from sqlstress.experiments.tune.experiment import (
    SQLITE,
    YOURS,
    MeasuredPreset,
    Preset,
    PresetComparison,
    TunedRow,
    Tuning,
)
from sqlstress.report import Report, Run
from sqlstress.report.power_failure import risk
from sqlstress.show import heading
from sqlstress.show.blocks import (
    FAILED,
    MISSING,
    NAME,
    Block,
    Bullets,
    Column,
    Lines,
    Note,
    Table,
    Verdict,
    count_cell,
    whole_cell,
)
from sqlstress.show.phrases import phrase
from sqlstress.show.shown import ResultShown, Tile
from sqlstress.statistics.compare import DIFFERENT
from sqlstress.statistics.compare import EQUAL as AS_GOOD
from sqlstress.statistics.units import NS_PER_S, format_duration

DEFAULT = "the default"
LONGER = 3
"""How many times as long is advised where nothing could be told."""
EFFECTS = (
    "Over the default: by least squares over {slices} of a balanced design, whatever the other settings are. "
    "All intervals hold together with a probability of 95%."
)
RACE = (
    "The race: rounds in turns; settings that are clearly worse than the leader leave it. The race "
    "favours the settings that it selects, so the verdict uses pairs measured afterwards."
)
LEGEND = (
    "TPS: the median of the slices. Over {base}: the mean of the ratios of all rounds, with its interval. "
    "All intervals hold together with a probability of 95%, including those of any two presets."
)
_OVER_THE_DEFAULT = Column("over the default")
_ENDS = (Column("from", ("95%", "from")), Column("to"))


def _heading(report: Report, group: Group, title: str, said: Iterable[str]) -> Lines:
    """Return what was done with which load, and what a reader must know of the machine."""
    every = Group(group.case, report.runs or group.runs)
    return Lines(
        (
            heading.describe(f"{title}. {face_of(group.case).show().what(group)}", group, report),
            *said,
            *heading.warnings(every, report.environment, ()),
        )
    )


def _of_data(report: Report) -> Iterator[str]:
    for group in group_runs(report.runs):
        yield from (phrase(finding) for finding in chain(wrong_data(group), partial_proofs(group)))


def _took(seconds: float) -> str:
    return duration((finite(seconds) or 0.0) * NS_PER_S)


class TuningShown(ResultShown[Tuning]):
    """A search for better settings."""

    def part(self, result: Tuning) -> Part:
        name = "search for better settings"
        return Part(name, tune_verdict(result), result.seconds, result.error, "tune", "Better settings")

    def result_blocks(self, report: Report, result: Tuning) -> Iterator[Block]:
        own = tuple(run for run in report.runs if run.case == result.case) or (Run(result.case),)
        group = Group(result.case, own)
        searched = (
            f"Searched: {listing([*result.factors])}. Journal mode, synchronous and batch stay as they are."
        )
        said = (*heading.durability(group, report.environment), searched)
        yield _heading(report, group, "Search for better settings", said)
        if effects := [level for level in result.levels if level.gain]:
            columns = (
                Column("setting", align="left", role=NAME),
                Column("value", role=NAME),
                _OVER_THE_DEFAULT,
                *_ENDS,
            )
            rows = ((level.factor, level.value, *cells(level.gain, MISSING)) for level in effects)
            yield Table(columns, tuple(rows))
            yield Note(EFFECTS.format(slices=plural(result.designed, "slice")))
        if result.raced:
            yield _race(result)
            yield Note(RACE)
        yield Verdict(phrase(tune_verdict(result).finding))
        refused = (f"Not used: {text.removesuffix('.')}." for text in result.refused)
        ended = (f"Ended early: {result.error.removesuffix('.')}.",) if result.error else ()
        if notes := (*_paste(result), *refused, *ended, *_of_data(report)):
            yield Bullets(notes)

    def tiles(self, result: Tuning) -> Iterator[Tile]:
        gain, options = result.gain, shlex.join(result.chosen)
        said = gained(gain)
        if result.wrong is not None:
            yield FAILED, "the data is wrong", "failed"
        # What is more by ever so little is shown as such here.
        elif gain and gain.low > 1:
            yield times(gain.ratio), f"the default, {interval(gain)}: {options}", "ok"
        elif said in (DIFFERENT, AS_GOOD):
            yield DEFAULT, "is as good as what was found", "ok"
        else:
            yield "cannot tell", "whether anything is better than the default", "unknown"
        yield _took(result.seconds), "of searching", ""

    def progress(self, result: Tuning) -> str:
        raced = f" and a race of {len(result.raced)}" if result.raced else ""
        return f"{plural(result.designed, 'slice')} of the design{raced}"


def tune_verdict(found: Tuning) -> Conclusion:
    """Return what to set."""
    gain, said = found.gain, gained(found.gain)
    if found.wrong is not None:
        return Conclusion(WRONG, Finding("study-wrong", example=found.wrong))
    longer = format_duration(LONGER * (finite(found.max_time_s) or 0.0))
    if gain is None:
        ended_early = (finite(found.seconds) or 0.0) < (finite(found.max_time_s) or 0.0) / 2
        more = None if ended_early else longer
        return Conclusion(UNTOLD, Finding("tune-too-little", ended_early=ended_early, longer=more))
    facts: dict[str, Any] = {"options": shlex.join(found.chosen), "gain": gain, "pairs": gain.rounds}
    if said == AS_GOOD:
        return Conclusion(PROVED, Finding("tune-equal", share=EQUAL, **facts))
    if said == DIFFERENT:
        return Conclusion(PROVED, Finding("tune-better" if gain.low > 1 else "tune-worse", **facts))
    return Conclusion(UNTOLD, Finding("tune-unclear", longer=longer, **facts))


def _race(found: Tuning) -> Table:
    names = []
    for name in found.factors:
        first, dash, rest = name.partition("-")
        names.append(Column(name, (f"{first}{dash}", rest) if rest else ("", name), role=NAME))

    def cells_of(row: TunedRow) -> tuple[str, ...]:
        values = islice(chain((value or MISSING for value in row.values), repeat(MISSING)), len(names))
        figures = cells(row.gain, MISSING) if any(row.values) else ("1", MISSING, MISSING)
        return (*values, whole_cell(row.rounds), *figures, "" if row.races else "yes")

    columns = (
        *names,
        Column("rounds"),
        _OVER_THE_DEFAULT,
        *_ENDS,
        Column("left the race", ("left", "the race"), "left"),
    )
    return Table(columns, tuple(map(cells_of, found.raced)), leaving=("left the race", "from", "to"))


def _paste(found: Tuning) -> Iterator[str]:
    """Yield the line to paste, and what it changes beside the figures."""
    if found.gain is None or gained(found.gain) != DIFFERENT or found.gain.low <= 1:
        return
    if found.pragmas:
        yield f"To paste: {'; '.join(found.pragmas)};"
    chosen = dict(zip(found.chosen[::2], found.chosen[1::2], strict=False))
    if "--page-size" in chosen:
        yield (
            "page_size is set in a new database. To change an existing one, run VACUUM while it is not in "
            "WAL mode."
        )
    if "--checkpointer" in chosen:
        yield f"One more process checkpoints, {chosen['--checkpointer'].upper()}, every 20ms."
    if "--busy" in chosen:
        yield "--busy fair needs your own busy handler, with waits that grow with the number of waiters."
    if "--buckets" in chosen:
        yield f"The keys are hash-partitioned over {chosen['--buckets']} buckets: no transaction spans two."
    fewer_checkpoints = chosen.keys() & {"--wal-autocheckpoint", "--checkpointer"}
    if fewer_checkpoints and found.case.settings.synchronous == "normal":
        yield (
            "With synchronous=NORMAL a power failure can lose what was committed since the last checkpoint. "
            "Fewer checkpoints mean a larger loss."
        )


NOTHING_LOST = "a power failure loses nothing that was committed"


class PresetsShown(ResultShown[PresetComparison]):
    """A comparison of published settings."""

    def part(self, result: PresetComparison) -> Part:
        name = "comparison of presets"
        return Part(name, preset_verdict(result), result.seconds, result.error, "presets", "Presets")

    def result_blocks(self, report: Report, result: PresetComparison) -> Iterator[Block]:
        own = tuple(run for run in report.runs if run.arm == result.against) or (Run(result.case),)
        rounds = (
            f"{self.progress(result)}, each with a slice of each preset, in random order; "
            f"{_took(result.seconds)}."
        )
        base = next((preset for preset in result.presets if preset.name == result.against), None)
        waited = durability_of(base.effective, report.environment.sync) if base else None
        against = (f"Compared with {_base(result)}: {waited.name}.",) if waited else ()
        group = Group(result.case, own)
        yield _heading(report, group, "Published settings in turns", (rounds, *against))
        if report.runs:
            yield _table(report, result)
            yield Note(LEGEND.format(base=_base(result)))
        yield Verdict(phrase(preset_verdict(result).finding))
        abouts = (
            f"{preset.name} ({preset.project}): {shlex.join(preset.options)}.{_unmeasured(preset)} "
            f"{preset.source}, {preset.looked_up}."
            for preset in result.presets
            if preset.source
        )
        errors = (
            f"{preset.name} was only partly measured: {preset.error.removesuffix('.')}."
            for preset in result.presets
            if preset.error
        )
        yield Bullets((*_risks(result), *abouts, *errors, *_of_data(report)))

    def tiles(self, result: PresetComparison) -> Iterator[Tile]:
        if result.wrong is not None:
            yield FAILED, "the data is wrong", "failed"
            return
        for preset in result.presets:
            if gain := preset.gain:
                sure = gained(gain) in (DIFFERENT, AS_GOOD)
                what = f"{preset.name} over {result.against}: {interval(gain)}"
                yield times(gain.ratio) if sure else "cannot tell", what, "" if sure else "unknown"

    def progress(self, result: PresetComparison) -> str:
        return f"{result.rounds:,} of {plural(result.planned, 'round')}"


def preset_verdict(result: PresetComparison) -> Conclusion:
    """Return what each preset gains."""
    if result.wrong is not None:
        return Conclusion(WRONG, Finding("study-wrong", example=result.wrong))
    gains = {preset.name: preset.gain for preset in result.presets if preset.gain}
    if not gains:
        few, rounds = result.rounds == result.planned < 10, PresetsShown().progress(result)
        return Conclusion(UNTOLD, Finding("presets-too-few", rounds=rounds, planned_few=few))
    codes = {AS_GOOD: "preset-equal", DIFFERENT: "preset-gains"}
    compared = tuple(
        Finding(codes.get(gained(gain), "preset-unclear"), name=name, base=_base(result), gain=gain)
        for name, gain in gains.items()
    )
    unclear = tuple(name for name, gain in gains.items() if gained(gain) not in codes)
    enough = min(500, 4 * max(result.planned, 1)) if unclear else None
    status = UNTOLD if unclear else PROVED
    return Conclusion(status, Finding("presets-gain", gains=compared, unclear=unclear, enough=enough))


def _base(result: PresetComparison) -> str:
    own = "your own settings"
    names = {SQLITE: "SQLite's defaults", YOURS: own, "default": own}
    return names.get(result.against, result.against)


def _table(report: Report, result: PresetComparison) -> Table:
    columns = (
        Column("preset", align="left", role=NAME),
        Column("TPS"),
        Column(f"over {result.against}", ("over", result.against)),
        *_ENDS,
        Column("a commit waits for", ("a commit", "waits for"), "left"),
        Column("a power failure can", ("a power", "failure can"), "left"),
    )
    runs = {run.arm: run for run in report.runs}
    harms = {"good": "lose nothing", "lost": "lose commits", "torn": "tear", "corrupt": "corrupt"}

    def cells_of(preset: MeasuredPreset) -> tuple[str, ...]:
        run = runs.get(preset.name)
        rates = [rate for trial in run.valid if (rate := finite(trial.tps)) is not None] if run else []
        tps = (count_cell(median(rates)) if rates else None) or MISSING
        is_base = preset.name == result.against
        gain = ("1", MISSING, MISSING) if is_base else cells(preset.gain, MISSING)
        found = durability_of(preset.effective, report.environment.sync)
        if found is None:
            return preset.name, tps, *gain, MISSING, MISSING
        waited = waits(found).removeprefix("each commit waits for ") if found.syncs else "nothing"
        return preset.name, tps, *gain, waited, harms[risk(found.journal, found.level).worst]

    return Table(columns, tuple(map(cells_of, result.presets)), leaving=("a commit waits for",))


def _risks(result: PresetComparison) -> Iterator[str]:
    """Yield what a power failure can do with the presets, those together of which it can do the same."""
    names: dict[str, list[str]] = {}
    for preset in result.presets:
        if found := durability_of(preset.effective, None):
            clause = risk(found.journal, found.level).told or NOTHING_LOST
            names.setdefault(clause, []).append(preset.name)
    for clause, own in names.items():
        yield f"{', '.join(own)}: {clause}."


def _unmeasured(preset: Preset | MeasuredPreset) -> str:
    return f" Not measured: {'; '.join(preset.apart)}." if preset.apart else ""


def listed(presets: Iterable[Preset]) -> Iterator[Block]:
    """Yield the presets that there are: what each sets, what it risks, and where it was published."""
    for preset in presets:
        risked = preset.risk or NOTHING_LOST
        yield Lines(
            (
                f"{preset.name}: {preset.project}.",
                f"{shlex.join(preset.words)}",
                f"{risked[0].upper()}{risked[1:]}.{_unmeasured(preset)}",
                f"{preset.source}, {preset.looked_up}.",
            )
        )
