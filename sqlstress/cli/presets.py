"""sqlstress presets: published settings of well-known projects, listed, or measured on a load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqlstress.cli.options import GroupedCommand, slice_options, typed, with_options
from sqlstress.cli.words import given_in
from sqlstress.errors import UsageError
from sqlstress.experiment import DEFAULT as MAIN
from sqlstress.experiment import commands, face_of
from sqlstress.experiments.presets.spec import OPTIONS
from sqlstress.plan.rate import AT_A_RATE

if TYPE_CHECKING:
    from sqlstress.experiments.presets.catalogue import Preset
    from sqlstress.report.case import Case

_OWN = {option.name: option for option in OPTIONS}
_OTHERWISE = {"concurrency": "4", "duration": "1s", "warmup": "300ms"}
"""Options of the load that mean something else where there is a single trial to a slice."""
_NOT_HERE = ("repeat", "max-failed", "preset", "keep", *AT_A_RATE)
"""Options of a load that mean nothing where slices are measured in turns."""
EVERY = "all"


@with_options(OPTIONS)
@click.command(
    cls=GroupedCommand,
    epilog="Example: sqlstress presets --compare rails,django,pocketbase -- --concurrency 4",
)
@slice_options
def presets(
    directory: Path, outputs: tuple[str, ...], github: bool, quiet: bool, no_progress: bool, **given: Any
) -> int:
    """List published settings of well-known projects, or measure some in turns on your load (--compare).

    Each with its source, and what a power failure can take. Your own settings are the measure of the
    others, unless --against says another one.
    """
    from sqlstress.cli.measure import command_line, measure
    from sqlstress.cli.saver import Saver
    from sqlstress.engine.session import Session
    from sqlstress.experiments.presets.catalogue import catalogue
    from sqlstress.experiments.presets.result import PresetComparison
    from sqlstress.experiments.presets.study import PresetStudy
    from sqlstress.plan import parsed

    asked = typed(given)
    own = {name: parsed(option, asked.get(name, option.default)) for name, option in _OWN.items()}
    if own["compare"] is None:
        return _list([name for name in asked if name != "compare"], outputs)
    chosen = _chosen(own["compare"], own["against"], catalogue())
    cases = _cases(own["load"] or (), chosen)
    base = next(iter(cases.values()))
    comparison = PresetComparison(
        base,
        next(iter(chosen)),
        own["rounds"],
        0,
        tuple(map(_told, chosen, chosen.values())),
        own["max-time"],
    )
    return measure(
        PresetStudy(comparison, cases),
        Session(tuple(cases.values()), directory, False, command_line()),
        Saver.of(outputs, github, quiet),
        strict=bool(own["strict"]),
        progress=not (quiet or no_progress),
    )


def _list(others: Sequence[str], outputs: Sequence[str]) -> int:
    """Print the presets that there are."""
    from sqlstress.cli.console import say
    from sqlstress.experiments.presets.catalogue import catalogue
    from sqlstress.experiments.presets.shown import listed
    from sqlstress.render.text import drawn

    if others or outputs:
        name = "-o" if outputs else "a load" if others[0] == "load" else f"--{others[0]}"
        raise UsageError(f"{name} is for presets that are measured: name them, --compare rails,django.")
    say("\n\n".join(map(drawn, listed(catalogue().values()))))
    return 0


def _chosen(text: str, against: str, known: Mapping[str, Preset]) -> dict[str, Preset | None]:
    """Return the presets by name, first what they are set against; None is the load's own settings."""
    from sqlstress.experiments.presets.catalogue import DEFAULT
    from sqlstress.plan import suggestion

    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    named = dict.fromkeys([against.strip().lower(), *(known if names == [EVERY] else names)])
    for name in named:
        if name not in known and name != DEFAULT:
            raise UsageError(
                f"there is no preset {name!r:.60}.{suggestion(name, known)} There are {', '.join(known)}; "
                f"{DEFAULT} is your own settings."
            )
    if len(named) < 2:
        raise UsageError("one preset has nothing beside it: name another one.")
    return {name: known.get(name) for name in named}


def _cases(words: Sequence[str], chosen: Mapping[str, Preset | None]) -> dict[str, Case]:
    """Return the case of each preset. Raises UsageError for a load that can't be compared."""
    from sqlstress.plan import options_of_command, seeded

    command, rest = _command(words)
    options = [one for one in options_of_command(command) if one.name not in _NOT_HERE]
    given = given_in(rest, options, "behind --")
    names = {one.name for one in options}
    counted = ("duration", "warmup") if "ops" in given else ()
    usual = {name: value for name, value in _OTHERWISE.items() if name in names and name not in counted}
    load = seeded({**usual, **given})
    return {name: _case(command, load, preset) for name, preset in chosen.items()}


def _command(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the command of a load, and its words; that of the main experiment need not be named."""
    if not words or words[0].startswith("-"):
        return MAIN, words
    if words[0] in commands():
        return words[0], words[1:]
    raise UsageError(
        f"{words[0]!r:.60} is no load: behind -- stand options of {MAIN}, or one of {', '.join(commands())} "
        "and its options."
    )


def _case(command: str, load: Mapping[str, Any], preset: Preset | None) -> Case:
    """Return the one case of a load with the settings of a preset in the place of its own."""
    from sqlstress.plan import cases_of

    given = dict(load)
    if preset:
        given |= {**preset.settings, "pragma": (*load.get("pragma", ()), *preset.pragmas)}
    cases = cases_of(given, command)
    if len(cases) != 1:
        raise UsageError(f"these are {len(cases):,} cases: a load is one, such as --concurrency 4.")
    (case,) = cases
    face = face_of(case)
    if face.study or not face.connects:
        raise UsageError(f"{command} has no connections of ours that a preset could set: use kv or sql.")
    return replace(case, repeat=1, max_failed=1.0)


def _told(name: str, preset: Preset | None) -> Any:
    from sqlstress.experiments.presets.result import MeasuredPreset

    if preset is None:
        return MeasuredPreset(name)
    return MeasuredPreset(name, preset.project, preset.source, preset.looked_up, preset.words, preset.apart)
