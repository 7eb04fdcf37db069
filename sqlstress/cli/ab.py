"""sqlstress ab: two settings, or two Pythons, measured in turns until it is known which is better."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqlstress.cli.options import GroupedCommand, slice_options, with_options
from sqlstress.cli.words import given_in
from sqlstress.errors import UsageError
from sqlstress.report.case import Case
from sqlstress.studies.ab_options import GATE, ab_options, defaults

if TYPE_CHECKING:
    from sqlstress.engine.study import Opening
    from sqlstress.report import AbTest
    from sqlstress.studies.slices import SliceBench

_GATE = {option.name for option in GATE}

Given = dict[str, Any]
"""Unparsed values by option name."""


@with_options(ab_options())
@click.command(
    cls=GroupedCommand,
    epilog='Example: sqlstress ab --a "--synchronous full" --b "--synchronous normal" --concurrency 4',
)
@slice_options
def ab(
    directory: Path, outputs: tuple[str, ...], github: bool, quiet: bool, no_progress: bool, **given: Any
) -> int:
    """Compare B with A on this machine: short slices in turns, until a drop is shown or ruled out.

    Options of the load are common to both arms. Exits 0 when B passes, 1 when it fails.
    """
    from sqlstress.cli.measure import measure
    from sqlstress.cli.saver import Saver
    from sqlstress.statistics.gate import MOST, looks
    from sqlstress.studies.ab import AbStudy

    asked = {name.replace("_", "-"): value for name, value in given.items() if value not in (None, ())}
    gate = {name: value for name, value in asked.items() if name in _GATE}
    common = {name: value for name, value in asked.items() if name not in _GATE}
    arms = _arms(gate, common)
    cases = _cases(arms)
    test = _test(gate, cases[0][0].seed)
    return measure(
        AbStudy(cases, test, looks(test.max_pairs or MOST)),
        _opening(gate, arms, cases, directory),
        Saver.of(outputs, github, quiet),
        strict=bool(gate.get("strict")),
        progress=not (quiet or no_progress),
    )


def _arms(gate: Given, common: Given) -> tuple[Given, Given]:
    """Return the options of both arms. Raises UsageError when there is nothing to compare."""
    if ("python-a" in gate) != ("python-b" in gate):
        raise UsageError("--python-a and --python-b belong together: give both.")
    if not gate.keys() & {"a", "b", "python-a"}:
        raise UsageError(
            'nothing to compare: give --a "OPTIONS" and --b "OPTIONS", or --python-a and --python-b.'
        )
    return _merged(common, _parsed("a", gate)), _merged(common, _parsed("b", gate))


def _parsed(name: str, gate: Given) -> Given:
    """Return the options of one arm alone. Raises UsageError that names it."""
    try:
        words = shlex.split(gate.get(name, ""))
    except ValueError as error:
        raise UsageError(f"--{name}: {error}. It takes options of the load.") from error
    return given_in(words, (one for one in ab_options() if one.name not in _GATE), f"--{name}")


def _merged(common: Given, own: Given) -> Given:
    """Return the options of an arm: its own take the place of common ones, PRAGMAs come beside them."""
    lists = {name: (*common.get(name, ()), *value) for name, value in own.items() if isinstance(value, tuple)}
    given = {**common, **own, **lists}
    return {**defaults(given), **given}


def _cases(arms: tuple[Given, Given]) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    """Return the cells of both arms, all of one seed."""
    from sqlstress.plan import cases_of, seeded

    seed = seeded({**arms[0], **arms[1]})["seed"]
    a, b = (cases_of({**arm, "seed": seed}) for arm in arms)
    if len(a) != len(b):
        raise UsageError(f"A has {len(a)} cells and B has {len(b)}: they are compared one with one.")
    return a, b


def _test(gate: Given, seed: int) -> AbTest:
    from sqlstress.plan import parsed
    from sqlstress.report import AbTest, Arm
    from sqlstress.report.ab import DRAWN
    from sqlstress.studies.ab import first_arm

    known = {option.name: option for option in GATE}
    metric, max_drop, max_pairs, max_time_s = (
        parsed(known[name], gate.get(name, known[name].default))
        for name in ("metric", "max-drop", "max-pairs", "max-time")
    )
    a, b = (
        Arm(name.upper(), tuple(shlex.split(gate.get(name, ""))), gate.get(f"python-{name}"))
        for name in ("a", "b")
    )
    return AbTest(
        metric,
        max_drop,
        (a, b),
        first_arm(seed),
        order=DRAWN,
        max_pairs=max_pairs,
        max_time_s=max_time_s,
    )


def _opening(
    gate: Given, arms: tuple[Given, Given], cases: tuple[tuple[Case, ...], tuple[Case, ...]], directory: Path
) -> Opening[SliceBench]:
    from sqlstress.cli.measure import command_line
    from sqlstress.studies.same_loop import check_loops
    from sqlstress.studies.slices import OtherPythons, OwnPython, Python

    if "python-a" not in gate:
        check_loops((cases[0][0], cases[1][0]), arms)
        return OwnPython((*cases[0], *cases[1]), directory, command_line())
    a, b = (Python(gate[f"python-{name}"], arm, directory) for name, arm in zip("ab", arms, strict=True))
    return OtherPythons((a, b), (cases[0][0], cases[1][0]), command_line())
