"""sqlstress ab: two settings, or two Pythons, measured in turns until it is known which is better."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqlstress.cli.common_options import github_option, output_option, slice_options, typed, with_options
from sqlstress.cli.group import experiment_command, given_in, others
from sqlstress.cli.outputs import Step, beside, complain, parse_outputs, say, take_stdout
from sqlstress.errors import UsageError
from sqlstress.experiment import DEFAULT
from sqlstress.options.dsn import NAME as DSN
from sqlstress.options.dsn import redacted
from sqlstress.show.endings import BAD, FINE, UNSURE
from sqlstress.show.formats import CHECK_FORMATS
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE
from sqlstress.studies.ab import GATE, Given, ab_options, load_options, merged, of_gate_and_load
from sqlstress.studies.limit import limit_options
from sqlstress.system.importing import no_search

if TYPE_CHECKING:
    from sqlstress.engine.study import Opening
    from sqlstress.report import Arm
    from sqlstress.studies.ab import Cells
    from sqlstress.studies.slices import SliceBench


AB_HELP = f"""Compare B with A on this machine: short slices in turns, until a drop is shown or ruled out.

Options of the load are common to both arms. Exits 0 when B passes, 1 when it fails. With {others()}
behind `ab` it is your own work, with its options: --a and --b may be two versions of it.
"""


def ab_command(experiment: str) -> click.Command:
    """Return the command for an experiment."""

    @with_options(ab_options(experiment))
    @experiment_command(
        experiment,
        ab_command,
        help=AB_HELP,
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
    from sqlstress.cli.outputs import Saver
    from sqlstress.studies.ab import cells, study_of

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
    from sqlstress.studies.ab import own_python
    from sqlstress.studies.slices import OtherPythons, Python

    if "python-a" not in gate:
        return own_python(arms, cases, directory, command_line())
    if any(DSN in arm for arm in arms):
        raise UsageError(f"--{DSN} is for this Python: another one would show it to all as its argument.")
    a, b = (
        Python(gate[f"python-{name}"], arm, directory, experiment)
        for name, arm in zip("ab", arms, strict=True)
    )
    return OtherPythons((a, b), (cases[0][0], cases[1][0]), command_line())


ab = ab_command(DEFAULT)


# sqlstress limit: the highest rate that holds a promise.


LIMIT_HELP = f"""Find the highest rate at which operations are done as soon as promised, none fails, and none
piles
up.

A rate holds when every one of 6 windows kept the promise, and does not hold when none did. What lies
between can't be told on this machine. With {others()} behind `limit` it is your own work, with its options.
"""


def limit_command(experiment: str) -> click.Command:
    """Return the command for an experiment."""

    @with_options(limit_options(experiment))
    @experiment_command(
        experiment,
        limit_command,
        help=LIMIT_HELP,
        epilog="Example: sqlstress limit --p99 10ms --concurrency 4",
    )
    @slice_options
    def limit(**given: Any) -> int:
        return _search(experiment, **given)

    return limit


def _search(
    experiment: str,
    directory: Path,
    outputs: tuple[str, ...],
    github: bool,
    quiet: bool,
    no_progress: bool,
    **given: Any,
) -> int:
    from sqlstress.cli.measure import command_line, measure
    from sqlstress.cli.outputs import Saver
    from sqlstress.engine.session import Session
    from sqlstress.studies.limit import search_for

    study = search_for(typed(given), experiment)
    return measure(
        study,
        Session((study.case,), directory, False, command_line()),
        Saver.of(outputs, github, quiet),
        strict=bool(given["strict"]),
        progress=not (quiet or no_progress),
    )


limit = limit_command(DEFAULT)


# sqlstress check: a saved report against its baseline.


_SHARED = tuple(option for option in GATE if option.name in ("metric", "max-drop", "strict"))


@with_options(_SHARED)
@click.command(epilog="Example: sqlstress check baseline.json report.json --max-drop 20%")
@click.argument("baseline", type=click.Path(path_type=Path), metavar="BASELINE.json")
@click.argument("current", type=click.Path(path_type=Path), metavar="CURRENT.json")
@output_option("Save what is found", tuple(CHECK_FORMATS))
@github_option
@no_search()
def check(baseline: Path, current: Path, outputs: tuple[str, ...], github: bool, **given: Any) -> int:
    """Check a report against a stored one, from five trials or more of each case (--repeat 5).

    Exits 0 when it passes, 1 when it fails. A stored baseline cries wolf: where you can, use sqlstress ab.
    """
    from sqlstress.analysis.baseline import check as checked_against
    from sqlstress.plan import parsed
    from sqlstress.report import read
    from sqlstress.show.ab_view import check_conclusion
    from sqlstress.show.github import check_commands, check_summary
    from sqlstress.show.text import check_text

    written = parse_outputs(outputs, CHECK_FORMATS)
    step = Step.here(beside(written)) if github else None
    given = typed(given)
    request = {option.name: parsed(option, given.get(option.name, option.default)) for option in _SHARED}
    metric, max_drop = request["metric"], request["max-drop"]
    checked = checked_against(read(baseline), read(current), metric, max_drop)
    if not take_stdout(written):
        say(check_text(checked, metric, max_drop), end="")
    for output in written:
        output.write(CHECK_FORMATS[output.format](checked, metric, max_drop))
    if step:
        step.show(check_commands(checked, metric, max_drop), check_summary(checked, metric, max_drop))
    if checked.verdict == FAIL:
        complain(f"Error: {check_conclusion(checked, metric, max_drop)}")
        return BAD
    return UNSURE if checked.verdict == INCONCLUSIVE and request["strict"] else FINE
