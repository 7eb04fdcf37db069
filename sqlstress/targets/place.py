"""Interface to a database under test: the classes that each target implements.
A target is a kind of database, such as SQLite. A case is one combination of options, such as 4 workers and
20 buckets. A trial is one run of a case. A place is one process's access to the data of a case, which is
divided into buckets: files of SQLite, or pairs of tables of PostgreSQL. The parent is the process that starts
the workers. A `pulse` is a function to call often, which raises Interrupted after Ctrl-C.

If an answer is unknown, a target returns None or an empty result, never a guess. Code that needs a feature of
one target, such as SQLite's WAL, imports the target's package.
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
    from sqlstress.report.results import CheckCounter, Where
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
# Subfolders of a run's data folder, which are removed after use with their content.
SERVER_FOLDER = "server"
"""Name of the folder for the files of a temporary database server."""
TRIAL_FOLDER, NOTES_FOLDER = "trial", "notes"
"""Names of the folders for a user program's data, and for values that the user's code saves with `note`."""

Definition = tuple[Any, ...]
"""An object of a schema: (label, SQL), such as ("the index of users", "CREATE INDEX …")."""


def schema_differences(created: Sequence[Definition], present: Sequence[Definition]) -> list[str]:
    """Return texts such as "lacks users: 'CREATE …'", one for each definition that only one list has."""
    missing = [f"lacks {name}: {sql!r:.160}" for name, sql in created if (name, sql) not in present]
    added = [(name, sql) for name, sql in present if (name, sql) not in created]
    return missing + [f"holds {name}: {sql!r:.160}, which was added later" for name, sql in added]


def check_schemas(
    counter: CheckCounter,
    created: Sequence[Definition],
    present: Iterable[tuple[str, Sequence[Definition]]],
) -> Check:
    """Compare each schema in `present` with the definitions `created`, and return the result.

    `created` are the definitions before the workers started. `present` yields (name of a schema, its current
    definitions), such as ("the schema of kv_0.db", [...]). `counter` counts and collects the differences.
    """
    for name, definitions in present:
        counter.checked += len(created)
        for difference in schema_differences(created, definitions):
            counter.problem(f"{name} {difference}")
    return counter.check()


class Disturbance(NamedTuple):
    """A change of a trial's data by a program other than sqlstress. sqlstress repeats the trial."""

    text: str
    """Sentence that describes the change, without a full stop."""
    unread: str | None = None
    """Result of the trial's checks if rows cannot be read; None if rows can be read.

    "failed" means that a file was deleted, "unknown" that another program holds a lock.
    """


class Seal:
    """Record of the device and inode numbers of files, to detect a later deletion or replacement.

    The parent and each worker have seals, because a process with an open file does not notice its deletion.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        """Record the device and inode numbers of the files that exist. Raises OSError."""
        self._files = [(path, identity) for path in paths if (identity := _identity(path))]

    def broken(self) -> str | None:
        """Return a text such as "kv.db was deleted" if a file is gone, replaced or unreadable, else None."""
        try:
            return self.exchanged()
        except OSError as error:
            return f"a database file was not accessible ({error.strerror})"

    def exchanged(self) -> str | None:
        """Return a text such as "kv.db was deleted" if a file is gone or replaced. Raises OSError."""
        for path, sealed in self._files:
            current = _identity(path)
            if current != sealed:
                return f"{path.name} was {'replaced by another file' if current else 'deleted'}"
        return None


def _identity(path: Path) -> tuple[int, int] | None:
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
    """Base class of the workers' key-value stores (see `views.Store`). Subclasses fill its lists."""

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
    """Recorder of the activities of a process, such as syncs and waits for locks, for `--where`."""

    def window(self, opens_ns: int, closes_ns: int) -> None:
        """Set the begin and end of the measurement, as times of perf_counter_ns."""

    def end(self) -> None:
        """Record that this process has ended its last operation."""


class Snapshot(Protocol):
    """Parent's record of a trial's data before the workers start, to detect changes by other programs."""

    def exchanged(self) -> str | None:
        """Return a text such as "kv.db was deleted" if a file was deleted or replaced, else None."""
        return None

    def seal(self) -> None:
        """Record the files' device and inode numbers again, just before workers open the files."""
        return

    def changed(self, pulse: Pulse) -> Disturbance | None:
        """Return a change of the data by another program, or None. Call it after all workers have ended."""


class Place(Protocol):
    """One process's access to the data of one case. The parent and each worker create a place."""

    case: Case
    where: Path
    """Folder for the case's files. The parent and the workers pass this path to `open_place`."""
    copies: dict[Any, Any] | None = None
    """Copies of filled buckets for later trials; None turns copies off.

    A key is a case without the options that do not affect the files (see `sqlite.copies.layout_key`).
    """

    @property
    def stores(self) -> bool:
        """Whether the target stores data. If not (target dry), there is nothing to prepare or verify."""

    # Methods for workers, and for companions (additional processes of a trial).

    def watch(self, trace: Any, process: int) -> TimeRecorder | None:
        """Start to record this process's activities, for `--where`. Call it before connecting.

        `trace` is shared memory from the method `trace`. `process` is this process's number: workers count
        from 1, and other processes have higher numbers. Return None if the target cannot record activities.
        Raises EnvironmentFailure.
        """
        return None

    def pause(self, schedule: Sequence[int]) -> None:
        """Make this process pause at random points inside the database, to provoke rare races.

        Call it before connecting. `schedule` has the rates and lengths of the pauses (see
        `sqlite.shim.schedule`). Raises EnvironmentFailure if the target does not support pauses.
        """
        raise EnvironmentFailure("pauses need SQLite. Choose --driver sqlite3 or apsw.")

    def keyvalue(self, worker: int, begin: str, sample: Any) -> Store:
        """Connect a worker to every bucket and return the worker's key-value store.

        `begin` is the mode of transactions, such as "immediate". `sample` is a value of the requested size. A
        target without data returns it for every get.
        """

    def bare_call(self) -> AbstractContextManager[Callable[[], object]]:
        """Connect, and yield a function that makes the driver's cheapest call, such as SELECT 1.

        sqlstress times this call, to measure the overhead of the driver.
        """

    def native(self, worker: int, begin: str) -> NativeLoop:
        """Connect a worker and return its store, with operations in C. Raises EnvironmentFailure.

        `begin` is the mode of transactions, such as "immediate".
        """
        raise EnvironmentFailure("the native loop drives SQLite only. Use --loop python.")

    def seal(self) -> Seal | None:
        """Return a seal of this process's open files, to detect their replacement; None if there are none."""
        return None

    # Methods for the parent.

    def trace(self, processes: int) -> Any:
        """Return shared memory for `watch` in `processes` processes; None if the target cannot record.

        Raises EnvironmentFailure if there is not enough memory.
        """
        return None

    def account(self, trace: Any, workers: Sequence[WorkerResult]) -> Where | None:
        """Return the time that the workers spent on each activity, from the records in `trace`, or None."""
        return None

    def wal_observer(self) -> LogObserver | None:
        """Return an observer of the first bucket's write-ahead log; None if the target has no log."""
        return None

    def table(self, key_type: str, value_size: int, counters: int) -> TableView | None:
        """Return the parent's view of the key-value data; None if the target stores no data.

        `key_type` is "int", "text" or "blob". `value_size` is the size of a value in bytes. `counters` is the
        number of counters (numbers that workers increment) per bucket.
        """
        return None

    def proving(self, plan: dict[str, Any], pulse: Pulse) -> AbstractContextManager[Callable[[], int | None]]:
        """Check all key-value rows with C code in a thread. Yield a function that waits for the result.

        The result is the number of rows. None means that a row is wrong or that there is no C code: the
        caller must check the rows in Python. `plan` has the expected rows, as parameters of the C code.
        """
        return nullcontext(lambda: None)

    def schema(self) -> Sequence[Definition]:
        """Return the definitions of the first bucket's tables and indexes. All buckets have equal schemas."""
        return ()

    def snapshot(self, pulse: Pulse) -> Snapshot | None:
        """Return a record of the data's state that no worker changes, such as the journal mode, or None."""
        return None

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        """Yield (setting, requested value, value in effect) for each requested setting that has no effect.

        `effective` has the values that were read back, such as {"synchronous": "full"}.
        """
        return iter(())

    def integrity(self, level: str, pulse: Pulse) -> Check | None:
        """Run a "quick" or "full" integrity check; return None if the target has no such check."""
        return None

    def redefined(self, created: Sequence[Definition], pulse: Pulse) -> Check | None:
        """Check that every bucket still has the schema `created`; None if the target has no such check."""
        return None

    def discard(self) -> None:
        """Remove the data of this case, and nothing else."""


class SqlPlace(Place, Protocol):
    """A place (see `Place`) for the user's SQL and programs, in a database that speaks SQL."""

    def directions(self) -> ConnectionInfo:
        """Return the database's address and the environment variables with which user programs connect."""

    def clear(self) -> None:
        """Remove all data, so that a user program can create the data again."""

    def is_filled(self) -> bool:
        """Return whether any data exists."""

    def settle(self, pulse: Pulse) -> None:
        """Prepare data that a user program has created, for example with VACUUM, before workers use it."""

    def rows_written(self, pulse: Pulse) -> int | None:
        """Return the number of rows that were written so far; None if the target does not count rows.

        Call it when all user programs have closed their connections.
        """

    def client(self, worker: int) -> Client:
        """Return a client, not connected yet. `worker` is 1 for the first worker, 0 for other processes."""

    def reader(self) -> Reader:
        """Return a connection for reads while workers run, with the settings of the case."""

    def reading(self, pulse: Pulse) -> AbstractContextManager[Reader]:
        """Yield a connection for reads while no worker runs."""

    def making(self, pulse: Pulse) -> AbstractContextManager[Maker]:
        """Yield a connection to create the data. At the end of the block, prepare the data for the workers.

        Raises UsageError or EnvironmentFailure if a setting has no effect.
        """


class Target(Protocol):
    """A kind of database, such as SQLite. Its module or package has an instance with the name TARGET."""

    FILES: str | None = None
    """Regular expression for the names of the target's files, such as kv_0.db-wal; None means no files."""
    DESCRIPTORS: int = 0
    """Maximum number of file descriptors that one process needs per bucket."""

    def open_place(self, case: Case, where: Path) -> Place:
        """Return an object with which this process uses the data of a case. It opens connections later."""

    def checked(self, case: Case, server: Server, anyway: bool) -> Case:
        """Return the case, completed by the options for a server (`server`) and the target's own settings.

        `anyway` allows a server on another machine. Raises UsageError if the target cannot run the case.
        """
        return case

    def stand_in(self, folder: Path) -> ConnectionInfo:
        """Return the address of a database that does not exist, such as app.db in the empty `folder`.

        With this address, sqlstress inspects a user program before there is data. Raises UsageError if the
        target does not support user programs.
        """
        raise UsageError("this target does not support your own programs")

    def serving(self, cases: Sequence[Case], folder: Path) -> AbstractContextManager[None]:
        """Run the services that the cases need, such as a server in `folder`, during the block.

        Raises EnvironmentFailure if a service is not available.
        """
        return nullcontext()

    def preload(self, driver: str) -> Sequence[str]:
        """Return the names of modules to import before workers are forked.

        Forked workers then need not import these modules. Their import must not open a file or start a
        thread.
        """

    def explain(self, driver: str, error: Exception) -> str:
        """Return a description of a database error, with a remedy."""
        return plainly(error)

    def durability(self, case: Case, effective: Mapping[str, str]) -> str:
        """Return the durability of commits, such as "every commit synced: fsync=on"; "" if unknown.

        The text has a constant of `sqlstress.target`, such as SYNCED, and the settings that cause this
        durability. `effective` has the values of settings that were read back.
        """

    def lacks_native(self, driver: str) -> str | None:
        """Return the reason why the driver has no C loop on this system, or None."""
        return "the native loop drives SQLite only"

    def foresees(self, error: Exception) -> bool:
        """Return whether the exception is a database error rather than a bug of sqlstress."""
        return False

    def untold(self, driver: str) -> str | None:
        """Return the reason why `--where` (the time of each activity) does not work here, or None."""
        return "only SQLite shows who held its locks"

    def unseen(self) -> str | None:
        """Return the reason why this system does not show which processes hold locks, or None."""
        return "only SQLite's locks can be seen from outside"

    def describe_available(self, driver: str, address: Dsn | None) -> str:
        """Return the versions of the driver and its database, as text; do not start a server.

        Raises UsageError or EnvironmentFailure if the driver or the database is not available.
        """

    def describe(self, driver: str) -> SqliteBuild | None:
        """Return a description of the driver's SQLite library for the report; None for other products."""
        return None
