"""Reading pages of Markdown: commands, outputs, tables, links."""

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
_ELSEWHERE = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "examples/README.md",
    "examples/tried/README.md",
)
WRITTEN = [*(ROOT / name for name in _ELSEWHERE), *PAGES]
"""Every page of the documentation."""

Table = tuple[tuple[str, ...], list[list[str]]]
"""Column names, and the cells of each row."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return (language, text) of every fenced block of a page."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    return [(language, text) for language, text in found]


def commands(text: str) -> list[str]:
    """Return the commands of a shell block, one for each side of a &&."""
    lines = (line.partition(" # ")[0].strip() for line in text.replace("\\\n", " ").splitlines())
    return [command.strip() for line in lines if line for command in line.split("&&")]


def written_commands(page: Path) -> list[str]:
    """Return every command of a page."""
    return [command for language, text in blocks(page) if language == "sh" for command in commands(text)]


def outputs(page: Path) -> list[tuple[str, str]]:
    """Return (last command, output) wherever an output follows a shell block."""
    return [
        (commands(outputs_of)[-1], output)
        for (language, outputs_of), (following, output) in pairwise(blocks(page))
        if (language, following) == ("sh", "text")
    ]


def outputs_of(command: str) -> Iterator[tuple[str, str]]:
    """Yield (name of the page, output) wherever a page shows what a command prints."""
    for page in WRITTEN:
        yield from ((page.name, output) for written, output in outputs(page) if written == command)


def tables(text: str) -> Iterator[Table]:
    """Yield the tables of a terminal's output: two lines of names, a rule, rows."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not re.fullmatch(r"-+( +-+){4,}", line):
            continue
        spans = [found.span() for found in re.finditer("-+", line)]
        names = tuple(" ".join(lines[row][a:b].strip() for row in (number - 2, number - 1)) for a, b in spans)
        rows = [
            [row[a:b].strip() for a, b in spans]
            for row in takewhile(lambda line: line not in ("", "[...]"), lines[number + 1 :])
        ]
        yield tuple(name.strip() for name in names), rows


def columns(text: str) -> list[tuple[str, ...]]:
    """Return the column names of each table of a terminal's output."""
    return [names for names, _ in tables(text)]


def have_one_form(shown: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    """Return whether two tables have the same form.

    If figures are wide, some columns are left out for want of room. A percentile of few operations is not
    shown, which makes room for another column.
    """
    tables = ([name for name in table if not re.search(r"p\d\d", name)] for table in (shown, printed))
    narrow, wide = sorted(tables, key=len)
    return bool(narrow) and [name for name in wide if name in narrow] == [*narrow]


def anchors(page: Path) -> list[str]:
    """Return the anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return [re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings]


def links(page: Path) -> list[str]:
    """Return the targets of a page's links."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r'\]\(([^)\s]+)(?: "[^"]*")?\)', prose)


def first_cells(page: Path, heading: str) -> list[str]:
    """Return the names in the first column of the tables below a heading."""
    section = page.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [
        name for row in re.findall(r"^\| (`.+?) \|", section, re.M) for name in re.findall(r"`(.+?)`", row)
    ]
