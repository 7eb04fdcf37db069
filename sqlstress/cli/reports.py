"""sqlstress report: saved reports, shown again; and sqlstress schema: the JSON Schema of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import click

from sqlstress.cli.common_options import github_option, output_option
from sqlstress.cli.group import short_names
from sqlstress.cli.outputs import parse_outputs, say, take_stdout
from sqlstress.errors import UsageError
from sqlstress.show.formats import COMPARISON_FORMATS, SINGLE
from sqlstress.system.importing import no_search


@click.command(epilog="Example: sqlstress report reports/linux-20-files.json -o report.html")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option("Write them there instead of printing them")
@github_option
@no_search()
def report(files: tuple[Path, ...], outputs: tuple[str, ...], github: bool) -> None:
    """Show saved reports again: as text, or with -o in any other format. Needs no SQLite.

    Several reports go into one file, but for JSON.
    """
    from sqlstress.cli.outputs import Step, beside, parse_outputs
    from sqlstress.report import read
    from sqlstress.show.text import report_text

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


# sqlstress compare: saved reports side by side.


@click.command(
    epilog="Example: sqlstress compare reports/published/003-macos-1-file.json reports/linux-classic.json"
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="A.json B.json [...]")
@click.option("--anyway", is_flag=True, help="Show the ratios of figures that can't be compared, too.")
@output_option("Save the comparison", tuple(COMPARISON_FORMATS))
@no_search()
def compare(files: tuple[Path, ...], anyway: bool, outputs: tuple[str, ...]) -> None:
    """Set saved reports side by side, matched by case, the first one being the measure of the others.

    What they differ in stands above the figures. Ratios are left out where they would mean nothing, such
    as between commits that wait for a sync and commits that don't. Needs no SQLite.
    """
    from sqlstress.analysis.comparison import LETTERS
    from sqlstress.analysis.comparison import compare as compared
    from sqlstress.analysis.differences import options_apart
    from sqlstress.analysis.finding import called
    from sqlstress.analysis.wording import listing
    from sqlstress.report import read
    from sqlstress.show.text import comparison_text

    if not 2 <= len(files) <= len(LETTERS):
        raise UsageError(f"compare takes 2 to {len(LETTERS)} reports, not {len(files)}: name JSON files.")
    written = parse_outputs(outputs, COMPARISON_FORMATS)
    reports = [read(file) for file in files]
    _refuse_twice(files)
    if what := called(tuple(reports)):
        raise UsageError(f"{what} has a verdict of its own: compare the reports of measurements.")
    comparison = compared(list(zip(short_names(files), reports, strict=True)), anyway)
    if not comparison.tables:
        raise UsageError(
            "these reports have no case in common: nothing to compare. "
            f"Measure with the same {listing(options_apart(reports))}."
        )
    if not take_stdout(written):
        say(comparison_text(comparison), end="")
    for output in written:
        output.write(COMPARISON_FORMATS[output.format](comparison))


def _refuse_twice(files: Sequence[Path]) -> None:
    for one, other in combinations(files, 2):
        if one.samefile(other):
            raise UsageError(f"{str(other)!r:.200} is given twice: a report is compared with others.")
