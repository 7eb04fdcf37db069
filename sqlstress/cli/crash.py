"""sqlstress crash: what is left of acknowledged transactions when writers die, over and over."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sqlstress.cli.options import GroupedCommand, case_options, crash_options


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

    Exits 1 when an acknowledged transaction is gone, one is torn, or a file is damaged.
    """
    from sqlstress.plan import from_options, parse_option

    asked = {name.replace("_", "-"): value for name, value in given.items() if value not in (None, ())}
    rounds = parse_option("crash", "rounds", asked.get("rounds", 100))
    (case,) = from_options(asked, "crash")

    from sqlstress.cli.crash_measure import Asked, measure
    from sqlstress.cli.outputs import Saver
    from sqlstress.render import DOCUMENTS

    return measure(
        Asked(case, rounds, directory, keep),
        Saver.of(outputs, github, DOCUMENTS),
        show=not quiet,
        progress=not (quiet or no_progress) and sys.stderr.isatty(),
    )
