"""sqlstress kv: random gets and replaces by N processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sqlstress.cli.options import GroupedCommand, case_options, run_options


@click.command(
    cls=GroupedCommand, epilog="Example: sqlstress kv --concurrency 1-8 --buckets 1,20 -o report.json"
)
@case_options
@run_options
def kv(
    directory: Path, keep: bool, outputs: tuple[str, ...], quiet: bool, no_progress: bool, **given: Any
) -> int:
    """Measure random gets and replaces by N processes, on one database or on hash-partitioned files."""
    from sqlstress.plan import from_options

    asked = {name.replace("_", "-"): value for name, value in given.items() if value not in (None, ())}
    cases = from_options(asked)
    # Imported when there is something to measure: what is wrong is told at once.
    from sqlstress.cli.measure import measure

    return measure(cases, directory, keep, outputs, show=not quiet, progress=not (quiet or no_progress))
