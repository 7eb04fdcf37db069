"""sqlstress methods: rows written and read one by one, in bulk, from JSON, and inside SQLite."""

from __future__ import annotations

from typing import Any

import click

from sqlstress.cli.options import GroupedCommand, case_options, run_options, run_workload


@click.command(
    cls=GroupedCommand, epilog="Example: sqlstress methods --phase insert --driver peewee,sqlite3,apsw"
)
@case_options("methods")
@run_options
def methods(**given: Any) -> int:
    """Measure ways to write and read rows: one by one, in bulk, from JSON, inside SQLite; with WAL or not."""
    return run_workload("methods", given)
