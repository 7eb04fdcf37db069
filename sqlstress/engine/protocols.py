"""Interfaces between the engine and an experiment: the worker's half and the parent's half."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:  # a worker process need not import reports
    from sqlstress.engine.loop import Totals, Window
    from sqlstress.report import Trial, Verdict
    from sqlstress.statistics.series import Series
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.views import Operation

FAILED = 255
"""Kind of an operation that was given up."""

DONE, TIMEOUT, LIMIT = OUTCOMES = ("done", "timeout", "limit")
"""Outcomes of a fixed amount of work, the worst last. LIMIT means that SQLite refused to go on."""


class Chunk(NamedTuple):
    """A sequence of operations, prepared outside the measured times."""

    kinds: bytearray
    """Kind of each operation, as an index into the source's kinds; FAILED if it was given up."""
    calls: Iterable[Operation]
    params: Iterable[Any]
    rows: Any = None
    """Rows that each operation writes, in the experiment's own form."""
    sizes: Sequence[int] | None = None
    """Number of rows of each operation; None if the kind determines it."""


class Stamps(NamedTuple):
    """Begin and end of each operation of a chunk, in ns. Time may pass between an end and the next begin."""

    begins: list[int] | memoryview
    ends: list[int] | memoryview


class Source(Protocol):
    """A worker's half: its operations, chunk by chunk."""

    kinds: Sequence[str]
    """Names of the kinds of operations."""
    acknowledges: bool
    """Whether the operations done must be known even if the worker is killed."""
    stamps: Any
    """If `acknowledges`, the Stamps to fill. The ends are shared 64-bit words: the acknowledgements."""
    row_weights: Sequence[int]
    """Rows read or written by one operation of each kind."""
    largest_chunk: int

    def next_chunk(self, size: int) -> Chunk | None:
        """Prepare up to `size` operations; return None if all operations are done."""

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        """Record that an operation was given up after its time-out; re-raise any other error."""

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Acknowledge the first `done` operations, for each of which `stamps` has a begin and an end."""

    def busy_counts(self) -> tuple[int, int]:
        """Return the BUSY and BUSY_SNAPSHOT answers so far."""

    def findings(self) -> Findings:
        """Return the errors in the data that the worker read, and its effective settings."""

    def close(self) -> None:
        """Close the store."""


class SelfDriven:
    """A worker's half with its own timed loop, which counts in the same way as `engine.loop`."""

    def run(self, window: Window, limit: int | None, progress: Any, stop: Any) -> Totals:
        """Run operations until the window closes, `limit` are done, or stop[0] is set."""
        raise NotImplementedError

    def findings(self) -> Findings:
        """Return the errors in the data that the worker read, and its effective settings."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the store."""
        raise NotImplementedError


class Findings(SimpleNamespace):
    """One worker's observations of the data and of its settings."""

    effective: dict[str, str]
    reads_checked: int
    bad_reads: int
    bad_read_examples: list[str]
    pairs_checked: int
    torn: int
    torn_examples: list[str]
    outcome: str
    """One of OUTCOMES."""
    note: str
    """Line that explains an outcome other than DONE."""
    series: list[tuple[str, str, list[int]]]
    """Values recorded over time, as name, unit and values of a Series."""
    latency: dict[str, tuple[dict[int, int], int]]
    """Latencies of parts of operations, in the window: name → (histogram, longest in ns)."""
    failures: list[tuple[str, str, dict[int, int], int]]
    """Failed operations in the window: kind, error name, latency histogram and maximum in ns."""
    sightings: list[tuple[str, str, int, str, dict[str, str]]]
    """Events of interest, as topic, kind, count, example and traits of a Sighting."""
    reconnected: bool
    """Whether the worker closed connections during the trial: the last close of all deletes the WAL."""
    modules: dict[str, str]
    """The file of each module that the user's file imported, by name, as in a Trial."""
    broken_seal: str | None
    """Clause on an open file that was replaced or deleted during the work; None if there is no such file."""

    def __init__(self, **values: Any) -> None:
        super().__init__(reads_checked=0, bad_reads=0, pairs_checked=0, torn=0, outcome=DONE, note="")
        self.bad_read_examples, self.torn_examples, self.series, self.sightings = [], [], [], []
        self.effective, self.latency, self.failures, self.reconnected = {}, {}, [], False
        self.modules = {}
        self.broken_seal = None
        vars(self).update(values)


class Outcome(NamedTuple):
    """The parent's information on one worker after the trial."""

    worker: int
    died: bool
    findings: Findings | None
    over_ns: int = 0
    """Time by which a dead worker had ended, on the workers' clock, in ns; 0 means unknown."""


class Companion(Protocol):
    """An additional process whose operations count in no figure. It connects when it is created."""

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Do the companion's work, at most until `ended` returns true. `window` is the workers' window."""

    def close(self) -> None:
        """Close its connections."""


class Work(Protocol):
    """The parent's half of one trial. An experiment inherits the methods that it does not need."""

    shared: tuple[Any, ...]
    """Shared arrays, passed to the workers unchanged when they start."""
    companions: tuple[str, ...] = ()
    """Names of the additional processes to run, from the experiment's `companions()`."""
    redefines: bool = False
    """Whether the workers may change definitions: tables, indexes, the journal mode."""

    trace: Any = None
    """Shared memory of the `--where` recording, made by the place; None if it is off."""

    def share(self, pulse: Pulse) -> None:
        """Create `shared` and `trace` if they do not exist yet."""
        return

    def prepare(self, pulse: Pulse) -> None:
        """Create and fill the workers' data. Call `pulse` often; it may raise Interrupted."""

    def begins(self, pulse: Pulse) -> None:
        """Called before the workers connect, after the parent's last look at the prepared data."""
        return

    def meanwhile(self, window: Window, pulse: Pulse) -> None:
        """Called about ten times a second during the load, and shortly before it."""
        return

    def ended(self, pulse: Pulse) -> None:
        """Called after all workers have disconnected."""
        return

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        """Return the verdict: whether the data agrees with the workers' acknowledged writes."""

    @property
    def completing(self) -> str:
        """Name of the phase for `complete`; empty if `complete` takes no time."""
        return ""

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Return the trial with measurements taken after the workers' end, such as its file space."""
        return trial

    def release(self) -> None:
        """Close open resources. Always called after a trial, before the files are removed."""
        return

    def discard(self) -> None:
        """Remove the files. Always called after a trial."""
