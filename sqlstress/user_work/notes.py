"""Notes that the user's code takes of its work, outside of the database under test: `note("put", 7)`.

The user's checks compare the notes with the data. Notes in the database would make each call a writer. The
write lock would then run the calls one by one, which hides races. Each process appends its notes to a file at
once, so that they survive a kill.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlstress.errors import EnvironmentFailure, UsageError, error_message
from sqlstress.targets.place import NOTES_FOLDER, TRIAL_FOLDER
from sqlstress.user_work.loading import check

MOST = 2_000_000
"""Maximum number of notes in a trial: the process of the checks loads all notes into memory."""
MAX_BYTES = 256 << 20
"""Maximum size of a trial's notes, in bytes."""
_LENGTH_BYTES = 4


class Notes(list[list[Any]]):
    """Notes of a trial, one list per process: first the setup, then the workers."""

    def of(self, kind: Any) -> list[Any]:
        """Return a list with the value of each note of a kind.

        The item is `value` for a note taken by `note(kind, value)`, and None for one by `note(kind)`.
        """
        return [rest[0] if rest else None for value in self.all if (rest := _rest(value, kind)) is not None]

    @property
    def all(self) -> list[Any]:
        """Notes of all processes in one list."""
        return [value for process in self for value in process]


def _rest(value: Any, kind: Any) -> tuple[Any, ...] | None:
    if isinstance(value, tuple):
        return value[1:] if value and value[0] == kind else None
    return () if value == kind else None


# The folder with a trial's notes is next to the folder of the trial's database, `where`.


def folder_of(where: Path) -> Path:
    """Return the folder with a trial's notes. `where` is the folder of the trial's database."""
    # Absolute, because the user's code may change the working directory.
    return ((where.parent if where.name == TRIAL_FOLDER else where) / NOTES_FOLDER).absolute()


def begin(where: Path) -> None:
    """Create an empty folder for a trial's notes."""
    end(where)
    folder_of(where).mkdir()


def end(where: Path) -> None:
    """Remove the folder with a trial's notes, if it exists."""
    shutil.rmtree(folder_of(where), ignore_errors=True)


def read(where: Path, processes: int) -> Notes:
    """Return the notes of setup and of `processes` workers, without notes that were written only in part."""
    files = (folder_of(where) / str(number) for number in range(processes + 1))
    return Notes(list(_records(file.read_bytes())) if file.is_file() else [] for file in files)


def _records(data: bytes) -> Iterator[Any]:
    at = 0
    while (start := at + _LENGTH_BYTES) <= len(data):
        at = start + int.from_bytes(data[at:start], "little")
        if at > len(data):
            return  # The process was killed while it wrote the record.
        yield pickle.loads(data[start:at])


# Taking notes in a process.


class NoteRejected(UsageError):
    """A note cannot be stored: pickle does not support it, there are too many, or the disk is full."""


class Notebook:
    """Writer of the notes of this process."""

    def __init__(self, path: Path, processes: int = 1) -> None:
        """Open the file `path`. `processes` share the trial's limits, MOST and MAX_BYTES."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0))
        self._notes_left, self._bytes_left = MOST // processes, MAX_BYTES // processes
        self.problem = ""
        """Reason why the first note was rejected; empty if all notes were stored."""

    def add(self, value: Any) -> None:
        """Append a note, any object that pickle supports. Raises NoteRejected."""
        try:
            record = pickle.dumps(value, 5)
        except Exception as error:
            raise self._reject(
                f"cannot keep what was given: {error_message(error).removesuffix('.')}"
            ) from error
        self._notes_left -= 1
        self._bytes_left -= len(record)
        if self._notes_left < 0 or self._bytes_left < 0:
            raise self._reject(
                f"was called too often: at most {MOST:,} notes and {MAX_BYTES >> 20} MB fit in a trial. "
                "Note less, or use a shorter --duration"
            )
        try:
            os.write(self._file, len(record).to_bytes(_LENGTH_BYTES, "little") + record)
        except OSError as error:
            raise self._reject(f"cannot write: {error.strerror or error}") from error

    def _reject(self, reason: str) -> NoteRejected:
        self.problem = self.problem or f"note() {reason}"
        return NoteRejected(f"note() {reason}.")

    def check(self) -> None:
        """Raise EnvironmentFailure if a note was rejected: the user's code may have caught the error."""
        if self.problem:
            raise EnvironmentFailure(self.problem)


_notebooks: list[Notebook] = []
"""Writer of this process's notes: a list of one item; empty if notes are not recorded."""


def take(where: Path, process: int, processes: int) -> Notebook:
    """Start recording the notes of this process, and return their writer.

    `where` is the folder of the trial's database. `process` is 0 for setup, else the worker's number from 1.
    Each of `processes` processes gets an equal part of the trial's limits.
    """
    _notebooks[:] = [Notebook(folder_of(where) / str(process), processes)]
    return _notebooks[0]


def note(*values: Any) -> None:
    """Record a note for the checks: `note("put", 7)`, read in a check with `notes.of("put")`.

    Notes survive a kill of the process. Outside of a measurement, nothing is recorded.
    """
    for book in _notebooks:
        book.add(values[0] if len(values) == 1 else values)


# A check such as `conserved` compares its result with that of the first round, stored in a file by `first`.


_trial_folders: list[Path] = []
"""Folder of the current trial's notes: a list of one item; empty outside of a trial."""


def remember_in(where: Path) -> None:
    """Set the folder in which `first` stores values. `where` is the folder of the trial's database."""
    _trial_folders[:] = [folder_of(where)]


def first(key: str, value: Any) -> Any:
    """Return the `value` that was passed to the first call with this key in the current trial.

    So a check can compare a value with that before the load. The first call stores the value in a file, so
    other processes find it, too. Outside of a trial, each call returns its own `value`.
    """
    for folder in _trial_folders:
        path = folder / f"first-{key}"
        if path.is_file():
            return pickle.loads(path.read_bytes())
        path.write_bytes(pickle.dumps(value))
    return value


# Ready-made checks of common promises of concurrent programs; they raise AssertionError if one is broken.


EXAMPLES = 3


def exactly_once(put: Iterable[Any], taken: Iterable[Any]) -> None:
    """Check that each item in `put` was taken exactly once, and no other item. Raises AssertionError.

    Add items that are still in the database: `exactly_once(notes.of("put"), notes.of("taken") + left)`. Give
    each item a unique value: with two equal items, it is unknown which was taken.
    """
    put_counts, taken_counts = _count(put), _count(taken)
    surplus = taken_counts - put_counts
    wrong = {
        "lost": [*(put_counts - taken_counts)],
        "taken too often": [key for key in surplus if key in put_counts],
        "taken and never put": [key for key in surplus if key not in put_counts],
    }
    problems = [f"{label}: {_examples(keys)}" for label, keys in wrong.items() if keys]
    if problems:
        raise AssertionError("; ".join(problems))


def counter(read: int, notes: Notes | Sequence[Any]) -> None:
    """Check that `read`, a counter's value read from the database, equals the number of notes.

    Raises AssertionError if it does not. `notes` are the notes of a kind, as in
    `counter(hits, notes.of("hit"))`, or all notes.
    """
    counted = len(notes.all if isinstance(notes, Notes) else notes)
    if read != counted:
        raise AssertionError(f"the counter holds {read}, and {counted} were counted")


def conserved(query: str) -> Callable[..., Any]:
    """Return a check that a query has the same result before, during and after the load.

    Assign it to a name in your file: `no_money_appears = conserved("SELECT sum(balance) FROM account")`.
    """

    @check
    def unchanged(run: Callable[..., Any]) -> None:
        rows = [tuple(row) for row in run(query)]
        expected = first(sha256(query.encode()).hexdigest(), rows)
        if rows != expected:
            raise AssertionError(f"it was {_rows_text(expected)} and is {_rows_text(rows)}")

    return unchanged


def _count(things: Iterable[Any]) -> Counter[Any]:
    counts = Counter[Any]()
    for thing in things:
        try:
            counts[thing] += 1
        except TypeError:  # The value is not hashable, such as a dict.
            counts[repr(thing)] += 1
    return counts


def _examples(keys: Sequence[Any]) -> str:
    more = f" and {len(keys) - EXAMPLES:,} more" if len(keys) > EXAMPLES else ""
    return ", ".join(f"{key!r:.40}" for key in keys[:EXAMPLES]) + more


def _rows_text(rows: Sequence[tuple[Any, ...]]) -> str:
    return ", ".join(repr(row[0] if len(row) == 1 else row)[:40] for row in rows[:EXAMPLES]) or "no rows"
