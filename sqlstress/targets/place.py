"""The interface between the engine and the database under test: `Target` and `Place`.

A target is a kind of database. A place is one process's access to the data of one case. If a target does not
know the answer to a question, the target returns None or an empty result, and never a guess. Features of a
single target, such as the content of SQLite's WAL, are not part of this interface: code that needs them
imports that target's package.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sqlstress.errors import EnvironmentFailure, UsageError, plainly

if TYPE_CHECKING:  # A worker process imports only the modules that it uses.
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from sqlstress.options.dsn import Dsn
    from sqlstress.report import Check, SqliteBuild, WorkerResult
    from sqlstress.report.case import Case, Server
    from sqlstress.report.results import Where
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.views import (
        Client,
        ConnectionInfo,
        LogObserver,
        Maker,
        NativeLoop,
        Operation,
        Reader,
        Store,
        TableView,
    )

DURING_MEASUREMENT = "while it was measured"
SERVER_FOLDER = "server"
"""Name of the subfolder with a temporary server's files. It is removed with all of its content."""
TRIAL_FOLDER, NOTES_FOLDER = "trial", "notes"
"""Names of two subfolders: one for the files of a user program in a trial, and one for the notes of this
program. Both are removed with all of their content."""

Definition = tuple[Any, ...]
"""One definition of a schema: (name of the object, its SQL), or another pair of values that identifies it."""


def schema_differences(created: Sequence[Definition], present: Sequence[Definition]) -> list[str]:
    """Return the missing and the added definitions as texts; a changed definition counts as both."""
    missing = [f"lacks {name}: {sql!r:.160}" for name, sql in created if (name, sql) not in present]
    added = [(name, sql) for name, sql in present if (name, sql) not in created]
    return missing + [f"holds {name}: {sql!r:.160}, which nobody created" for name, sql in added]


def check_schemas(
    created: Sequence[Definition], present: Iterable[tuple[str, Sequence[Definition]]]
) -> Check:
    """Check that every schema has exactly the definitions `created`.

    `present` yields the name of each schema, for messages, and its definitions.
    """
    from sqlstress.report.results import CheckCounter

    counter = CheckCounter("schema")
    for name, definitions in present:
        counter.checked += len(created)
        for difference in schema_differences(created, definitions):
            counter.problem(f"{name} {difference}")
    return counter.check()


class Disturbance(NamedTuple):
    """A change of the data by another program."""

    text: str
    """Sentence on the change, without a full stop."""
    unread: str | None = None
    """Status of the verdict, "failed" or "unknown", if the change made the data unreadable; None if the data
    can still be verified."""
    by_outsider: bool = False
    """Whether `text` lacks a subject: the experiment then begins the sentence with the programs that may have
    made the change."""


class Seal:
    """Identities (device and inode numbers) that files had when the seal was made.

    A later check compares these identities with the current ones, without opening the files. Files that did
    not exist when the seal was made are ignored. The check is needed because a process does not notice that
    its open file was deleted or replaced: the process continues with the deleted file, as fast as before.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        """Record the identities of the existing files. Raises OSError if an identity cannot be read."""
        self._files = [(path, identity) for path in paths if (identity := _identity(path))]

    def broken(self) -> str | None:
        """Return a clause on a replaced, deleted or unreadable file; None if all files are unchanged."""
        try:
            return self.exchanged()
        except OSError as error:
            return f"a database file could not be looked at ({error.strerror})"

    def exchanged(self) -> str | None:
        """Return a clause on a replaced or deleted file; None if there is none.

        Raises OSError if the identity of a file cannot be read.
        """
        for path, sealed in self._files:
            current = _identity(path)
            if current != sealed:
                return f"{path.name} was {'replaced by another file' if current else 'deleted'}"
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode number of a file; None if the file does not exist. Raises OSError."""
    try:
        try:
            status = path.stat()
        except PermissionError:  # Another program that has just opened the file may deny access for a moment.
            from sqlstress.system.files import retry_while_denied

            status = retry_while_denied(path.stat)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


class ClientStore:
    """A key-value store on a client's connections.

    A subclass fills the lists of operations, one item per bucket.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.was_busy, self.busy_counts = client.was_busy, client.busy_counts
        self.effective, self.close = client.effective, client.close
        self.gets: list[Operation] = []
        self.pairs: list[Operation] = []
        self.puts: list[Operation] = []
        self.batches: list[Operation] = []
        self.updates: list[Operation] = []


class TimeRecorder(Protocol):
    """Recorder of the time that a process spends on each cause, such as waits for locks, for `--where`."""

    def window(self, opens_ns: int, closes_ns: int) -> None:
        """Set the begin and end of the measured window, in ns of perf_counter_ns."""

    def end(self) -> None:
        """Record that this process has done all its operations."""


class Snapshot(Protocol):
    """State of the data after its preparation, to detect changes by other programs during the load."""

    def exchanged(self) -> str | None:
        """Return a sentence on a replaced or deleted part of the place; None if there is no such part."""
        return None

    def seal(self) -> None:
        """Record the identities of the current files again, because some files were restored since the last
        call."""
        return

    def changed(self, pulse: Pulse) -> Disturbance | None:
        """Return a change of the data by another program; None if no change is visible.

        Call it when all our processes have closed their connections.
        """


class Place(Protocol):
    """One process's access to the data of one case. The process is the parent or a worker."""

    case: Case
    where: Path
    """Argument of `open_place`. Other processes open the same data with the same argument."""
    copies: dict[Any, Any] | None = None
    """Prepared data of earlier trials, from which later trials restore their data; None means that each trial
    creates its data."""

    @property
    def stores(self) -> bool:
        """Whether data is stored. If not, there is nothing to prepare or to verify."""

    # Methods for workers, and for companions (additional processes of a trial).

    def watch(self, trace: Any, process: int) -> TimeRecorder | None:
        """Start to record this process's time in the shared memory `trace`. Call it before connecting.

        `process` is the number of this process: workers have the numbers from 1 on, companions the next
        numbers. Return None if the target cannot record time. Raises EnvironmentFailure if recording is
        impossible on this system.
        """
        return None

    def pause(self, schedule: Sequence[int]) -> None:
        """Let this process pause inside the database's code, by a schedule in the target's format.

        Call it before connecting. Raises EnvironmentFailure if the target cannot pause its code.
        """
        raise EnvironmentFailure("pauses need SQLite. Choose --driver sqlite3 or apsw.")

    def keyvalue(self, worker: int, begin: str, sample: Any) -> Store:
        """Connect a worker to every bucket with the case's settings; return its key-value store.

        `begin` is the mode of multi-statement transactions, one of BEGINS. `sample` is a value like the
        stored values: a target without storage returns it for every get.
        """

    def bare_call(self) -> AbstractContextManager[Callable[[], object]]:
        """Connect, and yield a function that makes the cheapest call of the binding, which reads no data.

        Only targets that store data need this method.
        """

    def native(self, worker: int, begin: str) -> NativeLoop:
        """Connect a worker to every bucket for the C loop. Raises EnvironmentFailure if the target has no C
        loop."""
        raise EnvironmentFailure("the native loop drives SQLite only. Use --loop python.")

    def seal(self) -> Seal | None:
        """Return a seal (the identities) of the files that this process has open.

        Return None if no file can be replaced without an error in the process.
        """
        return None

    # Methods for the parent.

    def trace(self, processes: int) -> Any:
        """Create shared memory in which `processes` processes record their time.

        Return None if the target cannot record time. Raises EnvironmentFailure if there is not enough memory.
        """
        return None

    def account(self, trace: Any, workers: Sequence[WorkerResult]) -> Where | None:
        """Return the workers' time by cause, as recorded in `trace`; None if nothing was recorded."""
        return None

    def wal_observer(self) -> LogObserver | None:
        """Return an observer of the first bucket's write-ahead log; None if the target has no log."""
        return None

    def table(self, key_type: str, value_size: int, counters: int) -> TableView | None:
        """Return the parent's view of the key-value data; None if the target stores no data.

        `key_type` is one of KEY_TYPES, `value_size` the size of a value in bytes, `counters` the number of
        counters per bucket.
        """
        return None

    def proving(self, plan: dict[str, Any], pulse: Pulse) -> AbstractContextManager[Callable[[], int | None]]:
        """Check the key-value data in C while the block runs. Yield a function that waits for the result.

        The function returns the number of rows if all rows are right. It returns None if a row is wrong or if
        there is no C loop; the caller must then check each row in Python. `plan` has the parameters for the C
        code.
        """
        return nullcontext(lambda: None)

    def schema(self) -> Sequence[Definition]:
        """Return the definitions of the schema, which is the same in all buckets.

        The result is empty if there is no schema.
        """
        return ()

    def snapshot(self, pulse: Pulse) -> Snapshot | None:
        """Return a record of everything in the data that no worker changes, made after the preparation.

        Return None if there is nothing to compare.
        """
        return None

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        """Yield (setting, requested value, effective value) for each setting whose effective value
        differs."""
        return iter(())

    def integrity(self, level: str, pulse: Pulse) -> Check | None:
        """Run the target's own integrity check; `level` is "quick" or "full".

        Return None if the target has no such check.
        """
        return None

    def redefined(self, created: Sequence[Definition], pulse: Pulse) -> Check | None:
        """Check that the schema of every bucket (database file) is still exactly the definitions `created`.

        Return None if the target cannot compare schemas.
        """
        return None

    def discard(self) -> None:
        """Remove the data of this case, and nothing else."""


class SqlPlace(Place, Protocol):
    """Access to data in a database that speaks SQL."""

    def directions(self) -> ConnectionInfo:
        """Return the connection information for user programs. The address has no password."""

    def clear(self) -> None:
        """Remove all data: restore the state in which a user program can create the data."""

    def is_filled(self) -> bool:
        """Return whether any data exists."""

    def settle(self, pulse: Pulse) -> None:
        """Prepare the data for the workers after a user program has created it."""

    def rows_written(self, pulse: Pulse) -> int | None:
        """Return the number of all rows that were ever written, as counted by the target; None if the target
        has no such count.

        Call it when all user programs have closed their connections.
        """

    def client(self, worker: int) -> Client:
        """Return a client for a worker. The client is not connected yet. Companions (additional processes)
        have numbers below 1."""

    def reader(self) -> Reader:
        """Return a connection for reads during the load, with the settings of the case."""

    def reading(self, pulse: Pulse) -> AbstractContextManager[Reader]:
        """Connect for reads while none of our workers runs."""

    def making(self, pulse: Pulse) -> AbstractContextManager[Maker]:
        """Create the database if it does not exist. The block creates the data; then the data is prepared for
        the workers.

        Raises UsageError or EnvironmentFailure if a setting has no effect.
        """


class Target(Protocol):
    """A kind of database. The target's module or package has an instance, called TARGET."""

    FILES: str | None = None
    """Regular expression for the names of the target's files in a folder; None means no files."""
    DESCRIPTORS: int = 0
    """Maximum number of file descriptors that one process needs per bucket."""

    def open_place(self, case: Case, where: Path) -> Place:
        """Return this process's access to the data of a case; do not touch any file or server yet."""

    def checked(self, case: Case, server: Server, anyway: bool) -> Case:
        """Return the case, in which the target may have changed options. `server` has the options for a
        server.

        `anyway` allows a server on another machine. Raises UsageError if the target cannot run the case.
        """
        return case

    def stand_in(self, folder: Path) -> ConnectionInfo:
        """Return dummy connection information, with which a user program is inspected but not run on data.

        `folder` is an empty folder that sqlstress created. Raises UsageError if the target does not support
        user programs.
        """
        raise UsageError("this target does not support your own programs")

    def serving(self, cases: Sequence[Case], folder: Path) -> AbstractContextManager[None]:
        """Run the services that the cases need, such as a temporary server in `folder`, while the block runs.

        Raises EnvironmentFailure if a service is not available.
        """
        return nullcontext()

    def preload(self, driver: str) -> Sequence[str]:
        """Return the names of modules that a worker needs. They are imported before the worker is forked, so
        the import of a module must not open a file or start a thread."""

    def explain(self, driver: str, error: Exception) -> str:
        """Return a description of the error in the target's terms, with a remedy."""
        return plainly(error)

    def durability(self, case: Case, effective: Mapping[str, str]) -> str:
        """Return the durability of commits under the effective settings, as text; "" if unknown.

        The text before the colon is one of the levels that all targets share (see `sqlstress.target`). The
        text after the colon names the settings.
        """

    def lacks_native(self, driver: str) -> str | None:
        """Return the reason why the driver has no C loop on this system; None if it has one."""
        return "the native loop drives SQLite only"

    def foresees(self, error: Exception) -> bool:
        """Return whether `error` is of a type that the target's drivers raise. Such an error is no bug in
        sqlstress."""
        return False

    def untold(self, driver: str) -> str | None:
        """Return the reason why `--where` does not work with the driver on this system; None if it works."""
        return "only SQLite shows who held its locks"

    def unseen(self) -> str | None:
        """Return the reason why lock holders cannot be seen from another process; None if they can."""
        return "only SQLite's locks can be seen from outside"

    def describe_available(self, driver: str, address: Dsn | None) -> str:
        """Return the versions that the driver would measure on this system; do not start a server.

        `address` is the address of a server, or None. Raises UsageError or EnvironmentFailure, with a remedy,
        if a part is missing.
        """

    def describe(self, driver: str) -> SqliteBuild | None:
        """Return the library that the driver uses, for the description of the environment.

        Return None if the driver uses no library of a database.
        """
        return None
