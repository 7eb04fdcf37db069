"""sqlstress keys: what identifies a row, and what that costs in time and space."""

from __future__ import annotations

from typing import Any

import click

from sqlstress.cli.options import GroupedCommand, case_options, run_options, run_workload


@click.command(
    cls=GroupedCommand, epilog="Example: sqlstress keys --schema id-rowid --id-type uuid4,uuid7 -o keys.json"
)
@case_options("keys")
@run_options
def keys(**given: Any) -> int:
    """Measure primary keys: concurrent writers insert rows whose ids are integers, UUIDs or ULIDs.

    Each user picks about 100 items, in one transaction. Time and space of each type of id, schema by schema.
    """
    return run_workload("keys", given)
