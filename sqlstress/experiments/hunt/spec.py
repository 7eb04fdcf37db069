"""Options of a round of a hunt: processes, pauses and database.

Each process of a round has a role. A holder is a reader with long transactions. Processes pause (sleep) at
random VFS calls: calls of SQLite's interface to files. The processes run the hunt's own load, or the user's
work: the load of another command, such as `sqlstress hunt app bank.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlstress.options.option import option
from sqlstress.options.parsing import Parse, choices, duration_with_unit, switch, whole_number

ROUND, PAUSES = "Round (drawn at random unless given)", "Pauses (drawn at random unless given)"
MAX_PER_ROLE = 32
MODES = ("passive", "full", "restart", "truncate")
WRITER, READER, HOLDER, CHECKPOINTER = ROLES = ("writer", "reader", "holder", "checkpointer")
POINTS = (
    "open",
    "read",
    "write",
    "truncate",
    "sync",
    "size",
    "lock",
    "unlock",
    "control",
    "shm-map",
    "shm-lock",
    "shm-unlock",
    "barrier",
    "fetch",
    "delete",
    "write-lock",
)
"""Kinds of VFS calls at which a process may pause, in the order of native/pauses.h."""


def list_parser(names: tuple[str, ...]) -> Parse:
    """Return a parser of a list of `names` such as "a,b"."""
    # `choices` attaches the permitted names to its parser, and the report's JSON Schema would restrict the
    # list to these names. The lambda has no such attribute.
    parse = choices(*names)
    return lambda value: parse(value)


def _pause_at() -> Any:
    return option(
        list_parser(POINTS),
        None,
        PAUSES,
        "VFS calls around which a process may pause: " + ", ".join(POINTS) + ".",
        metavar="LIST",
        unsaid=POINTS,
    )


def _longest_pause_s() -> Any:
    return option(
        duration_with_unit(1e-6),
        None,
        PAUSES,
        "Longest pause. Most pauses are much shorter. Give a unit: 1ms.",
        name="longest-pause",
        metavar="TIME",
        meaning="Longest pause, in seconds; most pauses are much shorter.",
        unsaid=0.001,
    )


def _processes(text: str, least: int = 0) -> Any:
    return option(whole_number(least, MAX_PER_ROLE), None, ROUND, text, unsaid=least)


def _pause_rate(who: str) -> Any:
    text = f"{who} pauses at one in N VFS calls. 0 turns this off."
    return option(whole_number(0, 10**6), None, PAUSES, text, unsaid=0)


@dataclass(frozen=True, slots=True)
class Round:
    """Processes, data and pauses of a round with the hunt's own load."""

    writers: int = _processes("Processes that write: each its own rows, and shared rows.", least=1)
    readers: int = _processes("Processes that read and check one snapshot.")
    holders: int = _processes("Readers that keep their read transaction open for a while.")
    checkpointers: int = _processes("Processes that run checkpoints.")
    checkpoint: tuple[str, ...] = option(
        list_parser(MODES),
        None,
        ROUND,
        f"Checkpoint modes, used in turns: a list of {', '.join(MODES)}.",
        metavar="LIST",
        unsaid=MODES[:1],
    )
    batch: int = option(
        whole_number(1, 100), None, ROUND, "Rows of its own that a writer changes in a transaction.", unsaid=1
    )
    keys: int = option(
        whole_number(1, 10_000), None, ROUND, "Number of rows that belong to each writer.", unsaid=16
    )
    filler: int = option(
        whole_number(0, 100_000), None, ROUND, "Additional bytes per row.", metavar="BYTES", unsaid=0
    )
    churn: bool = option(
        switch,
        None,
        ROUND,
        "Whether transactions also insert and delete rows.",
        metavar="on|off",
        unsaid=False,
    )
    reopen: int = option(
        whole_number(0, 10_000),
        None,
        ROUND,
        "Reconnect after this many operations. 0 turns this off.",
        unsaid=0,
    )
    pause_at: tuple[str, ...] = _pause_at()
    writer_pause: int = _pause_rate("A writer")
    reader_pause: int = _pause_rate("A reader or holder")
    checkpointer_pause: int = _pause_rate("A checkpointer")
    longest_pause_s: float = _longest_pause_s()


@dataclass(frozen=True, slots=True)
class Schedule:
    """Pauses of all processes in a round that runs the user's work, such as `hunt app bank.py`."""

    pause_at: tuple[str, ...] = _pause_at()
    pause: int = _pause_rate("In your own work, a process")
    longest_pause_s: float = _longest_pause_s()


SETTINGS = ("journal_mode", "synchronous", "wal_autocheckpoint", "page_size", "cache_size", "mmap_size")
"""SQLite settings that are drawn at random for each round, in addition to the fields of `Round`."""


class Role(NamedTuple):
    """Role of a process (such as writer) in a round."""

    name: str
    number: int
    """Number of the process, from 0, among the processes with its role."""


def counts(spec: Any) -> dict[str, int]:
    """Return the number of processes by role. `spec` has the fields of a Round."""
    return dict(zip(ROLES, (spec.writers, spec.readers, spec.holders, spec.checkpointers), strict=True))


def role_of(spec: Any, process: int) -> Role:
    """Return the role of a process, numbered from 1."""
    number = process - 1
    for name, count in counts(spec).items():
        if number < count:
            return Role(name, number)
        number -= count
    raise ValueError(f"there is no process {process}")


def pause_rate(spec: Any, role: str) -> int:
    """Return N if processes with this role pause at one in N calls; 0 if they never pause."""
    rate: int = {WRITER: spec.writer_pause, CHECKPOINTER: spec.checkpointer_pause}.get(
        role, spec.reader_pause
    )
    return rate


# The rest of the module describes the data of the hunt's own load: the tables of the database, and the shared
# memory (see WORDS_PER_WRITER), in which each writer stores the numbers of its last transactions.

ACCOUNTS, EACH = 8, 1000
"""Number of accounts, and initial amount of each. Transfers leave the sum unchanged."""
LOG_ROWS = 40
"""Number of rows that each writer keeps in the table log."""

TABLES = (
    # Table writer: the number of committed transactions of each writer.
    "CREATE TABLE writer (id INTEGER PRIMARY KEY, n INTEGER)",
    # Table part: rows that belong to a writer; n is the number of the last transaction that wrote the row.
    "CREATE TABLE part (id INTEGER PRIMARY KEY, writer INTEGER, n INTEGER, filler BLOB)",
    "CREATE INDEX part_by_n ON part (writer, n)",
    "CREATE TABLE account (id INTEGER PRIMARY KEY, amount INTEGER)",
    "CREATE INDEX account_by_amount ON account (amount)",
    # Table log: a row for each of a writer's last LOG_ROWS transactions. If the option churn is on, each
    # transaction inserts its own row and deletes the oldest row.
    "CREATE TABLE log (writer INTEGER, n INTEGER, filler BLOB, PRIMARY KEY (writer, n)) WITHOUT ROWID",
)

WORDS_PER_WRITER = 8
"""Number of 64-bit words per writer in shared memory. No two writers share a cache line."""
BEGUN, ACKNOWLEDGED = 0, 1
"""Indices of a writer's words: numbers of the last begun and last acknowledged transaction."""


def filler_of(transaction: int, size: int) -> bytes:
    """Return `size` bytes that differ by transaction, so that a mixture of two transactions is noticed."""
    return (transaction.to_bytes(4, "big") * (size // 4 + 1))[:size]
