"""sqlstress crash: what is left of acknowledged transactions when writers die, or the power is cut."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqlstress.cli.options import GroupedCommand, case_options, crash_options
from sqlstress.options import by_name

if TYPE_CHECKING:
    from sqlstress.engine.session import Bench
    from sqlstress.engine.study import Study
    from sqlstress.report import PowerLoss
    from sqlstress.report.case import Case


@click.command(cls=GroupedCommand, epilog="Example: sqlstress crash --rounds 100 --concurrency 3")
@case_options("crash")
@crash_options
def crash(
    directory: Path,
    keep: bool,
    outputs: tuple[str, ...],
    github: bool,
    quiet: bool,
    no_progress: bool,
    **given: Any,
) -> int:
    """Kill writing processes at random moments, reopen the files, and prove what they hold.

    Or cut the power of a recorded run: --power, --matrix. Exits 1 when an acknowledged transaction is
    gone, one is torn, or a file is damaged.
    """
    from sqlstress.plan import from_options

    asked = {name.replace("_", "-"): value for name, value in given.items() if value not in (None, ())}
    cases = from_options(asked, "crash")

    from sqlstress.cli.measure import command_line, measure
    from sqlstress.cli.outputs import Saver
    from sqlstress.engine.session import Session
    from sqlstress.render import DOCUMENTS

    saver = Saver.of(outputs, github, quiet, DOCUMENTS)
    session = Session(cases, directory, keep, command_line())
    return measure(_study(asked, cases), session, saver, progress=not (quiet or no_progress))


def _study(asked: dict[str, Any], cases: tuple[Case, ...]) -> Study[Bench]:
    if asked.get("power") or asked.get("matrix"):
        from sqlstress.experiments.power_loss.study import PowerStudy

        return PowerStudy(cases, _power_loss(asked, len(cases)))

    from sqlstress.experiments.crash.study import KillStudy
    from sqlstress.report import Kills

    return KillStudy(Kills(cases[0], _parsed(asked, "rounds")))


def _power_loss(asked: dict[str, Any], configurations: int) -> PowerLoss:
    """Return what is asked for where power is cut."""
    from sqlstress.report import PowerLoss

    return PowerLoss(
        images=_parsed(asked, "images"),
        planned=configurations,
        matrix=bool(asked.get("matrix")),
        spoils=_parsed(asked, "disk") == "spoiling",
        told_powersafe=_parsed(asked, "psow"),
    )


def _parsed(asked: dict[str, Any], name: str) -> Any:
    from sqlstress.plan import parse_option

    return parse_option("crash", name, asked.get(name, by_name("crash")[name].default))
