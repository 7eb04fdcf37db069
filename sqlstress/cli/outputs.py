"""What -o names: a file, by suffix or as FORMAT:FILE, or the standard output, as FORMAT:-."""

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
from sqlstress.report.document import LARGEST, STDOUT, is_stdout, is_stream, remove_unfinished, try_creation
from sqlstress.show.formats import BESIDE, FORMATS, NAMED
from sqlstress.system.files import for_message, reason, too_long

Tell = Callable[[str], None]
"""`say`, or `complain` where the standard output is taken by a report."""
CLOSED = "standard output is closed, so nothing can be printed"
_PLAINER = str.maketrans("▁▂▃▄▅▆▇█–µ", "12345678-u")  # noqa: RUF001 - the dash of a missing figure


def say(text: str, end: str = "\n") -> None:
    """Print on standard output, in the characters that it has. A reader that has had enough is no error.

    Raises EnvironmentFailure when the text can't be written, such as into a file on a full disk.
    """
    if sys.stdout is None:
        raise EnvironmentFailure(f"{CLOSED}.")
    try:
        try:
            click.echo(text + end, nl=False)
        except UnicodeEncodeError:
            # An old code page of Windows, say. Bars become the digits of their heights.
            encoding = sys.stdout.encoding
            plainer = (text + end).translate(_PLAINER).encode(encoding, "replace").decode(encoding)
            click.echo(plainer, nl=False)
    except BrokenPipeError:
        pass
    except OSError as error:
        raise EnvironmentFailure(f"cannot write to standard output: {error.strerror}.") from error


def say_page(text: str) -> None:
    """Print a page, in colours where a terminal shows them (https://no-color.org).

    Raises EnvironmentFailure.
    """
    from sqlstress.show.text import coloured

    terminal = sys.stdout is not None and sys.stdout.isatty()
    wanted = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    say(coloured(text) if wanted else text, end="")


def complain(text: str) -> None:
    """Print on standard error; there is nobody to tell if that can't be done."""
    with suppress(OSError):
        click.echo(text, err=True)


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
        raise UsageError("only one report can go to standard output. Give a file name for the other.")
    if take_stdout(found) and sys.stdout is None:
        raise EnvironmentFailure("standard output is closed. Give the report a file name with -o.")
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
        raise UsageError(f"-o -: the format is missing. Write FORMAT:-, such as {next(iter(formats))}:-.")
    else:
        suffix = Path(text).suffix.lower().removeprefix(".")
        if suffix not in formats:
            raise UsageError(
                f"-o {text!r}: the formats are {', '.join(formats)}.{suggestion(suffix, formats)} "
                "End the name with one of them, or write FORMAT:FILE."
            )
        found = Output(suffix, Path(text))
    if found.beside and found.is_stdout:
        raise UsageError(f"-o {text!r}: {found.format} writes two files. Give the name of the first.")
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
    except PermissionError as error:
        why = f"no permission to open the folder {for_message(path.parent)}{_permissions(path.parent)}"
        raise UsageError(f"-o {text!r:.60}: {why}. Choose another file.") from error
    except OSError as error:
        raise UsageError(f"-o {text!r:.60}: {error.strerror}. Choose another file.") from error
    if not path.name or is_folder:
        raise UsageError(f"-o {text!r}: this is not a file name. Give one such as report.json.")
    if not has_folder:
        raise UsageError(
            f"-o {text!r:.60}: no such folder: {for_message(written[0])}{too_long(path)}. Create it first."
        )
    why = "" if is_stream(path) else _refusal_of_folder(path.resolve())
    if not why and written[-1].exists() and not os.access(written[-1], os.W_OK):
        why = f"cannot write {for_message(written[-1])}: no permission{_permissions(written[-1])}"
    if why:
        raise UsageError(f"-o {text!r:.200}: {why}. Choose another file.")


def _refusal_of_folder(target: Path) -> str:
    """Return why no file can be created next to a file; empty if a file was created and removed."""
    try:
        try_creation(target)
    except PermissionError:
        why = f"no permission to create files in this folder{_permissions(target.parent)}"
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return ""  # there may be space when the report is written
        why = reason(error)
    else:
        return ""
    return f"cannot write {for_message(target.parent)}: {why}"


def _permissions(place: Path) -> str:
    """Return the permissions of a file or folder in brackets; empty if the system has other ones."""
    with suppress(OSError):
        if os.name == "posix":
            return f" ({stat.filemode(place.stat().st_mode)})"
    return ""


def _written(path: Path) -> list[Path]:
    """Return what must be writable: a stream itself; a file is replaced as a whole, so its folder too."""
    if is_stream(path):
        return [path]
    target = path.resolve()  # a symbolic link is followed
    return [target.parent, target] if target.exists() else [target.parent]


# --github: the step's summary, and annotations.


VARIABLE = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a job on GitHub Actions."""

    summary: Path
    """The file to which its summary is appended."""

    tell: Tell = say
    """Prints an annotation: GitHub reads them from either stream."""

    @classmethod
    def here(cls, tell: Tell = say) -> Step:
        """Return the step that this process is part of. Raises UsageError outside of one."""
        name = os.environ.get(VARIABLE)
        if not name:
            raise UsageError(f"--github works in GitHub Actions only: {VARIABLE} is not set. Leave it out.")
        return cls(Path(name), tell)

    def save(self, *reports: Report) -> None:
        """Show reports. Raises EnvironmentFailure."""
        from sqlstress.show.github import summary, workflow_commands

        self.show(workflow_commands(*reports), summary(*reports))

    def show(self, annotations: Iterable[str], summary: str) -> None:
        """Print the annotations, and append to the summary. Raises EnvironmentFailure."""
        for line in annotations:
            self.tell(line)
        try:
            with self.summary.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                file.write(f"{summary}\n")
        except OSError as error:
            raise EnvironmentFailure(f"cannot write {VARIABLE}: {error.strerror}.") from error


@dataclass(frozen=True, slots=True)
class Terminal:
    """Standard output, as one of the places where a report goes."""

    details: bool = False
    """Whether everything is printed, or what is needed first."""

    def save(self, report: Report) -> None:
        """Print a report. Raises EnvironmentFailure."""
        from sqlstress.show.text import pages

        say_page(pages(self.details).report(report))


class Saver:
    """Saves a report to every file after each step. A file that can't be written stops no measurement."""

    def __init__(
        self,
        outputs: Sequence[Output],
        terminal: Terminal | None = None,
        step: Step | None = None,
        note: Tell | None = None,
    ) -> None:
        """`note` says what a reader of no file would not know otherwise; None: nobody wants to."""
        self._terminal = [terminal] if terminal else []
        self._step = [step] if step else []
        self._note = note
        self._written: dict[str, None] = {}  # a set that keeps its order
        self._lost: set[Output | Terminal] = set()
        self._files = [output for output in outputs if not is_stream(output.path)]
        self._streams = [output for output in outputs if is_stream(output.path)]
        self.problem: SqlstressError | None = None
        """Why the report as it was last could not be saved."""

    @classmethod
    def of(
        cls,
        outputs: Sequence[str],
        github: bool,
        quiet: bool,
        details: bool,
        formats: Collection[str] = FORMATS,
    ) -> Saver:
        """Return what saves as -o, --github, --quiet and --details say.

        Raises UsageError before anything has been measured. Raises EnvironmentFailure if no output would
        hold the report, because standard output is closed.
        """
        found = parse_outputs(outputs, formats)
        if sys.stdout is None and not quiet:
            if not found and not github:
                raise EnvironmentFailure(f"{CLOSED}. Save the report with -o report.json.")
            quiet = True  # the files have the report
        tell = complain if sys.stdout is None else beside(found)
        terminal = None if quiet or take_stdout(found) else Terminal(details)
        step = Step.here(tell) if github else None
        return cls(found, terminal, step, None if quiet else tell)

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
        if kept_folder and self._note:
            try:
                self._note(f"The databases are kept in {kept_folder}.")
            except SqlstressError as error:
                self.problem = error
        self._save(self._step, report)
        # Whatever else was asked for can be made of JSON.
        kept = any(output.format == "json" for output in self._files if output not in self._lost)
        if self._lost and not kept:
            self._rescue(report)
        for output in self._files:
            with suppress(OSError):
                if output.format == "json" and output.path.stat().st_size > LARGEST:
                    complain(
                        f"Warning: {output.path} is larger than {LARGEST >> 20} MiB, so sqlstress cannot "
                        "read it again. Split the plan, or also save -o report.html -o report.csv."
                    )

    @property
    def prints(self) -> bool:
        """Whether whoever looks on is shown the report."""
        return bool(self._terminal)

    def saved(self) -> list[str]:
        """Return the names of the files that have been written by now."""
        return list(self._written)

    @contextmanager
    def interruption_explained(self) -> Iterator[None]:
        """Raise Interrupted, which says what is kept, in the place of KeyboardInterrupt.

        Whoever stops us afterwards finds everything done but to say how it ended, and is not heard.
        """
        # Here, since who only shows reports has no engine.
        from sqlstress.system.interrupt import stop_no_more

        try:
            yield
            stop_no_more()
        except KeyboardInterrupt as stop:
            kept = f"; what was measured is in {', '.join(self._written)}" if self._written else ""
            raise Interrupted(f"stopped{kept}.") from stop

    def _save(self, outputs: Sequence[Output | Terminal | Step], report: Report) -> None:
        for output in outputs:
            try:
                output.save(report)
            except SqlstressError as error:
                self.problem = error
                if not isinstance(output, Step):  # a summary is not the report
                    self._lost.add(output)
                continue
            if isinstance(output, Output):
                self._written[output.name] = None
                self._lost.discard(output)

    def _rescue(self, report: Report) -> None:
        """Keep a report that could not be saved where it was to be, as JSON, in the temporary folder."""
        try:
            name = Path(gettempdir()) / f"sqlstress-report-{token_hex(4)}.json"
            write_atomically(name, to_json(report))
        except (OSError, SqlstressError):
            rescued = "Saving a copy in the temporary folder failed too."
        else:
            rescued = f"The report is in {name}."
        self.problem = EnvironmentFailure(f"{self.problem} {rescued}")
