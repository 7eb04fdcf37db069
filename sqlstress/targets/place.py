"""The seam between the engine and what it measures: what is asked of a target, and of a place.

What a target can't answer is None, or there are none of it: it is never faked. What only one target can
answer, such as SQLite what is in its WAL, has no name here: who needs it asks that target's package.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sqlstress.errors import EnvironmentFailure, UsageError, plainly

if TYPE_CHECKING:  # a worker process need not know more of a place than it asks
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.options.dsn import Dsn
    from sqlstress.report import Check, SqliteBuild, WorkerResult
    from sqlstress.report.case import Case, Server
    from sqlstress.report.results import Where
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.views import Client, Directions, Maker, NativeLoop, Operation, Reader, Store, Table

MEANWHILE = "while it was measured"
SERVER_FOLDER = "server"
"""What a folder of ours calls the one that a server of ours fills: it is removed as a whole."""
TRIAL_FOLDER, NOTES_FOLDER = "trial", "notes"
"""The same of those that programs of the user's may fill in a trial, and of what they note."""

Definition = tuple[Any, ...]
"""What a schema defines: which thing, and how; or whatever else a target tells definitions apart by."""


def redefinitions(created: Sequence[Definition], present: Sequence[Definition]) -> list[str]:
    """Say what a schema lacks, and what it holds besides; what has been changed is both."""
    lacks = [f"lacks {what}: {how!r:.160}" for what, how in created if (what, how) not in present]
    added = [(what, how) for what, how in present if (what, how) not in created]
    return lacks + [f"holds {what}: {how!r:.160}, which nobody created" for what, how in added]


class Disturbance(NamedTuple):
    """What somebody else did to the data."""

    text: str
    """A sentence without its full stop."""
    unread: str | None = None
    """What a check says that has nothing to read; None where the proof can be made all the same."""
    by_outsider: bool = False
    """Whether `text` is a predicate, to which the experiment adds the possible outsiders as subject."""


class Seal:
    """Files as they were when it was made, to be looked at without opening them. One that was not there then
    is none of its business.

    A process that works on a file does not see that its name has gone to another one: it goes on with
    a deleted file as if nothing had happened, as fast as before.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        """Raises OSError when it can't be told what a file is."""
        self._files = [(path, identity) for path in paths if (identity := _identity(path))]

    def broken(self) -> str | None:
        """Say which file is another one now, or gone, or that it can't be told; None when none is."""
        try:
            return self.exchanged()
        except OSError as error:
            return f"a database file could not be looked at ({error.strerror})"

    def exchanged(self) -> str | None:
        """Say the same, or raise OSError where it can't be told."""
        for path, before in self._files:
            now = _identity(path)
            if now != before:
                return f"{path.name} was {'replaced by another file' if now else 'deleted'}"
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the number of a file; None when there is none. Raises OSError."""
    try:
        try:
            status = path.stat()
        except PermissionError:  # others may have it open in a way that denies that for a moment
            from sqlstress.system.files import tried_again

            status = tried_again(path.stat)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


class ClientStore:
    """A store whose connections a client has; who makes it fills the lists."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.was_busy, self.busy_counts = client.was_busy, client.busy_counts
        self.effective, self.close = client.effective, client.close
        self.gets: list[Operation] = []
        self.pairs: list[Operation] = []
        self.puts: list[Operation] = []
        self.batches: list[Operation] = []
        self.updates: list[Operation] = []


class Watch(Protocol):
    """A process's own account of where its time goes."""

    def window(self, opens_ns: int, closes_ns: int) -> None:
        """Say which time counts, in perf_counter_ns."""

    def end(self) -> None:
        """Say that all is done."""


class Snapshot(Protocol):
    """A place as it was when it had been prepared."""

    def exchanged(self) -> str | None:
        """Say what of it is another one now, or gone; None when nothing is."""

    def seal(self) -> None:
        """Take the files that are there now for those that must stay: some were restored meanwhile."""

    def changed(self, pulse: Pulse) -> Disturbance | None:
        """Say what else somebody has changed that is no work of ours; None when nothing is to be seen of it.

        No process of ours may be connected any more.
        """


class Place(Protocol):
    """Where the data of one case lies, as one process has it: the parent, or a worker."""

    case: Case
    where: Path
    """What `open_place` made it of: other processes make theirs of the same."""
    copies: dict[Any, Any] | None = None
    """What places before this one prepared, to be prepared so again; None: everything is made anew."""

    @property
    def stores(self) -> bool:
        """Whether it keeps what it is given; else there is nothing to prepare, to prove or to examine."""

    # A worker's, and of a process beside the workers.

    def watch(self, trace: Any, process: int) -> Watch | None:
        """Begin to tell where this process's time goes, in words that `trace` made; before it connects.

        Processes have the workers' numbers, and beyond them those beside the workers. None where there is
        nothing to tell. Raises EnvironmentFailure where it can't be told.
        """
        return None

    def pause(self, schedule: Sequence[int]) -> None:
        """Let this process pause inside the store, as a schedule of its own kind says; before it connects.

        Raises EnvironmentFailure where it can't.
        """
        raise EnvironmentFailure("pauses need SQLite. Choose --driver sqlite3 or apsw.")

    def keyvalue(self, worker: int, begin: str, sample: Any) -> Store:
        """Connect a worker to every bucket, and return its key-value view, with the settings of the case.

        `begin` is how transactions of several statements begin, one of BEGINS. `sample` is a value like those
        that are stored: a place that keeps nothing answers with it.
        """

    def bare_call(self) -> AbstractContextManager[Callable[[], object]]:
        """Connect, and yield the cheapest call that the binding can make: it asks nothing of the data.

        Only where the place stores something.
        """

    def native(self, worker: int, begin: str) -> NativeLoop:
        """Do the same for a loop in C. Raises EnvironmentFailure where there is none."""

    def seal(self) -> Seal | None:
        """Seal what this process holds open; None where nothing of it can be exchanged unseen."""
        return None

    # The parent's.

    def trace(self, processes: int) -> Any:
        """Make the shared words in which so many processes tell where their time goes; None: nothing is told.

        Raises EnvironmentFailure where there is no room.
        """
        return None

    def account(self, trace: Any, workers: Sequence[WorkerResult]) -> Where | None:
        """Return what they told; None where that is nothing."""
        return None

    def table(self, key_type: str, value_size: int, counters: int) -> Table | None:
        """Return the parent's key-value view: keys of one of KEY_TYPES, values of so many bytes.

        In each bucket there are so many counters. None where nothing is stored.
        """
        return None

    def proving(self, plan: dict[str, Any], pulse: Pulse) -> AbstractContextManager[Callable[[], int | None]]:
        """Look at the key-value view in C, beside what is done in the block, and yield what returns how many
        rows it has, if all of them are right; None where they are not, or where there is no C: then each row
        has to be looked at.
        """
        return nullcontext(lambda: None)

    def schema(self) -> Sequence[Definition]:
        """Return what is defined, in every bucket alike; nothing where nothing is."""
        return ()

    def snapshot(self, pulse: Pulse) -> Snapshot | None:
        """Take down what no worker changes, when everything is prepared; None where there is nothing."""
        return None

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        """Yield (setting, value asked for, answer) where another value was read back."""
        return iter(())

    def integrity(self, level: str, pulse: Pulse) -> Check | None:
        """Say whether the target takes its own data for sound; `level` is "quick" or "full"."""
        return None

    def redefined(self, created: Sequence[Definition], pulse: Pulse) -> Check | None:
        """Say whether every bucket defines what was created, and nothing else."""
        return None

    def discard(self) -> None:
        """Remove what lies there of this case, and nothing else."""


class SqlPlace(Place, Protocol):
    """A place that speaks SQL."""

    def directions(self) -> Directions:
        """Return how programs of the user's find it. There is no password in the address."""

    def clear(self) -> None:
        """Make it as programs of the user's find it that make what is in it."""

    def is_filled(self) -> bool:
        """Return whether anything has been made there."""

    def settle(self, pulse: Pulse) -> None:
        """Make it as workers are to find it, when such a program has made what is in it."""

    def rows_written(self, pulse: Pulse) -> int | None:
        """Return how many rows were ever written, as the target counts them; None where it does not.

        No program of the user's may be connected any more.
        """

    def client(self, worker: int) -> Client:
        """Return a worker's half, not yet connected; numbers below 1 are those of processes beside them."""

    def reader(self) -> Reader:
        """Connect to read while workers work, with the settings of the case."""

    def reading(self, pulse: Pulse) -> AbstractContextManager[Reader]:
        """Connect to read while no worker of ours works."""

    def making(self, pulse: Pulse) -> AbstractContextManager[Maker]:
        """Make the place, as far as it is not there, and what is in it; then it is as workers are to find it.

        Raises UsageError or EnvironmentFailure when a setting was not taken.
        """


class Target(Protocol):
    """A target: its module has one, called TARGET."""

    FILES: str | None = None
    """The names of the files that it leaves in a folder, as a regular expression; None: it leaves none."""
    DESCRIPTORS: int = 0
    """File descriptors that a process needs for each bucket, at most."""

    def open_place(self, case: Case, where: Path) -> Place:
        """Return where the data of a case lies; nothing is touched there yet."""

    def checked(self, case: Case, server: Server, anyway: bool) -> Case:
        """Return a case as it is carried out here; `server` is what was said of one.

        `anyway`: also on one that is not this machine. Raises UsageError for what it can't carry out.
        """
        return case

    def stand_in(self, folder: Path) -> Directions:
        """Return directions to nothing, for a program of the user's that is only looked at.

        `folder` is an empty one of ours.
        """
        raise UsageError("this target does not support your own programs")

    def serving(self, cases: Sequence[Case], folder: Path) -> AbstractContextManager[None]:
        """Have what cases need beside their workers, in a folder of ours, while the block lasts.

        Raises EnvironmentFailure where it can't be had.
        """
        return nullcontext()

    def preload(self, driver: str) -> Sequence[str]:
        """Return the modules that a worker imports of it, so that they are there before it is forked.

        None of them may open anything or begin a thread when it is imported.
        """

    def explain(self, driver: str, error: Exception) -> str:
        """Return what went wrong, and what to do about it, with the target's name for it."""
        return plainly(error)

    def durability(self, case: Case, effective: Mapping[str, str]) -> str:
        """Return what a commit is worth with the settings that were read back, in words.

        Before a colon stands what it is on the scale that all targets share (`sqlstress.target`), after it
        by which settings. "" where that is not known.
        """

    def lacks_native(self, driver: str) -> str | None:
        """Say why a driver has no loop in C here; None where it has one."""

    def foresees(self, error: Exception) -> bool:
        """Return whether an error is of a kind that its drivers raise: it is no fault of this program."""
        return False

    def untold(self, driver: str) -> str | None:
        """Return why it can't be told where the time goes with a driver, here; None when it can."""

    def unseen(self) -> str | None:
        """Return why it can't be seen from outside who holds a lock here; None when it can."""
        return "only SQLite's locks can be seen from outside"

    def at_hand(self, driver: str, address: Dsn | None) -> str:
        """Return what a driver would measure here, with versions; nothing is started for it.

        `address` is a server's. Raises UsageError or EnvironmentFailure, with what to do, where it lacks.
        """

    def describe(self, driver: str) -> SqliteBuild | None:
        """Return the library that a driver uses, for the fingerprint; None where there is none."""
        return None
