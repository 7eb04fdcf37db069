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
from sqlstress.studies.ab_options import Given, ab_options, load_options, merged, of_gate_and_load

if TYPE_CHECKING:
    from sqlstress.engine.study import Opening
    from sqlstress.report import Arm
    from sqlstress.studies.ab_asked import Cells
    from sqlstress.studies.slices import SliceBench

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
    from sqlstress.studies.ab_asked import cells, study_of

    gate, common = of_gate_and_load(typed(given))
    arms = _arms(experiment, gate, common)
    cases = cells(experiment, arms)
    return measure(
        study_of(cases, gate, _named(gate)),
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
    a, b = (merged(experiment, common, _parsed(experiment, name, gate)) for name in "ab")
    return a, b


def _parsed(experiment: str, name: str, gate: Given) -> Given:
    """Return the options of one arm alone. Raises UsageError that names it."""
    try:
        words = shlex.split(gate.get(name, ""))
    except ValueError as error:
        raise UsageError(f"--{name}: {error}. It takes options of the load.") from error
    return given_in(words, load_options(experiment), f"--{name}")


def _named(gate: Given) -> tuple[Arm, Arm]:
    """Return the arms as they were typed."""
    from sqlstress.report import Arm

    a, b = (
        Arm(name.upper(), redacted(shlex.split(gate.get(name, ""))), gate.get(f"python-{name}"))
        for name in ("a", "b")
    )
    return a, b


def _opening(
    experiment: str, gate: Given, arms: tuple[Given, Given], cases: Cells, directory: Path
) -> Opening[SliceBench]:
    from sqlstress.cli.measure import command_line
    from sqlstress.studies.ab_asked import own_python
    from sqlstress.studies.python import Python
    from sqlstress.studies.slices import OtherPythons

    if "python-a" not in gate:
        return own_python(arms, cases, directory, command_line())
    if any(DSN in arm for arm in arms):
        raise UsageError(f"--{DSN} is for this Python: another one would show it to all as its argument.")
    a, b = (
        Python(gate[f"python-{name}"], arm, directory, experiment)
        for name, arm in zip("ab", arms, strict=True)
    )
    return OtherPythons((a, b), (cases[0][0], cases[1][0]), command_line())


ab = made(DEFAULT)
