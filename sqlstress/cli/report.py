"""sqlstress report: saved reports, shown again; and sqlstress schema: the JSON Schema of them."""

from __future__ import annotations

from pathlib import Path

import click

from sqlstress.cli.console import say
from sqlstress.cli.names import short_names
from sqlstress.cli.options import github_option, output_option
from sqlstress.errors import UsageError
from sqlstress.render import SINGLE
from sqlstress.system.garbage import no_search


@click.command(epilog="Example: sqlstress report reports/linux-20-files.json -o report.html")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option("Write them there instead of printing them")
@github_option
@no_search()
def report(files: tuple[Path, ...], outputs: tuple[str, ...], github: bool) -> None:
    """Show saved reports again: as text, or with -o in any other format. Needs no SQLite.

    Several reports go into one file, but for JSON.
    """
    from sqlstress.cli.github import Step
    from sqlstress.cli.outputs import beside, parse_outputs
    from sqlstress.render.text import report_text
    from sqlstress.report import read

    targets = parse_outputs(outputs)
    step = Step.here(beside(targets)) if github else None
    if len(files) > 1 and any(target.format in SINGLE for target in targets):
        raise UsageError("a JSON file holds one report: give one FILE, or another format.")
    reports = [read(path) for path in files]
    named = list(zip(short_names(files), reports, strict=True))
    for target in targets:
        target.save_named(named)
    if step is not None:
        step.save(*reports)
    if not targets and step is None:
        say(report_text(*reports), end="")


@click.command(epilog="Example: sqlstress schema > report.schema.json")
def schema() -> None:
    """Print the JSON Schema of the reports that `-o report.json` saves."""
    from sqlstress.report.schema import schema_text

    say(schema_text(), end="")
