"""Commands on saved reports: `sqlstress report`, `compare`, and `schema`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import combinations, islice
from pathlib import Path
from typing import NoReturn

import click

from sqlstress.analysis.differences import LETTERS
from sqlstress.cli.commands import short_names
from sqlstress.cli.common_options import details_option, github_option, output_option
from sqlstress.cli.outputs import SaveStep, parse_outputs, print_page, print_text, text_printer, use_stdout
from sqlstress.errors import UsageError
from sqlstress.report import read
from sqlstress.report.document import without_gc
from sqlstress.show.formats import COMPARISON_FORMATS, SINGLE_REPORT_FORMATS


@click.command(epilog="Example: sqlstress report reports/linux-1-and-20-files.json -o report.html")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option("Save the reports instead of printing them")
@github_option
@details_option
@without_gc()
def report(files: tuple[Path, ...], outputs: tuple[str, ...], github: bool, details: bool) -> None:
    """Show saved reports again as text, or with -o in another format. Needs no SQLite.

    All formats but JSON take several reports.
    """
    from sqlstress.show.text import pages

    targets = parse_outputs(outputs)
    step = SaveStep.here(text_printer(targets)) if github else None
    if len(files) > 1 and any(target.format in SINGLE_REPORT_FORMATS for target in targets):
        raise UsageError("a JSON file holds one report. Give one FILE, or choose another format.")
    reports = [read(path) for path in files]
    named = list(zip(short_names(files), reports, strict=True))
    for target in targets:
        target.save_named(named)
    if step is not None:
        step.save(*reports)
    if not targets and step is None:
        print_page(pages(details).report(*reports))


@click.command(epilog="Example: sqlstress schema > report.schema.json")
def schema() -> None:
    """Print the JSON Schema of the reports that `-o report.json` saves."""
    from sqlstress.report.json_schema import schema_text

    print_text(schema_text(), end="")


def _expand_folders(ctx: click.Context, param: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the paths, each folder replaced by its JSON files.

    Raises UsageError for a folder with no JSON file, or with too many.
    """
    return tuple(file for path in paths for file in (_reports_in(path) if _is_folder(path) else [path]))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False  # An invalid path. Reading it fails later with a better message.


def _reports_in(folder: Path) -> list[Path]:
    # Stop after the first file too many: the folder may be the root of a file system.
    files = sorted(islice(_json_files(folder), len(LETTERS) + 1))
    if not files:
        raise UsageError(f"the folder {str(folder)!r:.200} has no JSON file. Save reports with -o NAME.json.")
    if len(files) > len(LETTERS):
        raise UsageError(
            f"the folder {str(folder)!r:.200} has more than {len(LETTERS)} JSON files. Name those to compare."
        )
    return files


def _json_files(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> NoReturn:
        raise UsageError(f"cannot read the folder {str(error.filename)!r:.200}: {error.strerror or error}.")

    for parent, _, names in os.walk(folder, onerror=refuse):
        paths = (Path(parent, name) for name in names if name.endswith(".json") and not name.startswith("."))
        yield from filter(Path.is_file, paths)


@click.command(
    epilog="Example: sqlstress compare reports/published/003-macos-1-file.json reports/linux-classic.json"
)
@click.argument(
    "files",
    nargs=-1,
    type=click.Path(path_type=Path),
    metavar="A.json B.json [...]",
    callback=_expand_folders,
)
@click.option("--anyway", is_flag=True, help="Also show ratios of figures that are not comparable.")
@output_option("Save the comparison", tuple(COMPARISON_FORMATS))
@details_option
@without_gc()
def compare(files: tuple[Path, ...], anyway: bool, outputs: tuple[str, ...], details: bool) -> None:
    """Compare saved reports side by side, case by case. The first report is the baseline.

    The differences between the reports come first, such as settings and machines, then the figures.
    Meaningless ratios are left out, such as between synced and unsynced commits; --anyway shows them, too. A
    folder stands for its JSON files, also in subfolders. Needs no SQLite.
    """
    from sqlstress.analysis.comparison import compare as compared
    from sqlstress.analysis.differences import differing_options
    from sqlstress.analysis.study_parts import first_study_label
    from sqlstress.analysis.wording import listing
    from sqlstress.show.text import pages

    targets = parse_outputs(outputs, COMPARISON_FORMATS)
    # Read before counting, so that an error about a path comes before an error about the number of reports. A
    # single argument is more often a wrong path than a lone report.
    reports = [read(file) for file in files[: len(LETTERS)]]
    if not 2 <= len(files) <= len(LETTERS):
        raise UsageError(
            f"compare takes 2 to {len(LETTERS)} reports, not {len(files)}. Give JSON files or a folder."
        )
    for first, second in combinations(files, 2):
        if first.samefile(second):
            raise UsageError(f"{str(second)!r:.200} is given twice. Give each report once.")
    if study_name := first_study_label(tuple(reports)):
        raise UsageError(f"{study_name} has its own verdict. Compare reports of measurements instead.")
    comparison = compared(list(zip(short_names(files), reports, strict=True)), anyway)
    if not comparison.tables:
        raise UsageError(
            "the reports have no case in common, so there is nothing to compare. "
            f"Measure with the same {listing(differing_options(reports))}."
        )
    if not use_stdout(targets):
        print_page(pages(details).comparison(comparison))
    for output in targets:
        output.write(COMPARISON_FORMATS[output.format](comparison))
