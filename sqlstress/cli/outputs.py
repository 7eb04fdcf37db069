"""Where the report is saved: -o FILE, by suffix, or -o FORMAT:FILE."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlstress.cli.github import Step
from sqlstress.errors import SqlstressError, UsageError
from sqlstress.render import BESIDE, FORMATS, check_installed
from sqlstress.report import Report, write_atomically
from sqlstress.report.document import is_stream


@dataclass(frozen=True, slots=True)
class Output:
    """One file, and the format that it is written in."""

    format: str
    path: Path

    def save(self, *reports: Report) -> None:
        """Write reports as they are now."""
        write_atomically(self.path, FORMATS[self.format](*reports))
        if self.beside is not None:
            write_atomically(self.beside, BESIDE[self.format][1](*reports))

    @property
    def beside(self) -> Path | None:
        """The second file, of a format that needs one: "tps.json" gets a "tps-latency.json"."""
        if self.format not in BESIDE:
            return None
        return self.path.with_name(f"{self.path.stem}{BESIDE[self.format][0]}{self.path.suffix}")


class Saver:
    """Saves a report to every file after each case. A file that can't be written stops no measurement."""

    def __init__(self, outputs: Sequence[Output], step: Step | None = None) -> None:
        self._step = step
        self._files = [output for output in outputs if not is_stream(output.path)]
        self._streams = [output for output in outputs if is_stream(output.path)]
        self.problem: SqlstressError | None = None
        """Why the report as it was last could not be saved."""

    @classmethod
    def of(cls, outputs: Sequence[str], github: bool, formats: Collection[str] = FORMATS) -> Saver:
        """Return what saves as -o and --github say. Raises UsageError before anything has been measured."""
        step = Step.here() if github else None
        return cls([parse_output(text, formats) for text in outputs], step)

    def after_case(self, report: Report) -> None:
        """Save what there is by now."""
        self.problem = None
        self._save(self._files, report)

    def at_end(self, report: Report) -> None:
        """Write what can be written once only: pipes and devices, and what GitHub shows."""
        if report.holds_something:
            self._save(self._streams, report)
        if self._step:
            self._save([self._step], report)

    def saved(self) -> list[str]:
        """Return the names of the files."""
        return [str(output.path) for output in (*self._files, *self._streams)]

    def _save(self, outputs: Sequence[Output | Step], report: Report) -> None:
        for output in outputs:
            try:
                output.save(report)
            except SqlstressError as error:
                self.problem = error


def parse_output(text: str, formats: Collection[str] = FORMATS) -> Output:
    """Read one -o. Raises UsageError before anything has been measured."""
    prefix, colon, rest = text.partition(":")
    if colon and prefix in formats:
        found = Output(prefix, Path(rest))
    else:
        suffix = Path(text).suffix.lower().removeprefix(".")
        if suffix not in formats:
            raise UsageError(
                f"-o {text!r}: the formats are {', '.join(formats)}. "
                "End the name with one of them, or write FORMAT:FILE."
            )
        found = Output(suffix, Path(text))
    _check(text, found.path)
    check_installed(found.format)
    return found


def _check(text: str, path: Path) -> None:
    """Refuse what can't be written, as far as can be seen now: before anything has been measured."""
    try:
        is_folder, has_folder, written = path.is_dir(), path.parent.is_dir(), _written(path)
    except OSError as error:
        raise UsageError(f"-o {text!r:.60}: {error.strerror}. Choose another file.") from error
    if not path.name or is_folder:
        raise UsageError(f"-o {text!r}: this is not the name of a file.")
    if not has_folder:
        raise UsageError(f"-o {text!r}: the folder {path.parent} does not exist. Make it first.")
    if not os.access(written, os.W_OK):
        raise UsageError(f"-o {text!r}: {written} can't be written. Choose another file.")


def _written(path: Path) -> Path:
    """Return what must be writable: a file is replaced as a whole, so its folder; a stream itself."""
    return path if is_stream(path) else path.parent
