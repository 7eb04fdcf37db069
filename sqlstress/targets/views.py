"""The views of what a target stores: keys and values, SQL, and directions for programs of the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlstress.system.interrupt import Pulse

T = TypeVar("T")
Operation = Callable[[Any], Any]
Row = tuple[Any, ...]
Named = Mapping[str, Any]
"""Values by the names of the parameters, which are written :name; there may be more than those."""

# Keys and values: a worker's half (in C: a `NativeStore`), and the parent's.


class Connected(Protocol):
    """What a worker has of a database."""

    def effective(self) -> dict[str, str]:
        """Return the settings as the database answers them; where buckets differ, all answers."""

    def close(self) -> None:
        """Close every connection."""


class NativeLoop(Connected, Protocol):
    """A worker's half of keys and values whose loop runs in C as a whole."""

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        """Run a plan, and return the result. Raises EnvironmentFailure if the store stopped it."""


class Waits(Connected, Protocol):
    """The same where it may have to wait for others."""

    def was_busy(self, error: Exception) -> bool:
        """Return whether an operation was given up because others were in the way, and count it if so."""

    def busy_counts(self) -> tuple[int, int]:
        """Return how many BUSY and BUSY_SNAPSHOT answers were met by waiting operations."""


class Store(Waits, Protocol):
    """A worker's half: functions by bucket, each one transaction. All lists are indexed by bucket."""

    gets: list[Operation]
    """(key,) → value, or None."""
    pairs: list[Operation]
    """(key, key) → [(key, value), …] of both, read in one snapshot."""
    puts: list[Operation]
    """(key, value): one replace in autocommit."""
    batches: list[Operation]
    """[(key, value), …]: several replaces in one transaction."""
    updates: list[Operation]
    """(counter,): read the counter, write it plus one."""


class Table(Protocol):
    """The parent's half: it makes the buckets, and reads them when no worker is connected any more."""

    def fill(self, buckets: Iterable[Iterable[tuple[Any, Any]]], pulse: Pulse) -> None:
        """Make every bucket anew with these rows and its counters, as the workers are to find it.

        Raises UsageError or EnvironmentFailure when a setting was not taken. What it keeps open for the
        workers is closed by `release`.
        """

    def create(self, pulse: Pulse) -> None:
        """Make every bucket anew and empty, with the settings of the case, and nothing more."""

    def settle(self) -> None:
        """Make what the workers left ready to be looked at: none of them is connected any more."""

    def release(self) -> None:
        """Close what was kept open: it has been looked at, or won't be."""

    def name(self, bucket: int) -> str:
        """Return what a bucket is called."""

    def rows(self, bucket: int) -> Iterator[tuple[Any, Any]]:
        """Yield every key of a bucket, with its value."""

    def counters(self, bucket: int) -> list[tuple[int, Any]]:
        """Return the counters of a bucket by their numbers."""


# SQL of the user's: a worker's half, and the parent's.


BUSY, INTERRUPTED, LACKING, REFUSED = "busy", "interrupted", "lacking", "refused"


class Answer(NamedTuple):
    """What an answer of the database that was an error says."""

    kind: str
    """BUSY: somebody else was in the way; INTERRUPTED: it took too long; LACKING: the database lacks
    something, such as space, which says nothing of the data; REFUSED: any other."""
    text: str
    """Its words, in one line without a full stop."""


class Session(Protocol):
    """A worker's connection, in true autocommit: no transaction begins that nobody asked for."""

    def runs(self, sql: str) -> Callable[[Any], Any]:
        """Return a function of named values that runs a statement without rows."""

    def reads(self, sql: str) -> Callable[[Any], Any]:
        """Return a function of named values: the statement has run to its end, all its rows are here."""

    def names(self, sql: str) -> Callable[[Any], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        """Return a function of named values: the names of the columns, and all rows."""

    def rollback(self) -> None:
        """End an open transaction, if there is one, and undo it."""

    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""


class Client(Waits, Protocol):
    """A worker's half, with the settings of the case."""

    def connect(self, bucket: int) -> Session:
        """Connect. Raises EnvironmentFailure."""


class Interruptible(Protocol):
    """A connection whose statement, which runs in another thread, can be made to fail soon."""

    def interrupt(self) -> None: ...


class Answers(Protocol):
    """A connection of the parent's."""

    def answer(self, error: BaseException) -> Answer | None:
        """Return what an error of the database says; None of one that is not the database's."""


class Reader(Answers, Interruptible, Protocol):
    """One that only reads."""

    def begin(self) -> None:
        """Begin to read: all as of one moment, until `end`."""

    def first(self, sql: str, most: int) -> list[Row]:
        """Return the first rows of a query, so many at most."""

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query; its parameters are written as the driver has them."""

    def end(self) -> None:
        """End what `begin` began."""

    def understood(self, sql: str, names: Sequence[str]) -> None:
        """Raise the database's error for a statement that it does not understand; it is not run."""

    def close(self) -> None:
        """Close the connection."""


class Maker(Answers, Protocol):
    """Makes the data of a trial: what it does is not to be kept after a power failure."""

    def run(self, sql: str) -> None:
        """Run a statement."""

    def watched(self, task: Callable[[], T]) -> T:
        """Return what a task returns that runs statements; they are interrupted when it is to stop."""

    def in_transaction(self) -> bool:
        """Return whether a transaction is open."""


class Directions(NamedTuple):
    """How a program of the user's finds the data, whatever it opens it with."""

    address: str
    """What it opens: the path of a file, or a URL."""
    variables: Mapping[str, str | None]
    """Of its environment, what its libraries look for there; None: that must not be there."""
    secret: str = ""
    """What of it may neither be shown nor saved, whoever says it."""

    def hidden(self, text: str) -> str:
        """Return a text of a program's without the secret."""
        from sqlstress.options.dsn import UNSHOWN

        return text.replace(self.secret, UNSHOWN) if self.secret else text
