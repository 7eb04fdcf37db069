"""Outputs of a report: files and streams (option -o), terminal, GitHub Actions (option --github).

The value of -o is FILE with a suffix that selects the format, FORMAT:FILE, or FORMAT:- for standard output.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir

import click

from sqlstress.errors import EnvironmentFailure, Interrupted, SqlstressError, UsageError
from sqlstress.options.parsing import suggestion
from sqlstress.report import Report, to_json, write_atomically
from sqlstress.report.document import MAX_BYTES, STDOUT, is_stdout, is_stream, remove_unfinished, try_creation
from sqlstress.show.formats import FORMATS, NAMED_FORMATS, SECOND_FILES
from sqlstress.system.files import path_length_note, reason, short_path

Tell = Callable[[str], None]
"""Function that prints text: `print_text`, or `print_error` if the report is on standard output."""
CLOSED = "standard output is closed, so nothing can be printed"
_PLAINER = str.maketrans("▁▂▃▄▅▆▇█–µ", "12345678-u")  # noqa: RUF001 - the dash of a missing figure


def print_text(text: str, end: str = "\n") -> None:
    """Print a text on standard output, with substitutes for characters missing in its encoding.

    A closed pipe is no error. Raises EnvironmentFailure for other failures, such as a full disk.
    """
    if sys.stdout is None:
        raise EnvironmentFailure(f"{CLOSED}.")
    try:
        try:
            click.echo(text + end, nl=False)
        except UnicodeEncodeError:
            # The encoding of standard output, such as an old code page of Windows, lacks a character. Block
            # characters, whose heights show values, become the digits 1 to 8. Dashes become "-", the micro
            # sign becomes "u", and other missing characters become "?".
            encoding = sys.stdout.encoding
            plainer = (text + end).translate(_PLAINER).encode(encoding, "replace").decode(encoding)
            click.echo(plainer, nl=False)
    except BrokenPipeError:
        pass
    except OSError as error:
        raise EnvironmentFailure(f"cannot write to standard output: {error.strerror}.") from error


def print_page(text: str) -> None:
    """Print a page on standard output, in colour on a terminal. Raises EnvironmentFailure."""
    from sqlstress.show.text import coloured

    terminal = sys.stdout is not None and sys.stdout.isatty()
    wanted = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    print_text(coloured(text) if wanted else text, end="")


def print_error(text: str) -> None:
    """Print a line on standard error; ignore failures."""
    with suppress(OSError):
        click.echo(text, err=True)


@dataclass(frozen=True, slots=True)
class Output:
    """Output of a report: a file or stream, and its format."""

    format: str
    path: Path

    def save(self, *reports: Report) -> None:
        """Write reports to the file, and to a second file if the format has one.

        Raises EnvironmentFailure on failure.
        """
        self.write(FORMATS[self.format](*reports))
        if self.second_path is not None:
            write_atomically(self.second_path, SECOND_FILES[self.format][1](*reports))

    def write(self, text: str) -> None:
        """Write a text to this output. Raises EnvironmentFailure."""
        write_atomically(self.path, text)

    def save_named(self, named: Sequence[tuple[str, Report]]) -> None:
        """Write reports, given as (name, report) pairs. Raises EnvironmentFailure.

        The names are used for several reports in a format of NAMED_FORMATS, and ignored otherwise.
        """
        if len(named) > 1 and self.format in NAMED_FORMATS:
            self.write(NAMED_FORMATS[self.format](named))
        else:
            self.save(*(report for _, report in named))

    @property
    def name(self) -> str:
        """Name of the output in a sentence."""
        return "the standard output" if self.is_stdout else str(self.path)

    @property
    def is_stdout(self) -> bool:
        return is_stdout(self.path)

    @property
    def second_path(self) -> Path | None:
        """Path of the second file, such as "tps-latency.json"; None if the format has one file."""
        if self.format not in SECOND_FILES:
            return None
        return self.path.with_name(f"{self.path.stem}{SECOND_FILES[self.format][0]}{self.path.suffix}")


def parse_outputs(texts: Sequence[str], formats: Collection[str] = FORMATS) -> list[Output]:
    """Return the outputs for all values of -o.

    Also remove unfinished files, which killed runs left, from the folders of these outputs. Raises UsageError
    for an invalid value, and EnvironmentFailure if standard output is needed but closed.
    """
    outputs = [parse_output(text, formats) for text in texts]
    if sum(output.is_stdout for output in outputs) > 1:
        raise UsageError("only one report can go to standard output. Give a file name for the other.")
    if use_stdout(outputs) and sys.stdout is None:
        raise EnvironmentFailure("standard output is closed. Give the report a file name with -o.")
    for folder in {output.path.resolve().parent for output in outputs if not is_stream(output.path)}:
        remove_unfinished(folder)
    return outputs


def use_stdout(outputs: Sequence[Output]) -> bool:
    """Return whether a report goes to standard output, where no other text may be printed."""
    return any(output.is_stdout for output in outputs)


def text_printer(outputs: Sequence[Output]) -> Tell:
    """Return `print_error` if a report goes to standard output, else `print_text`."""
    return print_error if use_stdout(outputs) else print_text


def parse_output(text: str, formats: Collection[str] = FORMATS) -> Output:
    """Return the output for one value of -o.

    Raises UsageError if the value is invalid, or the file cannot be written.
    """
    prefix, colon, rest = text.partition(":")
    if colon and prefix in formats:
        output = Output(prefix, Path(rest))
    elif text == str(STDOUT):
        raise UsageError(f"-o -: the format is missing. Write FORMAT:-, such as {next(iter(formats))}:-.")
    else:
        suffix = Path(text).suffix.lower().removeprefix(".")
        if suffix not in formats:
            raise UsageError(
                f"-o {text!r}: the formats are {', '.join(formats)}.{suggestion(suffix, formats)} "
                "End the name with one of them, or write FORMAT:FILE."
            )
        output = Output(suffix, Path(text))
    if output.second_path and output.is_stdout:
        raise UsageError(f"-o {text!r}: {output.format} writes two files. Give the name of the first.")
    if output.path != STDOUT:
        _check_writable(text, output.path)
    return output


def _check_writable(text: str, path: Path) -> None:
    try:
        if path.parent.is_file():
            raise UsageError(f"-o {text!r}: {path.parent} is a file, not a folder. Choose another file.")
        is_folder, paths = path.is_dir(), _writable_paths(path)
        has_folder = paths[0].exists()
    except PermissionError as error:
        problem = f"no permission to open the folder {short_path(path.parent)}{_permissions(path.parent)}"
        raise UsageError(f"-o {text!r:.60}: {problem}. Choose another file.") from error
    except OSError as error:
        raise UsageError(f"-o {text!r:.60}: {error.strerror}. Choose another file.") from error
    if not path.name or is_folder:
        raise UsageError(f"-o {text!r}: this is not a file name. Give one such as report.json.")
    if not has_folder:
        raise UsageError(
            f"-o {text!r:.60}: no such folder: {short_path(paths[0])}{path_length_note(path)}. "
            "Create it first."
        )
    problem = "" if is_stream(path) else _refusal_of_folder(path.resolve())
    if not problem and paths[-1].exists() and not os.access(paths[-1], os.W_OK):
        problem = f"cannot write {short_path(paths[-1])}: no permission{_permissions(paths[-1])}"
    if problem:
        raise UsageError(f"-o {text!r:.200}: {problem}. Choose another file.")


def _refusal_of_folder(target: Path) -> str:
    """Return the reason why no file can be created in the folder of `target`; "" if one can."""
    try:
        try_creation(target)
    except PermissionError:
        problem = f"no permission to create files in this folder{_permissions(target.parent)}"
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return ""  # the disk is full, but may have space when the report is written
        problem = reason(error)
    else:
        return ""
    return f"cannot write {short_path(target.parent)}: {problem}"


def _permissions(path: Path) -> str:
    """Return a path's permissions as text, such as " (-rw-r--r--)"; "" if unknown, as on Windows."""
    with suppress(OSError):
        if os.name == "posix":
            return f" ({stat.filemode(path.stat().st_mode)})"
    return ""


def _writable_paths(path: Path) -> list[Path]:
    """Return the paths that must be writable: the folder, and the file if it exists.

    For a device or pipe, to which the report is written directly, return only its path.
    """
    if is_stream(path):
        return [path]
    target = path.resolve()  # a symbolic link is followed
    return [target.parent, target] if target.exists() else [target.parent]


# Option --github: summary and annotations of a step in GitHub Actions.


VARIABLE = "GITHUB_STEP_SUMMARY"
"""Environment variable with the path of the summary file."""


@dataclass(frozen=True, slots=True)
class SaveStep:
    """Output of reports to a step in GitHub Actions: summary and annotations."""

    summary: Path
    """File to which the summary is appended."""

    tell: Tell = print_text
    """Function that prints an annotation, on standard output or standard error."""

    @classmethod
    def here(cls, tell: Tell = print_text) -> SaveStep:
        """Return the output to the step of GitHub Actions that runs this process.

        `tell` prints the annotations. Raises UsageError outside of GitHub Actions.
        """
        name = os.environ.get(VARIABLE)
        if not name:
            raise UsageError(f"--github works in GitHub Actions only: {VARIABLE} is not set. Leave it out.")
        return cls(Path(name), tell)

    def save(self, *reports: Report) -> None:
        """Print annotations on problems, and append a summary. Raises EnvironmentFailure."""
        from sqlstress.show.github import summary, workflow_commands

        self.show(workflow_commands(*reports), summary(*reports))

    def show(self, annotations: Iterable[str], summary: str) -> None:
        """Print `annotations`; append `summary`, which is Markdown. Raises EnvironmentFailure."""
        for line in annotations:
            self.tell(line)
        try:
            with self.summary.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                file.write(f"{summary}\n")
        except OSError as error:
            raise EnvironmentFailure(f"cannot write {VARIABLE}: {error.strerror}.") from error


@dataclass(frozen=True, slots=True)
class Terminal:
    """Output of reports to standard output, for people."""

    details: bool = False
    """Whether all details are printed."""

    def save(self, report: Report) -> None:
        """Print a report. Raises EnvironmentFailure."""
        from sqlstress.show.text import pages

        print_page(pages(self.details).report(report))


class Saver:
    """Writer of a report to files after each step, and to other outputs at the end."""

    def __init__(
        self,
        outputs: Sequence[Output],
        terminal: Terminal | None = None,
        step: SaveStep | None = None,
        note: Tell | None = None,
    ) -> None:
        """`note` prints a line on the folder of databases kept with --keep; None prints none."""
        self._terminal = [terminal] if terminal else []
        self._step = [step] if step else []
        self._note = note
        self._written: dict[str, None] = {}  # names of written outputs: a set that keeps its order
        self._lost: set[Output | Terminal] = set()
        self._files = [output for output in outputs if not is_stream(output.path)]
        self._streams = [output for output in outputs if is_stream(output.path)]
        self.problem: SqlstressError | None = None
        """Error of the last attempt to save; None after a success."""

    @classmethod
    def of(
        cls,
        outputs: Sequence[str],
        github: bool,
        quiet: bool,
        details: bool,
        formats: Collection[str] = FORMATS,
    ) -> Saver:
        """Return the saver for the values of -o, --github, --quiet and --details.

        Raises UsageError for invalid options, and EnvironmentFailure if standard output is closed and would
        be the only output.
        """
        parsed_outputs = parse_outputs(outputs, formats)
        if sys.stdout is None and not quiet:
            if not parsed_outputs and not github:
                raise EnvironmentFailure(f"{CLOSED}. Save the report with -o report.json.")
            quiet = True  # the report is saved to files or GitHub, so standard output is not needed
        tell = print_error if sys.stdout is None else text_printer(parsed_outputs)
        terminal = None if quiet or use_stdout(parsed_outputs) else Terminal(details)
        step = SaveStep.here(tell) if github else None
        return cls(parsed_outputs, terminal, step, None if quiet else tell)

    def after_step(self, report: Report) -> None:
        """Write the report so far to the files, after a step of the study.

        Pipes and devices are written only at the end.
        """
        self.problem = None
        self._save(self._files, report)

    def save_final(self, report: Report, kept_folder: Path | None = None) -> None:
        """Write the final report to the outputs that are written once: terminal, pipes, devices, GitHub.

        If an output failed and no JSON file has the report, save a copy in the temporary folder.
        `kept_folder` is the folder of kept databases, or None.
        """
        if report.holds_something:
            self._save([*self._terminal, *self._streams], report)
        if kept_folder and self._note:
            try:
                self._note(f"The databases are kept in {kept_folder}.")
            except SqlstressError as error:
                self.problem = error
        self._save(self._step, report)
        # If a JSON file has the report, the user can make the other formats from it.
        kept = any(output.format == "json" for output in self._files if output not in self._lost)
        if self._lost and not kept:
            self._rescue(report)
        for output in self._files:
            with suppress(OSError):
                if output.format == "json" and output.path.stat().st_size > MAX_BYTES:
                    print_error(
                        f"Warning: {output.path} is larger than {MAX_BYTES >> 20} MiB, so sqlstress cannot "
                        "read it again. Split the plan, or also save -o report.html -o report.csv."
                    )

    @property
    def prints(self) -> bool:
        """Whether the report is printed on standard output for people."""
        return bool(self._terminal)

    def saved(self) -> list[str]:
        """Return the names of the outputs written so far."""
        return list(self._written)

    @contextmanager
    def interruption_explained(self) -> Iterator[None]:
        """Turn a KeyboardInterrupt in the block into Interrupted, whose message names the written files.

        If the block ends without an error, later stop signals are ignored, because only the final messages
        are still to be printed.
        """
        # Imported here, because commands that only show reports do not need this module.
        from sqlstress.system.interrupt import ignore_stop_signals

        try:
            yield
            ignore_stop_signals()
        except KeyboardInterrupt as stop:
            kept = f"; what was measured is in {', '.join(self._written)}" if self._written else ""
            raise Interrupted(f"stopped{kept}.") from stop

    def _save(self, outputs: Sequence[Output | Terminal | SaveStep], report: Report) -> None:
        for output in outputs:
            try:
                output.save(report)
            except SqlstressError as error:
                self.problem = error
                if not isinstance(output, SaveStep):  # a missing summary loses no report
                    self._lost.add(output)
                continue
            if isinstance(output, Output):
                self._written[output.name] = None
                self._lost.discard(output)

    def _rescue(self, report: Report) -> None:
        """Save the report as JSON in the temporary folder, and name the file in the error message."""
        try:
            name = Path(gettempdir()) / f"sqlstress-report-{token_hex(4)}.json"
            write_atomically(name, to_json(report))
        except (OSError, SqlstressError):
            rescued = "Saving a copy in the temporary folder failed too."
        else:
            rescued = f"The report is in {name}."
        self.problem = EnvironmentFailure(f"{self.problem} {rescued}")
