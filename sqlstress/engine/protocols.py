"""What the engine asks of a workload: a worker's half and the parent's half."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:  # a worker process need not know what a report is
    from sqlstress.engine.loop import Totals, Window
    from sqlstress.report import Trial, Verdict
    from sqlstress.statistics.series import Series
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.views import Operation

FAILED = 255
"""The kind of an operation that was given up."""

DONE, TIMEOUT, LIMIT = OUTCOMES = ("done", "timeout", "limit")
"""How a fixed amount of work ended, the worst last: done, given up after its time-out, refused by SQLite."""


class Chunk(NamedTuple):
    """A stretch of operations, prepared outside the times that are measured."""

    kinds: bytearray
    """Kind of each operation, as an index into the source's kinds; FAILED once it was given up."""
    calls: Iterable[Operation]
    params: Iterable[Any]
    rows: Any = None
    """What each operation writes, as the workload records it."""
    sizes: Sequence[int] | None = None
    """Rows of each operation, where those of a kind differ."""


class Stamps(NamedTuple):
    """When each operation of a chunk began, and when it ended: two rows, for there may be time between."""

    begins: list[int] | memoryview
    ends: list[int] | memoryview


class Source(Protocol):
    """A worker's half: what it does, chunk by chunk."""

    kinds: Sequence[str]
    """Names of the kinds of operations."""
    acknowledges: bool
    """Whether what was done must be known also of a worker that was killed."""
    stamps: Any
    """Where the loop then puts them: Stamps whose ends are shared 64-bit words, the acknowledgements."""
    row_weights: Sequence[int]
    """Rows read or written by one operation of each kind."""
    largest_chunk: int

    def next_chunk(self, size: int) -> Chunk | None:
        """Prepare up to `size` operations; None when everything has been done."""

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        """Record that an operation was given up after its time-out; re-raise any other error."""

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Acknowledge what was done: each row of `stamps` holds so many times."""

    def busy_counts(self) -> tuple[int, int]:
        """Return the BUSY and BUSY_SNAPSHOT answers so far."""

    def findings(self) -> Findings:
        """Return what the worker found wrong in what it read, and the settings it ran with."""

    def close(self) -> None:
        """Close the store."""


class SelfDriven:
    """A worker's half that has a timed loop of its own, which counts as that of `engine.loop` does."""

    def run(self, window: Window, limit: int | None, progress: Any, stop: Any) -> Totals:
        """Work until the window closes, `limit` operations are done, or stop[0] is set."""
        raise NotImplementedError

    def findings(self) -> Findings:
        """Return what the worker found wrong in what it read, and the settings it ran with."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the store."""
        raise NotImplementedError


class Findings(SimpleNamespace):
    """What one worker saw of the data and of its settings."""

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
    """What happened instead of DONE, in a line."""
    series: list[tuple[str, str, list[int]]]
    """What went on, as name, unit and values of a Series."""
    latency: dict[str, tuple[dict[int, int], int]]
    """What it timed itself within its operations, in the window: name → (histogram, longest in ns)."""
    failures: list[tuple[str, str, dict[int, int], int]]
    """Failed operations in the window: kind, error name, latency histogram and maximum in ns."""
    sightings: list[tuple[str, str, int, str, dict[str, str]]]
    """What it met, as topic, kind, count, example and traits of a Sighting."""
    reconnected: bool
    """Whether it closed connections in between: the last one of all takes the WAL along."""
    modules: dict[str, str]
    """The file of each module that the user's file imported, by name, as in a Trial."""
    broken_seal: str | None
    """Which of the files that the worker held open was another one when it had done; None: none."""

    def __init__(self, **known: Any) -> None:
        super().__init__(reads_checked=0, bad_reads=0, pairs_checked=0, torn=0, outcome=DONE, note="")
        self.bad_read_examples, self.torn_examples, self.series, self.sightings = [], [], [], []
        self.effective, self.latency, self.failures, self.reconnected = {}, {}, [], False
        self.modules = {}
        self.broken_seal = None
        vars(self).update(known)


class Outcome(NamedTuple):
    """What the parent knows of one worker when the trial is over."""

    worker: int
    died: bool
    findings: Findings | None
    over_ns: int = 0
    """When one that died had certainly ended, on the workers' clock; 0: not known."""


class Companion(Protocol):
    """A process beside the workers, whose operations count in no figure: it is connected when it is made."""

    def run(self, window: Window, ended: Callable[[], bool]) -> list[Series]:
        """Do what it does, until `ended` says so at the latest; the window is that of the workers."""

    def close(self) -> None:
        """Close its connections."""


class Work(Protocol):
    """The parent's half of one trial. A workload inherits from it what it has no need of."""

    shared: tuple[Any, ...]
    """Shared arrays, handed to the workers unchanged when they are started."""
    companions: tuple[str, ...] = ()
    """Names of the processes to run beside the workers, of the registry of companions."""
    redefines: bool = False
    """Whether the workers may change what is defined: tables, their indexes, the journal mode."""

    trace: Any = None
    """What its processes tell in where their time goes, as its place made it; None: nobody asks."""

    def share(self, pulse: Pulse) -> None:
        """Make `shared` and `trace`, where they are not there yet."""
        return

    def prepare(self, pulse: Pulse) -> None:
        """Create and fill what the workers connect to; calls `pulse` often, which may raise Interrupted."""

    def begins(self, pulse: Pulse) -> None:
        """The parent has looked at all that it compares later; the workers are about to connect."""
        return

    def meanwhile(self, window: Window, pulse: Pulse) -> None:
        """The workers work, or are about to; called about ten times a second."""
        return

    def ended(self, pulse: Pulse) -> None:
        """No worker is connected any more."""
        return

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        """Say whether the data is what the workers were told it is."""

    @property
    def completing(self) -> str:
        """The name of the phase in which `complete` takes time; empty if it takes none."""
        return ""

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        """Add to a trial what is measured when its workers have ended, such as the space it takes."""
        return trial

    def release(self) -> None:
        """Close what was kept open; called however the trial ended, and before the files are removed."""
        return

    def discard(self) -> None:
        """Remove the files; called however the trial ended."""
