"""Where the report goes: the terminal, what -o names, and what GitHub shows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir

from sqlstress.cli.console import Tell, complain, say
from sqlstress.cli.github import Step
from sqlstress.cli.outputs import Output, beside, parse_outputs, take_stdout
from sqlstress.errors import EnvironmentFailure, Interrupted, SqlstressError
from sqlstress.render import FORMATS
from sqlstress.report import Report, to_json, write_atomically
from sqlstress.report.document import LARGEST
from sqlstress.report.saving import is_stream


class Terminal:
    """Standard output, as one of the places where a report goes."""

    def save(self, report: Report) -> None:
        """Print a report. Raises EnvironmentFailure."""
        from sqlstress.render.text import report_text

        say(report_text(report))


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
        found = parse_outputs(outputs, formats)
        tell = beside(found)
        terminal = None if quiet or take_stdout(found) else Terminal()
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
            self._tell(self._note, f"The databases are kept in {kept_folder}.")
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
                self._written[output.name] = None
                self._lost.discard(output)

    def _tell(self, note: Tell, text: str) -> None:
        try:
            note(text)
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
