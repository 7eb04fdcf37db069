"""sqlstress ab: two settings, or two Pythons, measured in turns until it is known which is better."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqlstress.cli.of_experiment import command, others
from sqlstress.cli.options import slice_options, typed, with_options
from sqlstress.cli.words import given_in
from sqlstress.errors import UsageError
from sqlstress.experiment import DEFAULT
from sqlstress.options.dsn import NAME as DSN
from sqlstress.options.dsn import redacted
from sqlstress.options.option import REST
from sqlstress.report.case import Case
from sqlstress.studies.ab_options import GATE, ab_options, defaults, load_options

if TYPE_CHECKING:
    from sqlstress.engine.study import Opening
    from sqlstress.report import AbTest
    from sqlstress.studies.slices import SliceBench

_GATE = {option.name for option in GATE}

Given = dict[str, Any]
"""Unparsed values by option name."""
HELP = f"""Compare B with A on this machine: short slices in turns, until a drop is shown or ruled out.

Options of the load are common to both arms. Exits 0 when B passes, 1 when it fails. With {others()}
behind `ab` it is your own work, with its options: --a and --b may be two versions of it.
"""


def made(experiment: str) -> click.Command:
    """Return the command for an experiment."""

    @with_options(ab_options(experiment))
    @command(
        experiment,
        made,
        help=HELP,
        epilog='Example: sqlstress ab --a "--synchronous full" --b "--synchronous normal" --concurrency 4',
    )
    @slice_options
    def ab(**given: Any) -> int:
        return _compare(experiment, **given)

    return ab


def _compare(
    experiment: str,
    directory: Path,
    outputs: tuple[str, ...],
    github: bool,
    quiet: bool,
    no_progress: bool,
    **given: Any,
) -> int:
    from sqlstress.cli.measure import measure
    from sqlstress.cli.saver import Saver
    from sqlstress.statistics.gate import MOST, looks
    from sqlstress.studies.ab import AbStudy

    asked = typed(given)
    gate = {name: value for name, value in asked.items() if name in _GATE}
    common = {name: value for name, value in asked.items() if name not in _GATE}
    arms = _arms(experiment, gate, common)
    cases = _cases(experiment, arms)
    test = _test(gate, cases[0][0].seed)
    return measure(
        AbStudy(cases, test, looks(test.max_pairs or MOST)),
        _opening(experiment, gate, arms, cases, directory),
        Saver.of(outputs, github, quiet),
        strict=bool(gate.get("strict")),
        progress=not (quiet or no_progress),
    )


def _arms(experiment: str, gate: Given, common: Given) -> tuple[Given, Given]:
    """Return the options of both arms. Raises UsageError when there is nothing to compare."""
    if ("python-a" in gate) != ("python-b" in gate):
        raise UsageError("--python-a and --python-b belong together: give both.")
    if not gate.keys() & {"a", "b", "python-a"}:
        raise UsageError(
            'nothing to compare: give --a "OPTIONS" and --b "OPTIONS", or --python-a and --python-b.'
        )
    a, b = (_merged(experiment, common, _parsed(experiment, name, gate)) for name in "ab")
    return a, b


def _parsed(experiment: str, name: str, gate: Given) -> Given:
    """Return the options of one arm alone. Raises UsageError that names it."""
    try:
        words = shlex.split(gate.get(name, ""))
    except ValueError as error:
        raise UsageError(f"--{name}: {error}. It takes options of the load.") from error
    return given_in(words, load_options(experiment), f"--{name}")


def _merged(experiment: str, common: Given, own: Given) -> Given:
    """Return the options of an arm: its own take the place of common ones, those of a list come beside them.

    But a command is one, whatever its words are.
    """
    wholes = {one.name for one in load_options(experiment) if one.argument == REST}
    lists = {
        name: (*common.get(name, ()), *value)
        for name, value in own.items()
        if isinstance(value, tuple) and name not in wholes
    }
    given = {**common, **own, **lists}
    return {**defaults(given, experiment), **given}


def _cases(experiment: str, arms: tuple[Given, Given]) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    """Return the cells of both arms, all of one seed."""
    from sqlstress.plan import cases_of, seeded

    seed = seeded({**arms[0], **arms[1]})["seed"]
    a, b = (cases_of({**arm, "seed": seed, "repeat": 1}, experiment) for arm in arms)
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
        Arm(name.upper(), redacted(shlex.split(gate.get(name, ""))), gate.get(f"python-{name}"))
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
    experiment: str,
    gate: Given,
    arms: tuple[Given, Given],
    cases: tuple[tuple[Case, ...], tuple[Case, ...]],
    directory: Path,
) -> Opening[SliceBench]:
    from sqlstress.cli.measure import command_line
    from sqlstress.studies.python import Python
    from sqlstress.studies.same_loop import check_loops
    from sqlstress.studies.slices import OtherPythons, OwnPython

    if "python-a" not in gate:
        check_loops((cases[0][0], cases[1][0]), arms)
        return OwnPython((*cases[0], *cases[1]), directory, command_line())
    if any(DSN in arm for arm in arms):
        raise UsageError(f"--{DSN} is for this Python: another one would show it to all as its argument.")
    a, b = (
        Python(gate[f"python-{name}"], arm, directory, experiment)
        for name, arm in zip("ab", arms, strict=True)
    )
    return OtherPythons((a, b), (cases[0][0], cases[1][0]), command_line())


ab = made(DEFAULT)
