"""sqlstress compare: saved reports side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import click

from sqlstress.cli.console import say
from sqlstress.cli.names import short_names
from sqlstress.cli.options import output_option
from sqlstress.cli.outputs import parse_outputs, take_stdout
from sqlstress.errors import UsageError
from sqlstress.render import COMPARISON_FORMATS
from sqlstress.system.garbage import no_search


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
    from sqlstress.analysis.comparison.differences import options_apart
    from sqlstress.analysis.finding import called
    from sqlstress.analysis.wording import listing
    from sqlstress.render.text import comparison_text
    from sqlstress.report import read

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
