"""Where the report is saved: -o FILE, by suffix, or -o FORMAT:FILE."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlstress.errors import UsageError
from sqlstress.render import FORMATS
from sqlstress.report import Report, write_atomically


@dataclass(frozen=True, slots=True)
class Output:
    """One file, and the format that it is written in."""

    format: str
    path: Path

    def save(self, report: Report) -> None:
        """Write the report as it is now."""
        write_atomically(self.path, FORMATS[self.format](report))


def parse_output(text: str) -> Output:
    """Read one -o. Raises UsageError before anything has been measured."""
    prefix, colon, rest = text.partition(":")
    if colon and prefix in FORMATS:
        found = Output(prefix, Path(rest))
    else:
        suffix = Path(text).suffix.lower().removeprefix(".")
        if suffix not in FORMATS:
            raise UsageError(
                f"-o {text}: the formats are {', '.join(FORMATS)}. "
                "End the name with one of them, or write FORMAT:FILE."
            )
        found = Output(suffix, Path(text))
    if not found.path.name or found.path.is_dir():
        raise UsageError(f"-o {text}: this is not the name of a file.")
    if not found.path.parent.is_dir():
        raise UsageError(f"-o {text}: the folder {found.path.parent} does not exist. Make it first.")
    return found
