"""sqlstress schema: the JSON Schema of the reports."""

from __future__ import annotations

import click

from sqlstress.cli.console import say


@click.command(epilog="Example: sqlstress schema > report.schema.json")
def schema() -> None:
    """Print the JSON Schema of the reports that `-o report.json` saves."""
    from sqlstress.report.schema import schema_text

    say(schema_text(), end="")
