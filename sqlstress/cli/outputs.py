"""Where the report goes: the terminal, and -o FILE, by suffix, or -o FORMAT:FILE."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir

from sqlstress.cli.console import complain, say
from sqlstress.cli.github import Step
from sqlstress.errors import EnvironmentFailure, Interrupted, SqlstressError, UsageError
from sqlstress.render import BESIDE, FORMATS
from sqlstress.report import Report, to_json, write_atomically
from sqlstress.report.document import LARGEST
from sqlstress.report.saving import is_stream, remove_unfinished


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


class Terminal:
    """Standard output, as one of the places where a report goes."""

    def save(self, report: Report) -> None:
        """Print a report. Raises EnvironmentFailure."""
        from sqlstress.render.text import report_text

        say(report_text(report))


class Saver:
    """Saves a report to every file after each step. A file that can't be written stops no measurement."""

    def __init__(
        self, outputs: Sequence[Output], terminal: Terminal | None = None, step: Step | None = None
    ) -> None:
        self._terminal = [terminal] if terminal else []
        self._step = [step] if step else []
        self._written: dict[str, None] = {}  # a set that keeps its order
        self._lost: set[Output] = set()
        self._files = [output for output in outputs if not is_stream(output.path)]
        self._streams = [output for output in outputs if is_stream(output.path)]
        self.problem: SqlstressError | None = None
        """Why the report as it was last could not be saved."""

    @classmethod
    def of(
        cls, outputs: Sequence[str], github: bool, quiet: bool, formats: Collection[str] = FORMATS
    ) -> Saver:
        """Return what saves as -o, --github and --quiet say.

        Raises UsageError before anything has been measured.
        """
        terminal = None if quiet else Terminal()
        step = Step.here() if github else None
        return cls(parse_outputs(outputs, formats), terminal, step)

    def after_step(self, report: Report) -> None:
        """Save what there is by now."""
        self.problem = None
        self._save(self._files, report)

    def at_end(self, report: Report, kept_folder: Path | None = None) -> None:
        """Write what can be written once only: the terminal, pipes and devices, and what GitHub shows.

        `kept_folder` is where the databases are, if they are kept.
        """
        if report.holds_something:
            self._save([*self._terminal, *self._streams], report)
        if kept_folder and self._terminal:
            self._tell(f"The databases are kept in {kept_folder}.")
        self._save(self._step, report)
        # Whatever else was asked for can be made of JSON.
        kept = any(output.format == "json" for output in self._files if output not in self._lost)
        if self._lost and not kept:
            self._rescue(report)
        for output in self._files:
            if output.is_too_large:
                complain(
                    f"Warning: {output.path} is larger than {LARGEST >> 20} MiB, the most that is read. "
                    "Split the plan, or save what it shows too: -o report.html -o report.csv."
                )

    @property
    def prints(self) -> bool:
        """Whether whoever looks on is shown the report."""
        return bool(self._terminal)

    def saved(self) -> list[str]:
        """Return the names of the files that have been written by now."""
        return list(self._written)

    def kept(self) -> str:
        """Return the end of a sentence that says where the report is by now; "" when it is nowhere."""
        return f"; what was measured is in {', '.join(self._written)}" if self._written else ""

    @contextmanager
    def told_when_stopped(self) -> Iterator[None]:
        """Raise Interrupted, which says what is kept, in the place of KeyboardInterrupt.

        Whoever stops us afterwards finds everything done but to say how it ended, and is not heard.
        """
        # Here, since who only shows reports has no engine.
        from sqlstress.system.interrupt import stop_no_more

        try:
            yield
            stop_no_more()
        except KeyboardInterrupt as stop:
            raise Interrupted(f"stopped{self.kept()}.") from stop

    def _save(self, outputs: Sequence[Output | Terminal | Step], report: Report) -> None:
        for output in outputs:
            try:
                output.save(report)
            except SqlstressError as error:
                self.problem = error
                if isinstance(output, Output):
                    self._lost.add(output)
                continue
            if isinstance(output, Output):
                self._written[str(output.path)] = None
                self._lost.discard(output)

    def _tell(self, text: str) -> None:
        try:
            say(text)
        except SqlstressError as error:
            self.problem = error

    def _rescue(self, report: Report) -> None:
        """Keep a report that could not be saved where it was to be, as JSON, in the temporary folder."""
        try:
            name = Path(gettempdir()) / f"sqlstress-report-{token_hex(4)}.json"
            write_atomically(name, to_json(report))
        except (OSError, SqlstressError):
            rescued = "no copy could be kept in the temporary folder either"
        else:
            rescued = f"the report is kept in {name}"
        self.problem = EnvironmentFailure(f"{self.problem}; {rescued}.")


def parse_outputs(texts: Sequence[str], formats: Collection[str] = FORMATS) -> list[Output]:
    """Read every -o, and remove what a sqlstress that was killed has left beside those files.

    Raises UsageError.
    """
    found = [parse_output(text, formats) for text in texts]
    for folder in {output.path.resolve().parent for output in found if not is_stream(output.path)}:
        remove_unfinished(folder)
    return found


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
    return found


def _check(text: str, path: Path) -> None:
    """Refuse what can't be written, as far as can be seen now: before anything has been measured."""
    try:
        is_folder, written = path.is_dir(), _written(path)
        has_folder = written[0].exists()
    except OSError as error:
        raise UsageError(f"-o {text!r:.60}: {error.strerror}. Choose another file.") from error
    if not path.name or is_folder:
        raise UsageError(f"-o {text!r}: this is not the name of a file.")
    if not has_folder:
        raise UsageError(f"-o {text!r}: the folder {written[0]} does not exist. Make it first.")
    for place in written:
        if not os.access(place, os.W_OK):
            raise UsageError(f"-o {text!r}: {place} can't be written. Choose another file.")


def _written(path: Path) -> list[Path]:
    """Return what must be writable: a stream itself; a file is replaced as a whole, so its folder too."""
    if is_stream(path):
        return [path]
    target = path.resolve()  # a symbolic link is followed
    return [target.parent, target] if target.exists() else [target.parent]
