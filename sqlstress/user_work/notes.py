"""What the user's code notes of its own work, outside of the database under test: `note("put", 7)`.

A row of notes in that database would make each call a writer, and hide the races. Here each process has a
file, which gets a record at each call: what was noted stays when the process is killed. Checks get all of it.
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

from sqlstress.errors import EnvironmentFailure, UsageError, message_of
from sqlstress.targets.place import NOTES_FOLDER, TRIAL_FOLDER
from sqlstress.user_work.loading import check

MOST = 2_000_000
"""Notes of a trial: a check has them all in memory."""
MOST_BYTES = 256 << 20
_LENGTH = 4


class Notes(list[list[Any]]):
    """What was noted, a list for each process in its order: first that of setup, then the workers'."""

    def of(self, kind: Any) -> list[Any]:
        """Return the values that any process noted as `note(kind, value)`; None where there was no value."""
        return [rest[0] if rest else None for one in self.all if (rest := _rest(one, kind)) is not None]

    @property
    def all(self) -> list[Any]:
        """The notes of all processes."""
        return [one for own in self for one in own]


def _rest(one: Any, kind: Any) -> tuple[Any, ...] | None:
    if isinstance(one, tuple):
        return one[1:] if one and one[0] == kind else None
    return () if one == kind else None


# The folder of a trial's notes lies beside that of its database.


def folder_of(where: Path) -> Path:
    """Return where the notes of a trial are whose data lies there."""
    # The user's code may go elsewhere.
    return ((where.parent if where.name == TRIAL_FOLDER else where) / NOTES_FOLDER).absolute()


def begin(where: Path) -> None:
    """Make the folder anew."""
    end(where)
    folder_of(where).mkdir()


def end(where: Path) -> None:
    """Remove the folder."""
    shutil.rmtree(folder_of(where), ignore_errors=True)


def read(where: Path, processes: int) -> Notes:
    """Return what setup and so many workers have noted; of a record that was cut off, nothing."""
    files = (folder_of(where) / str(number) for number in range(processes + 1))
    return Notes(list(_records(file.read_bytes())) if file.is_file() else [] for file in files)


def _records(data: bytes) -> Iterator[Any]:
    at = 0
    while (start := at + _LENGTH) <= len(data):
        at = start + int.from_bytes(data[at:start], "little")
        if at > len(data):
            return  # its process was killed amid it
        yield pickle.loads(data[start:at])


# A process that takes notes.


class NotTaken(UsageError):
    """A note that can't be kept."""


class Notebook:
    """The notes of this process."""

    def __init__(self, path: Path, processes: int = 1) -> None:
        """`processes` share the room that there is."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0))
        self._most, self._room = MOST // processes, MOST_BYTES // processes
        self.problem = ""
        """Why not all notes were taken."""

    def add(self, one: Any) -> None:
        """Take a note. Raises NotTaken."""
        try:
            record = pickle.dumps(one, 5)
        except Exception as error:
            raise self._failed(
                f"cannot keep what was given: {message_of(error).removesuffix('.')}"
            ) from error
        self._most -= 1
        self._room -= len(record)
        if self._most < 0 or self._room < 0:
            raise self._failed(
                f"was called too often: at most {MOST:,} notes and {MOST_BYTES >> 20} MB fit in a trial. "
                "Note less, or use a shorter --duration"
            )
        try:
            os.write(self._file, len(record).to_bytes(_LENGTH, "little") + record)
        except OSError as error:
            raise self._failed(f"cannot write: {error.strerror or error}") from error

    def _failed(self, why: str) -> NotTaken:
        self.problem = self.problem or f"note() {why}"
        return NotTaken(f"note() {why}.")

    def check(self) -> None:
        """Raise EnvironmentFailure when a note was not taken, whatever the user's code made of that."""
        if self.problem:
            raise EnvironmentFailure(self.problem)


_open: list[Notebook] = []
"""Of this process; empty where nobody reads notes."""


def take(where: Path, process: int, processes: int) -> Notebook:
    """Let `note` write for a process from now on: 0 for setup, else a worker's number."""
    _open[:] = [Notebook(folder_of(where) / str(process), processes)]
    return _open[0]


def note(*values: Any) -> None:
    """Note something for the checks: `note("put", 7)`, then `notes.of("put")` in a check.

    What was noted stays when the process is killed. Outside of a measurement it does nothing.
    """
    for book in _open:
        book.add(values[0] if len(values) == 1 else values)


# What a check has seen first in a trial.


_memory: list[Path] = []


def remember_in(where: Path) -> None:
    """Let `first` know the trial."""
    _memory[:] = [folder_of(where)]


def first(key: str, value: Any) -> Any:
    """Return what was given for a key first in this trial; this value outside of one."""
    for folder in _memory:
        path = folder / f"first-{key}"
        if path.is_file():
            return pickle.loads(path.read_bytes())
        path.write_bytes(pickle.dumps(value))
    return value


# Ready-made checks of what concurrent programs promise: they raise AssertionError where it does not hold.


EXAMPLES = 3


def exactly_once(put: Iterable[Any], taken: Iterable[Any]) -> None:
    """See that each thing that was put was taken once: none lost, none twice, none from nowhere.

    What is still there at the end counts as taken: `exactly_once(notes.of("put"), notes.of("taken") + left)`.
    What was put twice has to be taken twice. So give each thing a value of its own: of equal ones nobody
    knows which was taken.
    """
    there, gone = _counted(put), _counted(taken)
    more = gone - there
    wrong = {
        "lost": [*(there - gone)],
        "taken too often": [key for key in more if key in there],
        "taken and never put": [key for key in more if key not in there],
    }
    problems = [f"{what}: {_examples(keys)}" for what, keys in wrong.items() if keys]
    if problems:
        raise AssertionError("; ".join(problems))


def counter(read: int, notes: Notes | Sequence[Any]) -> None:
    """See that a counter holds as many as were noted: `counter(hits, notes.of("hit"))`, or all `notes`."""
    counted = len(notes.all if isinstance(notes, Notes) else notes)
    if read != counted:
        raise AssertionError(f"the counter holds {read}, and {counted} were counted")


def conserved(query: str) -> Callable[..., Any]:
    """Return a check: a query must return before, during and after the load what it returned first.

    `no_money_appears = conserved("SELECT sum(balance) FROM account")`
    """

    @check
    def unchanged(run: Callable[..., Any]) -> None:
        rows = [tuple(row) for row in run(query)]
        before = first(sha256(query.encode()).hexdigest(), rows)
        if rows != before:
            raise AssertionError(f"it was {_shown(before)} and is {_shown(rows)}")

    return unchanged


def _counted(things: Iterable[Any]) -> Counter[Any]:
    found = Counter[Any]()
    for one in things:
        try:
            found[one] += 1
        except TypeError:  # such as a dict
            found[repr(one)] += 1
    return found


def _examples(keys: Sequence[Any]) -> str:
    more = f" and {len(keys) - EXAMPLES:,} more" if len(keys) > EXAMPLES else ""
    return ", ".join(f"{key!r:.40}" for key in keys[:EXAMPLES]) + more


def _shown(rows: Sequence[tuple[Any, ...]]) -> str:
    return ", ".join(repr(row[0] if len(row) == 1 else row)[:40] for row in rows[:EXAMPLES]) or "no rows"
