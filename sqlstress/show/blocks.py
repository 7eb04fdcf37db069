"""Blocks: the elements of a shown report, such as paragraphs and tables, which each format draws.

Brief formats, such as the terminal without --details, leave some blocks out. A run is all trials of a case,
and a group is the runs in one table.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlstress.analysis.finding import ASIDE, CAUSE, GRAVE, Finding, texts
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import listing
from sqlstress.report import Run, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_MS, finite, format_count, format_ms, rounded


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Paragraph of one or more sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """Verdict of a whole report in one or two sentences, shown below the figures."""

    text: str


@dataclass(frozen=True, slots=True)
class Lines:
    """Short paragraphs that belong together, which formats show without a gap if they can."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    """List of sentences."""

    texts: tuple[str, ...]
    first: int | None = None
    """Number of sentences that brief formats show; None means all."""

    @property
    def later(self) -> tuple[str, ...]:
        """Sentences that brief formats leave out."""
        return () if self.first is None else self.texts[self.first :]


FIRST_FINDINGS = 3
"""Usual number of findings that brief formats show, not counting remarks on accuracy (rank ASIDE).

All findings on wrong or missing data (rank GRAVE) are shown, and with them up to this number of findings on
causes of problems (rank CAUSE). So the total can be larger.
"""


def conclusions(findings: Iterable[Finding]) -> Bullets:
    """Return the sentences of findings as a list: wrong data first, remarks on accuracy last."""
    ranked = sorted(findings, key=lambda finding: finding.rank)
    ranks = [finding.rank for finding in ranked]
    causes = min(FIRST_FINDINGS, ranks.count(CAUSE))
    first = max(ranks.count(GRAVE) + causes, min(FIRST_FINDINGS, len(ranks) - ranks.count(ASIDE)))
    return Bullets(tuple(texts(ranked)), first)


@dataclass(frozen=True, slots=True)
class Note:
    """Explanation of figures, which brief formats leave out."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Picture made of characters, in lines of at most 80 characters."""

    lines: tuple[str, ...]


NAME, FIGURE, DETAIL = "name", "figure", "detail"
"""Roles of columns: NAME identifies the row, FIGURE is a main result, DETAIL a minor result."""
MORE, LESS = "more", "less"
"""Values of `Column.better`: whether a larger or a smaller figure is better."""


Value = str | float | None
"""Value of a field in the CSV file; None for an empty field."""
R = TypeVar("R")
"""Type of the rows of a table."""
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    C = TypeVarWithDefault("C", contravariant=True, default=Any)
else:
    C = TypeVar("C", contravariant=True)


@dataclass(frozen=True)  # no slots: with them, Python 3.11 cannot call Column[Row](...)
class Column(Generic[C]):
    """Declaration of a column, for the tables of all formats, their legends and the CSV file."""

    name: str
    """Heading of the column in one line."""
    heading: tuple[str, str] = ("", "")
    """Heading in two short lines. By default, the second line is the last word of `name`."""
    align: str = "right"
    """Alignment of the cells: right or left."""
    role: str = FIGURE
    """Role: NAME, FIGURE or DETAIL. A narrow HTML page shows names and figures first."""
    cell: Callable[[C], str | None] = lambda _: None
    """Function that returns a row's cell; None if the row lacks the figure."""
    meaning: str = ""
    """Explanation of the column for the legend, as clauses; empty if the name is clear.

    The columns "p50" and "p99" can share an explanation that contains the placeholder PERCENTILES. The legend
    replaces the placeholder by the clause "p50 and p99: 50% and 99%".
    """
    leaves: int | None = None
    """Rank for dropping columns from a table that is too wide: lowest first. None: never dropped."""
    csv: str = ""
    """Name of the column in the CSV file, with its unit; empty if the column is not in the file."""
    value: Callable[[Trial], Value] = lambda _: None
    """Function that returns a trial's figure for the CSV file; None if the trial lacks the figure."""
    better: str = ""
    """MORE or LESS (which is better) if comparisons of reports show the figure; else empty."""

    def __post_init__(self) -> None:
        if not any(self.heading):
            before, _, last = self.name.rpartition(" ")
            object.__setattr__(self, "heading", (before, last))

    def explained(self, clauses: Iterable[str]) -> Column[C]:
        """Return a copy of the column whose explanation in the legend is `clauses`."""
        return replace(self, meaning="; ".join(clauses))


BUCKETS_COLUMN: Column[Any] = Column("buckets", ("", "buckets"), role=NAME)
PROCESSES_COLUMN: Column[Any] = Column("processes", ("", "procs"), role=NAME)
DUE_PER_S: Column[Any] = Column("due per s", ("due", "per s"), role=NAME)
PERCENTILES = "{percentiles}"
"""Placeholder in `Column.meaning`. The legend shows a text such as "p50 and p99: 50% and 99%" instead."""
PERCENTILE = re.compile(r"\bp[0-9.]+")
"""Pattern of a percentile, such as p99, in the name of a column."""


@dataclass(frozen=True, slots=True)
class Table:
    """Table of columns and rows, with cells as text."""

    columns: tuple[Column[Any], ...]
    rows: tuple[tuple[str, ...], ...]
    """Cells of each row, in the order of the columns."""

    @property
    def headers(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def alignment(self) -> tuple[str, ...]:
        return tuple(column.align for column in self.columns)

    @property
    def leaving(self) -> tuple[str, ...]:
        """Names of the columns that can be dropped if the table is too wide, least important first."""
        ranks = [(column.leaves, column.name) for column in self.columns if column.leaves is not None]
        return tuple(name for _, name in sorted(ranks))

    def narrower(self) -> Table:
        """Return a copy of the table without the least important column of those that can be dropped."""
        kept = [index for index, column in enumerate(self.columns) if column.name != self.leaving[0]]
        rows = (tuple(row[index] for index in kept) for row in self.rows)
        return Table(tuple(self.columns[index] for index in kept), tuple(rows))


def meanings(table: Table) -> Iterator[str]:
    """Yield the explanations of a table's columns. If columns share an explanation, yield it once."""
    names: dict[str, list[str]] = {}
    for column in table.columns:
        if column.meaning:
            names.setdefault(column.meaning, []).append(column.name)
    for meaning, columns in names.items():
        yield meaning.replace(PERCENTILES, percentile_shares(columns)) if PERCENTILES in meaning else meaning


def percentile_shares(names: Iterable[str]) -> str:
    """Return the legend's explanation of the percentiles in `names` of columns.

    For the names "p50" and "service p99", this is "p50 and p99: 50% and 99%".
    """
    matches = (PERCENTILE.search(name) for name in names)
    shown = list(dict.fromkeys(match[0] for match in matches if match))
    return f"{listing(shown)}: {listing([f'{name[1:]}%' for name in shown])}"


@dataclass(frozen=True, slots=True)
class Legend:
    """Legend of a table. A format that drops columns explains only the columns that it shows."""

    table: Table
    clauses: Callable[[Table], Iterable[str]] = meanings
    """Function that returns the explanations of a table's columns."""

    def of(self, table: Table) -> str:
        """Return the legend of `table`, which is `self.table` or a copy with fewer columns."""
        return f"{'; '.join(self.clauses(table))}."

    @property
    def text(self) -> str:
        """Legend of all columns of the table, as a sentence."""
        return self.of(self.table)


Block = Paragraph | VerdictLine | Lines | Bullets | Note | Picture | Table | Legend


# Functions that return numbers as table cells of limited width, rounded if necessary. Functions with the
# result type `str | None` return None for None, NaN and infinity.


MISSING = "–"  # noqa: RUF001 - a dash as wide as a digit, for "no figure"
UNKNOWN = "?"


def count_cell(value: float | None) -> str | None:
    """Return a count or a rate in at most nine characters: 1234567.8 → "1,234,568"."""
    number = finite(value)
    if number is None:
        return None
    if abs(number) >= 9_999_999.5:
        return f"{number:.1e}"
    return f"{number:.2f}" if 0 < abs(number) < 10 else format_count(number)


def rate_cell(value: float | None, spread: float | None, *, disturbed: bool = False) -> str | None:
    """Return a rate and its `spread` (uncertainty, a share): "22.1k ±8%", or "~22.1k ±8%" if `disturbed`."""
    number = finite(value)
    if number is None:
        return None
    mark = "~" * disturbed
    return (
        f"{mark}{count_cell(number)}" if spread is None else f"{mark}{_compact(number)}{spread_cell(spread)}"
    )


def spread_cell(spread: float | None) -> str:
    """Return an uncertainty to append to a figure: 0.08 → " ±8%"; "" for None."""
    if spread is None:
        return ""
    share = "±>99%" if spread >= 0.995 else f"±{max(1, round(spread * 100))}%"
    return f" {share:>4}"


def _compact(number: float) -> str:
    """Return a number with three digits and a letter for thousands or millions: 22_100 → "22.1k"."""
    for size, letter in ((10**6, "M"), (10**4, "k")):
        if size * 0.9995 <= number < 999.5 * 10**6:
            scaled = number / min(size, 1000 if letter == "k" else size)
            return f"{scaled:.{max(0, 2 - int(math.log10(scaled)))}f}{letter}"
    return str(count_cell(float(rounded(number, 3).replace(",", ""))))


def ms_cell(ns: float | None) -> str | None:
    """Return nanoseconds as milliseconds in at most seven characters: 60_000_000_000 → "60,000"."""
    number = finite(ns)
    if number is None:
        return None
    ms = number / NS_PER_MS
    if not 0 <= ms < 999_999.5:
        return f"{ms:.0e}"
    return format_count(ms) if ms >= 1000 else format_ms(number)


def seconds_cell(seconds: float | None) -> str | None:
    """Return seconds with three digits, "1.23", or, from 99,999.5 s, with an exponent: "1e+05"."""
    number = finite(seconds)
    if number is None:
        return None
    if not 0 <= number < 99_999.5:
        return f"{number:.0e}"
    places = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:.{places}f}"


def share_cell(share: float | None) -> str | None:
    """Return a share, 0 to 1, with two decimals: "0.97"."""
    number = finite(share)
    return None if number is None else f"{number:.2f}" if abs(number) < 100 else f"{number:.0e}"


def ratio_cell(ratio: float | None) -> str | None:
    """Return a ratio in at most eight characters, such as "1.25"; two digits if very small or large."""
    number = finite(ratio)
    if number is None:
        return None
    return f"{number:.2f}" if 0.095 <= number < 999.995 else rounded(number, 2)


def whole_cell(value: int) -> str:
    """Return a whole number as a cell: in full below 100,000, else with an exponent, such as "1e+05"."""
    return str(value) if abs(value) < 100_000 else f"{value:.0e}"


def case_columns(case_of: Callable[[R], Case]) -> tuple[Column[R], ...]:
    """Return the columns that identify the case of a row: buckets, processes and rate."""
    return (
        replace(BUCKETS_COLUMN, cell=lambda row: whole_cell(case_of(row).buckets)),
        replace(PROCESSES_COLUMN, cell=lambda row: whole_cell(case_of(row).concurrency)),
        replace(DUE_PER_S, cell=lambda row: count_cell(rate) if (rate := case_of(row).rate) else None),
    )


def table_of(rows: Sequence[R], columns: Sequence[Column[R]]) -> Table:
    """Return the table of these rows. Columns that are empty in all rows are left out."""
    cells = [(column, [column.cell(row) for row in rows]) for column in columns]
    filled = [
        (column, column_cells)
        for column, column_cells in cells
        if any(cell is not None for cell in column_cells)
    ]
    texts = [[MISSING if cell is None else cell for cell in column_cells] for _, column_cells in filled]
    return Table(
        tuple(column for column, _ in filled), tuple(zip(*texts, strict=True)) if texts else ((),) * len(rows)
    )


def percent_cell(share: float) -> str:
    """Return a share, 0 to 1, as a percentage without the % sign: "0.02", "3.1", "94"."""
    number = share * 100
    return f"{number:.0f}" if number >= 9.95 else f"{number:.1f}" if number >= 0.095 else f"{number:.2g}"


FAILED = "FAILED"
NOT_ALL = "ok, not all"
_WORDS = {"ok": "ok", "failed": FAILED, "skipped": MISSING, "unknown": UNKNOWN}
_MEANINGS = {"failed": "the data is wrong", "unknown": "could not be verified", "skipped": "not checked"}


def verified_cell(run: Run) -> str:
    """Return the verdict on a run's data as a table cell, such as ok, FAILED or "?" (unknown)."""
    if run.verdict.status == "ok" and run.failed_too_many:
        return NOT_ALL
    return _WORDS.get(run.verdict.status, UNKNOWN)


VERIFIED: Column[Any] = Column("verified", ("", "data"), "left", cell=lambda row: verified_cell(row.run))
"""Column with the verdict on the data, for rows that have an attribute `run`."""


NOTHING_LOST = "no acknowledged write was lost"


def verified_legend(group: Group, ok: str = NOTHING_LOST, word: str = "ok") -> Iterator[str]:
    """Yield the explanation of the cells in the column VERIFIED.

    `word` is the text of the cell if all data is right, and `ok` is the clause that explains this text.
    """
    statuses = {run.verdict.status for run in group.runs}
    words = {**_WORDS, "ok": word}
    meanings = {"ok": ok, **_MEANINGS}.items()
    clauses = [f"{words[status]} = {text}" for status, text in meanings if status in statuses]
    if any(verified_cell(run) == NOT_ALL for run in group.runs):
        clauses.append(f"{NOT_ALL} = right, but more operations failed than --max-failed allows")
    if clauses:
        yield f"data (verified): {', '.join(clauses)}"


# Functions that make texts from outside (error messages, saved reports) safe for a terminal or an HTML page.


# Escape sequences of ECMA-48: control sequences (CSI), and control strings (OSC, DCS, …) with their content.
# If a control string has no end, only its introducer matches, so that the text after it is kept. The content
# cannot include another introducer: else a text of many introducers would take quadratic time.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]{0,2048}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{0,8}[0-~]?"
)
# Unicode categories of characters that are not shown: controls, formatting (such as a change of the writing
# direction), surrogates, private use, unassigned.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_LONGEST = 800


def clean(text: str) -> str:
    """Return a text as one line without escape sequences. Several spaces become one space."""
    return " ".join(visible(text).split())


def visible(text: str) -> str:
    """Return a text as one line without escape sequences. All spaces are kept."""
    if text.isascii() and text.isprintable():
        return text  # the fast path for most texts
    return "".join(map(_visible, _SEQUENCES.sub("", text)))


def brief(text: str) -> str:
    """Return a text as one line without escape sequences, cut to 800 characters; "[...]" marks the cut."""
    cleaned = clean(text)
    return cleaned if len(cleaned) <= _LONGEST else f"{cleaned[: _LONGEST - 6]} [...]"


def shortened(text: str, longest: int) -> str:
    """Return a text as one line without escape sequences, cut to `longest` characters; ".." marks the cut."""
    cleaned = clean(text)
    return cleaned if len(cleaned) <= longest else f"{cleaned[: longest - 2]}.."


def name_end(text: str, longest: int) -> str:
    """Return the last `longest` characters of a file name, without escape sequences; ".." marks a cut."""
    cleaned = clean(text)
    return cleaned if len(cleaned) <= longest else f"..{cleaned[2 - longest :]}"


def _visible(character: str) -> str:
    """Return a character as it is shown: " " for white space, "?" for an invisible character."""
    if character.isspace():
        return " "
    return "?" if unicodedata.category(character) in _UNSEEN else character
