"""sqlstress kv: random gets and replaces by N processes."""

from __future__ import annotations

from typing import Any

import click

from sqlstress.cli.options import GroupedCommand, case_options, run_options, run_workload


@click.command(
    cls=GroupedCommand, epilog="Example: sqlstress kv --concurrency 1-8 --buckets 1,20 -o report.json"
)
@case_options("kv")
@run_options
def kv(**given: Any) -> int:
    """Measure random gets and replaces by N processes, on one database or on hash-partitioned files."""
    return run_workload("kv", given)
