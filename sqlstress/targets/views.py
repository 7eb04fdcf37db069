"""Interfaces to the data of a trial: for keys and values, for SQL, and for user programs.
Each target (kind of database, such as SQLite) implements these interfaces. The data is divided into buckets:
files of SQLite, such as kv_0.db, or pairs of tables of PostgreSQL. The parent is the process that starts the
workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlstress.report.results import WalUse
    from sqlstress.system.interrupt import Pulse

T = TypeVar("T")
Operation = Callable[[Any], Any]
Row = tuple[Any, ...]

# Keys and values


class Refusal(NamedTuple):
    """Number and times of a statement's failures with one result code.

    For example, COMMIT failed 3 times with BUSY. Failures after which a retry succeeded count, too.
    """

    sql: str
    history: tuple[str, ...]
    """Earlier statements of the transaction, such as ("BEGIN IMMEDIATE",); empty outside a transaction."""
    code: int
    """SQLite's extended result code."""
    times: int
    waits_s: Sequence[float]
    """Times from a transaction's start to its failure, in seconds, for at most the latest 100 failures."""
    longest_s: float
    """Maximum of the times from a transaction's start to its failure, for all failures, in seconds."""


class Connections(Protocol):
    """A worker's connections to a database."""

    def effective(self) -> dict[str, str]:
        """Return settings in effect, such as {"synchronous": "full"}; "full / off" if connections differ."""

    def close(self) -> None:
        """Close every connection."""


class NativeLoop(Connections, Protocol):
    """A worker's access to the key-value data, with a loop in C that runs the worker's operations."""

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Run the C loop. Return results by name, such as "ending". Raises EnvironmentFailure.

        `plan` has the parameters of the C code by name.
        """

    def refusals(self) -> list[Refusal]:
        """Return the failed statements of the last run."""


class WaitingConnections(Connections, Protocol):
    """A worker's connections, with counts of BUSY errors, which locks of other connections cause."""

    def was_busy(self, error: Exception) -> bool:
        """Return whether another connection's lock caused the error. If so, count the error."""

    def busy_counts(self) -> tuple[int, int]:
        """Return (number of BUSY errors, number of BUSY_SNAPSHOT errors) so far."""


class Store(WaitingConnections, Protocol):
    """A worker's key-value store. Each list is for one kind of operation, with one function per bucket.

    For example, `gets[3]((17,))` returns the value of the key 17 in bucket 3.
    """

    gets: list[Operation]
    """Functions that take (key,) and return the key's value, or None if the key does not exist."""
    pairs: list[Operation]
    """Functions that take two keys and return [(key, value), …], read in one snapshot."""
    puts: list[Operation]
    """Functions that take (key, value) and store it in autocommit."""
    batches: list[Operation]
    """Functions that take [(key, value), …] and store all of them in one transaction."""
    updates: list[Operation]
    """Functions that take (counter number,), and read and increment the counter in one transaction."""


class TableView(Protocol):
    """The parent's view of the key-value data: create buckets, and read them after the workers have ended."""

    def fill(self, buckets: Iterable[Iterable[tuple[Any, Any]]], pulse: Pulse) -> None:
        """Create all buckets, replacing older data. `buckets` has the rows of each bucket.

        Connections may stay open until `release`. Raises UsageError or EnvironmentFailure if a setting has no
        effect.
        """

    def create(self, pulse: Pulse) -> None:
        """Create all buckets without rows, replacing older data, with the settings of the case."""

    def settle(self) -> None:
        """Prepare the data for the checks. Call it after all workers have closed their connections."""
        return

    def release(self) -> None:
        """Close the connections that `fill` kept open. Call it after the checks of the data."""
        return

    def name(self, bucket: int) -> str:
        """Return the name of a bucket, for messages."""

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        """Yield (key, value) for every row of a bucket."""

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        """Return (number, value) for every counter of a bucket."""


class RefusalStore(Store, Protocol):
    """A key-value store that records failed statements. Only SQLite has such a store."""

    def refuse(self, kind: str, error: Exception, waited_s: float) -> None:
        """Count a failed operation of the kind "get", "pair" or "replace", which failed with `error`.

        `waited_s` is the time from the start of the operation to its failure, in seconds. Batches and updates
        count their own failures.
        """

    def refusals(self) -> list[Refusal]:
        """Return the failed statements, counted by statement and result code."""


class LogObserver(Protocol):
    """Observer of a database's write-ahead log in the parent process, while workers use the database."""

    def look(self) -> None:
        """Take a sample of the log's size and use."""

    def end(self) -> None:
        """Close deleted files of the log (on Windows, all files). Call it after the workers have ended."""

    def close(self) -> None:
        """Close the log's files. Call it after the parent has closed its connections to the database."""

    def use(self) -> WalUse | None:
        """Return the log's largest and last size; None if there was no sample."""


# The user's SQL


BUSY, INTERRUPTED, LACKING, REFUSED = "busy", "interrupted", "lacking", "refused"


class DatabaseError(NamedTuple):
    """An error that the database has returned."""

    kind: str
    """BUSY (locked), INTERRUPTED, LACKING (no disk space or memory), or REFUSED (any other error)."""
    text: str
    """Message, in one line without a full stop."""


class Session(Protocol):
    """A worker's connection in autocommit: the driver never begins a transaction by itself."""

    def runs(self, sql: str) -> Callable[[Any], Any]:
        """Return a function that runs `sql`, which has no result rows, with named parameters."""

    def reads(self, sql: str) -> Callable[[Any], Any]:
        """Return a function that runs `sql` with named parameters and returns all rows."""

    def names(self, sql: str) -> Callable[[Any], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        """Return a function that runs `sql` with named parameters and returns (column names, all rows)."""

    def rollback(self) -> None:
        """Roll back the open transaction, if there is one."""

    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""


class Client(WaitingConnections, Protocol):
    """A worker's SQL interface, with the settings of the case."""

    def connect(self, bucket: int) -> Session:
        """Return a new connection to a bucket. Raises EnvironmentFailure."""


class Interruptible(Protocol):
    """A connection whose running statement another thread can interrupt."""

    def interrupt(self) -> None: ...


class ParentConnection(Protocol):
    """A connection of the parent (the process that starts the workers)."""

    def answer(self, error: BaseException) -> DatabaseError | None:
        """Return the kind and text of a database error; None for any other exception."""


class Reader(ParentConnection, Interruptible, Protocol):
    """A connection of the parent that only reads."""

    def begin(self) -> None:
        """Begin a read transaction: all reads until `end` see one snapshot."""

    def first(self, sql: str, most: int) -> list[Row]:
        """Return the first `most` rows of a query, or all rows if there are fewer."""

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query with placeholders in the driver's style."""

    def end(self) -> None:
        """End the read transaction."""

    def understood(self, sql: str, names: Sequence[str]) -> None:
        """Compile `sql` without running it, to check it. Raise the database's error if it is not valid.

        `names` has the names of the parameters of `sql`, such as ["id"] for :id.
        """

    def close(self) -> None:
        """Close the connection."""


class Maker(ParentConnection, Protocol):
    """A connection that creates the data of a trial. Its commits need not survive a power failure."""

    def run(self, sql: str) -> None:
        """Run a statement."""

    def watched(self, task: Callable[[], T]) -> T:
        """Run a task on this connection and return its result. Interrupt the task after a stop signal."""

    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""


class ConnectionInfo(NamedTuple):
    """Address of a database for a user's program, and the environment variables to set for the program."""

    address: str
    """Path of the database file, or URL of the server."""
    variables: Mapping[str, str | None]
    """Values of environment variables, such as {"PGPORT": "5433"}. None means to unset the variable."""
    secret: str = ""
    """Password, which must not be shown or saved; "" if there is no password."""

    def hidden(self, text: str) -> str:
        """Return `text`, such as an output of the user program, with the password replaced."""
        from sqlstress.options.dsn import HIDDEN

        return text.replace(self.secret, HIDDEN) if self.secret else text
