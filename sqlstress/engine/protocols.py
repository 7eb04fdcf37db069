"""Interfaces between the engine, which runs trials, and an experiment.

An experiment has a part for the worker processes (Source or SelfDriven) and one for the parent (Work).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:  # a worker process does not need these modules
    from sqlstress.engine.loop import Totals, Window
    from sqlstress.report import Trial, Verdict
    from sqlstress.statistics.series import Series
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.views import Operation

FAILED = 255
"""Kind of an operation in `Chunk.kinds` if it was given up after its timeout."""

DONE, TIMEOUT, LIMIT = OUTCOMES = ("done", "timeout", "limit")
"""Results of a trial with a fixed amount of work, best first. LIMIT: SQLite reached one of its limits."""


class Chunk(NamedTuple):
    """Operations prepared in advance, which the timed loop runs without other work in between."""

    kinds: bytearray
    """Kind of each operation, as an index into the source's kinds, or FAILED."""
    calls: Iterable[Operation]
    params: Iterable[Any]
    rows: Any = None
    """Rows that each operation writes, in a form that only the experiment knows."""
    sizes: Sequence[int] | None = None
    """Number of rows of each operation; None means the numbers in `Source.row_weights`."""


class Stamps(NamedTuple):
    """Begin and end of each operation of a chunk, in ns. There may be pauses between operations."""

    begins: list[int] | memoryview
    ends: list[int] | memoryview


class Source(Protocol):
    """A worker's part of an experiment: prepare operations in chunks, and take their results."""

    kinds: Sequence[str]
    """Names of the kinds of operations."""
    acknowledges: bool
    """Whether the parent must know the completed operations even if the worker is killed."""
    stamps: Any
    """Shared memory for the Stamps, if `acknowledges`. To write an end is to acknowledge the operation."""
    row_weights: Sequence[int]
    """Number of rows that one operation reads or writes, per kind."""
    largest_chunk: int

    def next_chunk(self, size: int) -> Chunk | None:
        """Prepare up to `size` operations; return None if no operation is left."""

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        """Record that operation `index` of the chunk timed out; re-raise any other `error`."""

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Acknowledge and check the first `done` operations of a chunk, which returned `results`."""

    def busy_counts(self) -> tuple[int, int]:
        """Return the worker's numbers of BUSY and of BUSY_SNAPSHOT results so far."""

    def findings(self) -> Findings:
        """Return the worker's observations: errors in the data, its connections' settings, and more."""

    def close(self) -> None:
        """Close the connections."""


class SelfDriven:
    """Worker's part of an experiment with its own timed loop, such as a loop in C.

    The loop must count operations as `engine.loop` does.
    """

    def run(self, window: Window, limit: int | None, progress: Any, stop: Any) -> Totals:
        """Run operations as `engine.loop.timed_loop` does; return the totals."""
        raise NotImplementedError

    def findings(self) -> Findings:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Findings(SimpleNamespace):
    """One worker's observations, as plain data for a pipe: errors in the data, settings and more."""

    effective: dict[str, str]
    reads_checked: int
    bad_reads: int
    bad_read_examples: list[str]
    pairs_checked: int
    torn: int
    torn_examples: list[str]
    outcome: str
    """Result of a fixed amount of work: one of OUTCOMES."""
    note: str
    """Line that explains an outcome other than DONE; else empty."""
    series: list[tuple[str, str, list[int]]]
    """Values over time: (name, unit, values) of each Series."""
    latency: dict[str, tuple[dict[int, int], int]]
    """Latencies of parts of operations in the window: name → (histogram, maximum in ns)."""
    failures: list[tuple[str, str, dict[int, int], int]]
    """Failed operations in the window: (kind, error name, latency histogram, maximum in ns)."""
    sightings: list[tuple[str, str, int, str, dict[str, str]]]
    """Observed events, such as errors: (topic, kind, count, example, traits), as in a Sighting."""
    reconnected: bool
    """Whether the worker closed connections during the trial, so that SQLite may delete the WAL."""
    modules: dict[str, str]
    """File of each module that the user's file imported, by module name."""
    broken_seal: str | None
    """Text on a database file that was replaced or deleted while the worker had it open, or None."""

    def __init__(self, **values: Any) -> None:
        super().__init__(reads_checked=0, bad_reads=0, pairs_checked=0, torn=0, outcome=DONE, note="")
        self.bad_read_examples, self.torn_examples, self.series, self.sightings = [], [], [], []
        self.effective, self.latency, self.failures, self.reconnected = {}, {}, [], False
        self.modules = {}
        self.broken_seal = None
        vars(self).update(values)


class Outcome(NamedTuple):
    """Information on one worker after the trial, for the parent's verification."""

    worker: int
    died: bool
    findings: Findings | None
    over_ns: int = 0
    """Time of `perf_counter_ns` at which the parent noticed the worker's death, in ns; 0 means unknown."""


class Companion(Protocol):
    """An additional process of a trial, whose operations do not count. Creating it connects it."""

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Work until `ended` returns true; return the values recorded in the measured time."""

    def close(self) -> None:
        """Close the companion's connections."""


class Work(Protocol):
    """The parent's part of one trial. An experiment overrides the methods that it needs."""

    shared: tuple[Any, ...]
    """Shared arrays that every worker gets when it starts."""
    companions: tuple[str, ...] = ()
    """Additional processes to run: keys of the experiment's `companions()`."""
    redefines: bool = False
    """Whether the workers may change the schema or the journal mode."""

    trace: Any = None
    """Shared memory for the times of `--where`; None if it is off."""

    def share(self, pulse: Pulse) -> None:
        """Create `shared` and `trace` if they do not exist yet."""
        return

    def prepare(self, pulse: Pulse) -> None:
        """Create and fill the workers' data. Call `pulse` often; it may raise Interrupted."""

    def begins(self, pulse: Pulse) -> None:
        """Prepare for the load, after a snapshot of the data was taken, before workers connect."""
        return

    def meanwhile(self, window: Window, pulse: Pulse) -> None:
        """Do the parent's work during the load, such as taking a sample.

        Called shortly before the load, and about ten times a second during the load.
        """
        return

    def ended(self, pulse: Pulse) -> None:
        """Do the parent's work after the load, when all workers have disconnected."""
        return

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        """Return the verdict: whether the data agrees with the workers' acknowledged writes."""

    def explain(self, trial: Trial) -> Trial:
        """Return the trial with observations on why another program may have changed the trial's data."""
        return trial

    @property
    def completing(self) -> str:
        """Name for the progress line while `complete` runs; empty if `complete` takes no time."""
        return ""

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Return the trial with measurements after the load, such as the sizes of files."""
        return trial

    def release(self) -> None:
        """Close open resources. Always called after a trial, before `discard`."""
        return

    def discard(self) -> None:
        """Remove the files of the trial. Always called after a trial."""
