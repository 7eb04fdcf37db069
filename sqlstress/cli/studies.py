"""Commands `sqlstress ab` (A/B test), `limit` (highest rate) and `check` (against a baseline).

An A/B test compares two arms (variants), A and B. The test is a gate, which B passes or fails: `gate` always
has the options of the test itself, such as --max-drop. Options of the load, such as --synchronous, belong to
the cases. A slice is a single trial of an arm.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqlstress.cli.commands import experiment_command, other_experiments, read_options
from sqlstress.cli.common_options import (
    NO_SWEEP,
    RunOptions,
    details_option,
    github_option,
    output_option,
    run_options,
    set_options,
    with_options,
)
from sqlstress.cli.measure import command_line
from sqlstress.cli.outputs import SaveStep, parse_outputs, print_error, print_page, text_printer, use_stdout
from sqlstress.engine.session import MeasuringSession
from sqlstress.errors import UsageError
from sqlstress.options.dsn import NAME as DSN
from sqlstress.options.dsn import redact_words
from sqlstress.options.parsing import sentence
from sqlstress.registry import DEFAULT
from sqlstress.report import Arm
from sqlstress.report.document import without_gc
from sqlstress.show.endings import BAD, FINE, UNSURE
from sqlstress.show.formats import CHECK_FORMATS
from sqlstress.statistics.sequential import FAIL, INCONCLUSIVE
from sqlstress.studies.ab import (
    COMPARISON_OPTIONS,
    OptionValues,
    ab_options,
    cells,
    load_options,
    make_own_python,
    make_study,
    merged,
    split_gate_options,
)
from sqlstress.studies.limit import limit_options, search_for
from sqlstress.studies.slices import OtherPythons, Python

if TYPE_CHECKING:
    from sqlstress.engine.study import BenchOpener
    from sqlstress.studies.ab import Cells
    from sqlstress.studies.slices import SliceBench


_OTHERS = other_experiments()
AB_HELP = f"""Compare B with A on this machine: short slices in turns, until a drop is shown or ruled out.

It also says whether B is faster. It takes one to three minutes. Options of the load apply to both A and B.
Exits 1 if B fails, 0 if it passes or the test is inconclusive. To compare your own work, write {_OTHERS}
after `ab`, with the options of that command.
"""


def ab_command(experiment: str) -> click.Command:
    """Return the command `ab`, an A/B test, for an experiment."""

    @with_options(ab_options(experiment))
    @experiment_command(
        experiment,
        ab_command,
        main=("a", "b", "concurrency", "max-drop", "metric", "max-time", "output"),
        help=AB_HELP,
        epilog='Example: sqlstress ab --a "--synchronous full" --b "--synchronous normal" --concurrency 4',
    )
    @run_options(*NO_SWEEP)
    def ab(**given: Any) -> int:
        running = RunOptions.pop_from(given)
        gate, common = split_gate_options(set_options(given))
        arms = _arms(experiment, gate, common)
        cases = cells(experiment, arms)
        a, b = (
            Arm(name.upper(), redact_words(shlex.split(gate.get(name, ""))), gate.get(f"python-{name}"))
            for name in ("a", "b")
        )
        opening = _opening(experiment, gate, arms, cases, running.directory)
        return running.measure(make_study(cases, gate, (a, b)), opening, strict=bool(gate.get("strict")))

    return ab


def _arms(experiment: str, gate: OptionValues, common: OptionValues) -> tuple[OptionValues, OptionValues]:
    """Return the unparsed options of A and of B, by option name.

    `common` has the options of the load that apply to both arms. `gate` has those of the test, such as --a.
    Raises UsageError if `gate` names nothing to compare, or the Python of only one arm.
    """
    if ("python-a" in gate) != ("python-b" in gate):
        raise UsageError("--python-a needs --python-b. Give both.")
    if not gate.keys() & {"a", "b", "python-a"}:
        raise UsageError(
            'nothing to compare. Give --a "OPTIONS" and --b "OPTIONS", or --python-a and --python-b.'
        )
    a, b = (merged(experiment, common, _parse_arm(experiment, name, gate)) for name in "ab")
    return a, b


def _parse_arm(experiment: str, name: str, gate: OptionValues) -> OptionValues:
    """Return the unparsed options in the text of --a or --b, by option name. Raises UsageError.

    `name` is "a" or "b", and `gate` has the text, such as "--synchronous full".
    """
    try:
        words = shlex.split(gate.get(name, ""))
    except ValueError as error:
        raise UsageError(f"--{name}: {sentence(error)} Give options of the load.") from error
    return read_options(words, load_options(experiment), f"--{name}")


def _opening(
    experiment: str,
    gate: OptionValues,
    arms: tuple[OptionValues, OptionValues],
    cases: Cells,
    directory: Path,
) -> BenchOpener[SliceBench]:
    """Return the factory of the bench: objects that measure slices in one or two Pythons.

    Raises UsageError for a server's connection string together with --python-a.
    """
    if "python-a" not in gate:
        return make_own_python(arms, cases, directory, command_line())
    if any(DSN in arm for arm in arms):
        raise UsageError(
            f"--{DSN} cannot be used with --python-a: other users could read it in the process list."
        )
    a, b = (
        Python(gate[f"python-{name}"], arm, directory, experiment)
        for name, arm in zip("ab", arms, strict=True)
    )
    return OtherPythons((a, b), (cases[0][0], cases[1][0]), command_line())


ab = ab_command(DEFAULT)


LIMIT_HELP = f"""Find the highest rate that keeps a latency promise, with no failures and no growing backlog.

At the limit half of the windows keep the promise. A lower rate holds, and a higher one does not, beyond the
noise of the windows. It takes one to five minutes. To measure your own work, write {_OTHERS} after
`limit`, with its options.
"""


def limit_command(experiment: str) -> click.Command:
    """Return the command `limit`, a search for the highest rate, for an experiment."""

    @with_options(limit_options(experiment))
    @experiment_command(
        experiment,
        limit_command,
        main=("p99", "p50", "max", "concurrency", "duration", "max-time", "output"),
        help=LIMIT_HELP,
        epilog="Example: sqlstress limit --p99 10ms --concurrency 4",
    )
    @run_options(*NO_SWEEP)
    def limit(**given: Any) -> int:
        running = RunOptions.pop_from(given)
        study = search_for(set_options(given), experiment)
        session = MeasuringSession((study.case,), running.directory, False, command_line())
        return running.measure(study, session, strict=bool(given["strict"]))

    return limit


limit = limit_command(DEFAULT)


_SHARED = tuple(option for option in COMPARISON_OPTIONS if option.name in ("metric", "max-drop", "strict"))


@with_options(_SHARED)
@click.command(epilog="Example: sqlstress check baseline.json report.json --max-drop 20%")
@click.argument("baseline", type=click.Path(path_type=Path), metavar="BASELINE.json")
@click.argument("current", type=click.Path(path_type=Path), metavar="CURRENT.json")
@output_option("Save the result", tuple(CHECK_FORMATS))
@github_option
@details_option
@without_gc()
def check(
    baseline: Path, current: Path, outputs: tuple[str, ...], github: bool, details: bool, **given: Any
) -> int:
    """Check a report against a stored baseline. Both need at least five trials of each case (--repeat 5).

    Exits 0 if it passes, 1 if it fails. A stored baseline raises false alarms: use sqlstress ab if you can.
    """
    from sqlstress.analysis.baseline import check as checked_against
    from sqlstress.plan import parse_options
    from sqlstress.report import read
    from sqlstress.show.github import check_commands, check_summary
    from sqlstress.show.study_view import check_verdict
    from sqlstress.show.text import pages

    targets = parse_outputs(outputs, CHECK_FORMATS)
    step = SaveStep.here(text_printer(targets)) if github else None
    request = parse_options(_SHARED, set_options(given))
    metric, max_drop = request["metric"], request["max-drop"]
    result = checked_against(read(baseline), read(current), metric, max_drop)
    if not use_stdout(targets):
        print_page(pages(details).check(result, metric, max_drop))
    for output in targets:
        output.write(CHECK_FORMATS[output.format](result, metric, max_drop))
    if step:
        step.show(check_commands(result, metric, max_drop), check_summary(result, metric, max_drop))
    if result.verdict == FAIL:
        print_error(f"Error: {check_verdict(result, metric, max_drop)}")
        return BAD
    return UNSURE if result.verdict == INCONCLUSIVE and request["strict"] else FINE
