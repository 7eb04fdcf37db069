"""sqlstress cycles: insert rows, delete all, insert rows again, under five settings."""

from __future__ import annotations

from typing import Any

import click

from sqlstress.cli.options import GroupedCommand, case_options, run_options, run_workload


@click.command(
    cls=GroupedCommand, epilog="Example: sqlstress cycles --settings wal,wal-tx --synchronous normal"
)
@case_options("cycles")
@run_options
def cycles(**given: Any) -> int:
    """Measure cycles of inserting rows, deleting all of them and inserting again, under five settings.

    The settings: rollback journal (delete) or WAL, row by row or in one transaction (tx), and WAL
    without automatic checkpoints (off). Each cycle is timed, and watched for checkpoints.
    """
    return run_workload("cycles", given)
