"""What the options of a comparison ask for: a list of the presets, or a study over the cases of a load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlstress.display.blocks import Block
from sqlstress.engine.study import Asked, ReadWords
from sqlstress.errors import UsageError
from sqlstress.experiment import DEFAULT as MAIN
from sqlstress.experiment import Experiment, commands
from sqlstress.experiments.presets.catalogue import DEFAULT, Preset, catalogue
from sqlstress.experiments.presets.result import MeasuredPreset, PresetComparison
from sqlstress.experiments.presets.shown import listed
from sqlstress.experiments.presets.spec import Compared
from sqlstress.experiments.presets.study import PresetStudy
from sqlstress.options.option import options_of
from sqlstress.plan import cases_of, options_of_command, parsed, seeded, suggestion
from sqlstress.plan.rate import AT_A_RATE
from sqlstress.report.case import Case

EVERY = "all"
_OTHERWISE = {"concurrency": "4", "duration": "1s", "warmup": "300ms"}
"""Options of the load that mean something else where there is a single trial to a slice."""
_NOT_HERE = ("repeat", "max-failed", "preset", *AT_A_RATE)
"""Options of a load that mean nothing where slices are measured in turns."""


def asked(given: Mapping[str, Any], read: ReadWords) -> Asked | tuple[Block, ...]:
    """Return what options ask for, as they were typed. Raises UsageError."""
    known = {one.name: one for one in options_of(Compared).values()}
    own = {name: parsed(option, given.get(name, option.default)) for name, option in known.items()}
    if own["compare"] is None:
        for name in given:
            what = "a load" if name == "load" else f"--{name}"
            raise UsageError(f"{what} is for presets that are measured: name them, --compare rails,django.")
        return tuple(listed(catalogue().values()))
    chosen = _chosen(own["compare"], own["against"])
    cases = _cases(own["load"], chosen, read)
    (against, base), *_ = cases.items()
    comparison = PresetComparison(
        base,
        against,
        own["rounds"],
        presets=tuple(_measured(name, preset) for name, preset in chosen.items()),
        max_time_s=own["max-time"],
    )
    return Asked(PresetStudy(comparison, cases), tuple(cases.values()), bool(own["strict"]))


def _chosen(names: tuple[str, ...], against: str) -> dict[str, Preset | None]:
    """Return presets by name, first the one that others are set against; None is the load's own settings."""
    known = catalogue()
    named = dict.fromkeys([against, *(known if names == (EVERY,) else names)])
    for name in named:
        if name not in known and name != DEFAULT:
            raise UsageError(
                f"there is no preset {name!r:.60}.{suggestion(name, known)} There are {', '.join(known)}; "
                f"{DEFAULT} is your own settings."
            )
    if len(named) < 2:
        raise UsageError("one preset has nothing beside it: name another one.")
    return {name: known.get(name) for name in named}


def _cases(words: Sequence[str], chosen: Mapping[str, Preset | None], read: ReadWords) -> dict[str, Case]:
    """Return the case of each preset. Raises UsageError for a load that can't be compared."""
    command, rest = _command(words)
    options = [one for one in options_of_command(command) if one.name not in _NOT_HERE]
    given = read(rest, options, "behind --")
    names = {one.name for one in options}
    counted = ("duration", "warmup") if "ops" in given else ()
    usual = {name: value for name, value in _OTHERWISE.items() if name in names and name not in counted}
    load = seeded({**usual, **given})
    return {name: _case(command, load, preset) for name, preset in chosen.items()}


def _command(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the command of a load, and its words; that of the main experiment need not be named."""
    known = [name for name, one in commands().items() if _is_load(one)]
    if not words or words[0].startswith("-"):
        return MAIN, words
    if words[0] in known:
        return words[0], words[1:]
    raise UsageError(
        f"{words[0]!r:.60} is no load: behind -- stand options of {MAIN}, or one of {', '.join(known)} and "
        "its options."
    )


def _is_load(one: Experiment) -> bool:
    """Say whether an experiment has a window, and connections that a preset can set."""
    return one.windowed and one.connects and one.sets


def _case(command: str, load: Mapping[str, Any], preset: Preset | None) -> Case:
    """Return the one case of a load, with the settings of a preset in the place of its own."""
    given = dict(load)
    if preset:
        given |= {**preset.settings, "pragma": (*load.get("pragma", ()), *preset.pragmas)}
    cases = cases_of(given, command)
    if len(cases) != 1:
        raise UsageError(f"these are {len(cases):,} cases: a load is one, such as --concurrency 4.")
    return replace(cases[0], repeat=1, max_failed=1.0)


def _measured(name: str, preset: Preset | None) -> MeasuredPreset:
    if preset is None:
        return MeasuredPreset(name)
    return MeasuredPreset(name, preset.project, preset.source, preset.looked_up, preset.words, preset.apart)
