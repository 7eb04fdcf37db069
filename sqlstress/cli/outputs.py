"""What -o names: a file, by suffix or as FORMAT:FILE, or the standard output, as FORMAT:-."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlstress.cli.console import Tell, complain, say
from sqlstress.errors import UsageError
from sqlstress.render import BESIDE, FORMATS, NAMED
from sqlstress.report import Report, write_atomically
from sqlstress.report.document import LARGEST
from sqlstress.report.saving import STDOUT, check_length, is_stdout, is_stream, remove_unfinished
from sqlstress.system.files import reason, told, too_long


@dataclass(frozen=True, slots=True)
class Output:
    """One file, and the format that it is written in."""

    format: str
    path: Path

    def save(self, *reports: Report) -> None:
        """Write reports as they are now."""
        self.write(FORMATS[self.format](*reports))
        if self.beside is not None:
            write_atomically(self.beside, BESIDE[self.format][1](*reports))

    def write(self, text: str) -> None:
        """Write what something looks like in this format."""
        write_atomically(self.path, text)

    def save_named(self, named: Sequence[tuple[str, Report]]) -> None:
        """Write reports by their names, if the format shows these."""
        if len(named) > 1 and self.format in NAMED:
            self.write(NAMED[self.format](named))
        else:
            self.save(*(report for _, report in named))

    @property
    def name(self) -> str:
        """What it is called in a sentence."""
        return "the standard output" if self.is_stdout else str(self.path)

    @property
    def is_stdout(self) -> bool:
        """Whether it is the standard output: nothing else may be printed there then."""
        return is_stdout(self.path)

    @property
    def is_too_large(self) -> bool:
        """Whether it is a report that no command of ours will read."""
        try:
            return self.format == "json" and self.path.stat().st_size > LARGEST
        except OSError:
            return False

    @property
    def beside(self) -> Path | None:
        """The second file, of a format that needs one: "tps.json" gets a "tps-latency.json"."""
        if self.format not in BESIDE:
            return None
        return self.path.with_name(f"{self.path.stem}{BESIDE[self.format][0]}{self.path.suffix}")


def parse_outputs(texts: Sequence[str], formats: Collection[str] = FORMATS) -> list[Output]:
    """Read every -o, and remove what a sqlstress that was killed has left beside those files.

    Raises UsageError.
    """
    found = [parse_output(text, formats) for text in texts]
    if sum(output.is_stdout for output in found) > 1:
        raise UsageError("two reports can't share the standard output: name a file for one of them.")
    for folder in {output.path.resolve().parent for output in found if not is_stream(output.path)}:
        remove_unfinished(folder)
    return found


def take_stdout(outputs: Sequence[Output]) -> bool:
    """Say whether the standard output is one of them: who reads it must be able to parse all of it."""
    return any(output.is_stdout for output in outputs)


def beside(outputs: Sequence[Output]) -> Tell:
    """Return what prints whatever is not the report."""
    return complain if take_stdout(outputs) else say


def parse_output(text: str, formats: Collection[str] = FORMATS) -> Output:
    """Read one -o. Raises UsageError before anything has been measured."""
    prefix, colon, rest = text.partition(":")
    if colon and prefix in formats:
        found = Output(prefix, Path(rest))
    elif text == str(STDOUT):
        raise UsageError(f"-o -: in which format? Write FORMAT:-, such as {next(iter(formats))}:-.")
    else:
        suffix = Path(text).suffix.lower().removeprefix(".")
        if suffix not in formats:
            raise UsageError(
                f"-o {text!r}: the formats are {', '.join(formats)}. "
                "End the name with one of them, or write FORMAT:FILE."
            )
        found = Output(suffix, Path(text))
    if found.beside and found.is_stdout:
        raise UsageError(f"-o {text!r}: {found.format} is two files. Name the first one.")
    if found.path != STDOUT:
        _check(text, found.path)
    return found


def _check(text: str, path: Path) -> None:
    """Refuse what can't be written, as far as can be seen now: before anything has been measured."""
    try:
        if path.parent.is_file():
            raise UsageError(f"-o {text!r}: {path.parent} is a file, not a folder. Choose another file.")
        is_folder, written = path.is_dir(), _written(path)
        has_folder = written[0].exists()
    except OSError as error:
        raise UsageError(f"-o {text!r:.60}: {error.strerror}. Choose another file.") from error
    if not path.name or is_folder:
        raise UsageError(f"-o {text!r}: this is not the name of a file.")
    if not has_folder:
        raise UsageError(
            f"-o {text!r:.60}: the folder {told(written[0])} does not exist{too_long(path)}. Make it first."
        )
    if not is_stream(path):
        _check_length(text, path.resolve())
    for place in written:
        if not os.access(place, os.W_OK):
            raise UsageError(f"-o {text!r}: {place} can't be written. Choose another file.")


def _check_length(text: str, target: Path) -> None:
    try:
        check_length(target)
    except FileNotFoundError as error:
        raise UsageError(f"-o {text!r:.200}: {reason(error)}. Choose another file.") from error
    except OSError:
        pass  # what else is wrong with it is said when it is written


def _written(path: Path) -> list[Path]:
    """Return what must be writable: a stream itself; a file is replaced as a whole, so its folder too."""
    if is_stream(path):
        return [path]
    target = path.resolve()  # a symbolic link is followed
    return [target.parent, target] if target.exists() else [target.parent]
