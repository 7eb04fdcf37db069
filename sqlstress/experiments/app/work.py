"""Parent process's part of a trial of app: prepares the database, and checks that the app used it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sqlstress.engine.proofs import examined
from sqlstress.errors import EnvironmentFailure, Interrupted, error_message
from sqlstress.experiments.app import (
    BROKEN,
    CONNECTION,
    HERE,
    SESSION,
    SHARED,
    UNPROVED,
    USED_FILE,
    is_trial_database,
    user_file,
)
from sqlstress.experiments.app.ledger import SETUP_SQL, TABLE, acknowledged
from sqlstress.experiments.app.openings import openings_memory
from sqlstress.experiments.app.worker import open_calls
from sqlstress.recording import CALL_COST, DELETED, LOST_LOCKS, NEVER, NOT_COMMITTED
from sqlstress.recording.passed_rows import bounds_words
from sqlstress.report import Check
from sqlstress.report.results import MAX_COUNTEREXAMPLES
from sqlstress.statistics.units import plural, verb
from sqlstress.system.sharing import shared_array
from sqlstress.user_work import database
from sqlstress.user_work.loading import CONNECT, SETUP
from sqlstress.user_work.parent import UserWork

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Outcome
    from sqlstress.recording import PlainObservation
    from sqlstress.report import Trial
    from sqlstress.report.case import Case
    from sqlstress.report.results import Sighting
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.user_work.rehearsal import Opener

NAME, FILES, LEDGER = "database that was used", "files of the database", "ledger"
OPEN = "transactions left open"
_UNUSED_SERVER = "no connection of psycopg was seen at work"
_UNUSED = (
    "no statement of Python's sqlite3 or apsw was seen in the processes that call your transactions; "
    "processes that they fork are not watched"
)
_DELETED = (LOST_LOCKS, DELETED)
_ORPHAN = "SELECT 1 FROM pragma_foreign_key_check LIMIT 1"
"""Query for a row that refers to a row that does not exist."""


class AppWork(UserWork):
    """Parent process's part of a trial of app: database, rehearsal and checks."""

    redefines = True
    """Whether transactions may change the schema."""
    _roles: set[str]

    def __init__(self, case: Case, place: Place, salt: int, carry: dict[Any, Any]) -> None:
        super().__init__(case, place, salt, carry)
        self._seed = f"{case.seed}:{salt}:setup"
        self._rows_before: int | None = None
        self._as_left: FileSnapshot | None = None
        self._missing: Path | None = None
        """The database, if the file did not exist before the load."""
        processes = case.concurrency
        self.shared = (*self.shared, shared_array("q", bounds_words(processes)), openings_memory(processes))

    def rehearsal_opening(self) -> Opener | None:
        return None if self.case.spec.situation else open_calls

    @property
    def files_before(self) -> Path:
        return self._as_left.folder if self._as_left else super().files_before

    def build(self, pulse: Pulse) -> None:
        """Create the database, from --database and --setup if given. Then call the user's @setup."""
        if self.data.setup or self.data.database:
            database.make(self.place, self.data, (), pulse)
        else:
            self.place.clear()
        self._roles = user_file.call_once(SETUP, self.place, self._seed, pulse)

    def ready(self, pulse: Pulse) -> None:
        if self.case.spec.situation:
            from sqlstress.experiments.app.situations import prepare_files

            prepare_files(self.case.spec.situation, self.place, self._seed, pulse)
            return
        if not self.case.server and not self.case.spec.ledger:
            self._copy_files()
        if CONNECT in self._roles:
            user_file.call_once(CONNECT, self.place, self._seed, pulse)
        user_file.finish_setup(self.place, self._roles, pulse)
        if self.case.spec.ledger:
            with self.place.making(pulse) as maker:
                for sql in SETUP_SQL:
                    maker.run(sql)
            self._copy_files()
        self._rows_before = self.place.rows_written(pulse)

    def _copy_files(self) -> None:
        self._as_left = FileSnapshot(self.place.where)

    def begins(self, pulse: Pulse) -> None:
        if self._as_left and self._as_left.is_changed():
            if self._checking:
                self._checking.reload(pulse, self._as_left.restore)
            else:
                self._as_left.restore()
        self._discard_copy()
        file = None if self.case.server else cast("SqlitePlace", self.place).paths[0]
        self._missing = file if file and not file.exists() else None

    def ended(self, pulse: Pulse) -> None:
        super().ended(pulse)
        if self._missing:
            self._missing.touch()  # An application may open no database. The checks need a file.

    def release(self) -> None:
        super().release()
        self._discard_copy()

    def _discard_copy(self) -> None:
        if self._as_left:
            self._as_left.end()
        self._as_left = None

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        trial = super().complete(trial, pulse)
        if self.case.server:
            return trial
        sightings = self._mark_broken_keys(trial.sightings, pulse)
        return replace(trial, sightings=self._with_opening_time(sightings, pulse))

    def _with_opening_time(self, sightings: Sequence[Sighting], pulse: Pulse) -> tuple[Sighting, ...]:
        """Return the observations; add `_opening_traits` to those on calls that open connections."""
        costs = [
            sighting
            for sighting in sightings
            if sighting.topic == CALL_COST and sighting.traits["connections"] != "0"
        ]
        if not costs:
            return tuple(sightings)
        return _with_traits(sightings, costs, self._opening_traits(pulse))

    def _opening_traits(self, pulse: Pulse) -> dict[str, str]:
        """Return the number of schema objects, and the time to open the database without load.

        The time is the shortest of three. It grows with the number of objects, because SQLite parses the
        schema. The result is empty if the database cannot be read.
        """
        times_s, objects = [], 0
        try:
            for _ in range(3):
                begun_s = time.perf_counter()
                with self.place.reading(pulse) as reader:
                    ((objects,),) = reader.rows("SELECT count(*) FROM sqlite_schema")
                    times_s.append(time.perf_counter() - begun_s)
        except Interrupted:
            raise
        except Exception:
            return {}
        return {"objects": str(objects), "least_opening_s": f"{min(times_s):.6g}"}

    def _mark_broken_keys(self, sightings: Sequence[Sighting], pulse: Pulse) -> tuple[Sighting, ...]:
        """Return the observations. Mark connections with foreign_keys off if rows violate a foreign key.

        The parent process searches for such rows. If a worker did, closing its file would release the locks
        of the user's connections.
        """
        without_keys = [
            sighting
            for sighting in sightings
            if sighting.topic == CONNECTION
            and (sighting.traits["database"], sighting.traits["foreign_keys"]) == (HERE, "off")
        ]
        if not without_keys or not self._breaks_keys(pulse):
            return tuple(sightings)
        return _with_traits(sightings, without_keys, {"foreign_keys": BROKEN})

    def _breaks_keys(self, pulse: Pulse) -> bool:
        try:
            with self.place.reading(pulse) as reader:
                return bool(reader.rows(_ORPHAN))
        except Interrupted:
            raise
        except Exception:
            return False

    def proofs(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterable[Check]:
        """Yield the checks that sqlstress adds to the user's; none with --start.

        They fail if the application used another database than the trial's (so that the user's checks prove
        nothing), deleted open files, left transactions open, or lost a commit that the ledger proves.
        """
        all_sightings = [
            sighting for outcome in outcomes if outcome.findings for sighting in outcome.findings.sightings
        ]
        used = [
            traits["database"] for topic, _, _, _, traits in all_sightings if topic in (CONNECTION, SESSION)
        ]
        if self.case.spec.situation:
            return
        used += [HERE for topic, what, _, _, _ in all_sightings if (topic, what) == (USED_FILE, HERE)]
        # Only a server counts written rows. For files, `rows_written` returns None, so that `rows` is 0.
        rows = 0 if self._rows_before is None else (self.place.rows_written(pulse) or 0) - self._rows_before
        elsewhere = bool(used) and not any(map(is_trial_database, used))
        if rows > 0 and elsewhere:
            note = f"rows were written, but what was seen at the end used {used[0]}"
            yield Check(NAME, "unknown", rows, note=note)
        elif rows > 0:
            yield Check(NAME, "ok", rows)
        elif not used:
            yield Check(NAME, "unknown", note=_UNUSED_SERVER if self.case.server else _UNUSED)
        elif elsewhere:
            yield Check(NAME, "failed", len(used), len(used), (f"the app used {used[0]} instead",))
        else:
            yield Check(NAME, "ok", len(used))
        if deleted := [
            traits["file"] for topic, what, _, _, traits in all_sightings if (topic, what) == _DELETED
        ]:
            yield Check(FILES, "failed", 1, 1, (f"deleted under a live connection: {deleted[0]}",))
        never = [(call, count) for topic, call, count, _, traits in all_sightings if NEVER in traits]
        if never and not self.case.spec.ledger:  # With --ledger, the ledger counts these calls.
            count = sum(count for _, count in never)
            texts = [_uncommitted_text(call, count) for call, count in never]
            yield Check(OPEN, "failed", count, count, tuple(texts[:MAX_COUNTEREXAMPLES]))
        if self.case.spec.ledger:
            yield examined(LEDGER, lambda: self._check_ledger(all_sightings, pulse))

    def _check_ledger(self, sightings: Sequence[PlainObservation], pulse: Pulse) -> Check:
        with self.place.reading(pulse) as reader:
            if not reader.rows(f"SELECT 1 FROM sqlite_schema WHERE name = '{TABLE}'"):
                return Check(
                    LEDGER, "unknown", note=f"the app removed the table {TABLE}, or replaced the file"
                )
            rows = set(reader.rows(f"SELECT worker, number FROM {TABLE}"))
        number, lost = 0, dict[int, int]()
        for worker in range(1, self.case.concurrency + 1):
            numbers = acknowledged(self.place.where, worker)
            number += len(numbers)
            if missing := sum((worker, number) not in rows for number in numbers):
                lost[worker] = missing
        uncovered = Counter[str]()
        for topic, _, count, _, _ in sightings:
            uncovered[topic] += count
        notes = []
        if unproved := uncovered[UNPROVED]:
            notes.append(
                f"not covered: {plural(unproved, 'write')} without COMMIT, or next to other databases"
            )
        if shared := uncovered[SHARED]:
            notes.append(f"connections that several threads may use at once ({shared:,}) are not covered")
        note = "; ".join(notes)
        if not number and not uncovered[NOT_COMMITTED]:
            return Check(LEDGER, "unknown", note=note or "no COMMIT of Python's sqlite3 was seen")
        texts = [
            f"{plural(count, 'acknowledged commit')} of worker {worker} {verb(count, 'is', 'are')} lost"
            for worker, count in lost.items()
        ]
        texts += [
            _uncommitted_text(call, count) for topic, call, count, _, _ in sightings if topic == NOT_COMMITTED
        ]
        count = sum(lost.values()) + uncovered[NOT_COMMITTED]
        return Check(
            LEDGER, "failed" if count else "ok", number, count, tuple(texts[:MAX_COUNTEREXAMPLES]), note
        )


def _uncommitted_text(call: str, count: int) -> str:
    return f"{plural(count, 'call')} returned within a transaction of {call} that was never committed"


def _with_traits(
    sightings: Sequence[Sighting], changed: Sequence[Sighting], traits: dict[str, str]
) -> tuple[Sighting, ...]:
    return tuple(
        replace(sighting, traits={**sighting.traits, **traits}) if sighting in changed else sighting
        for sighting in sightings
    )


_Mark = tuple[int, int, int]
"""Size, modification time in ns, and inode number of a file."""


class FileSnapshot:
    """Copy of the files that the user's setup left, to restore them before the load.

    sqlstress opens the database between setup and load, and may thus recover, remove or create a WAL.
    """

    def __init__(self, where: Path) -> None:
        """Copy the files in the folder `where`. Raises EnvironmentFailure, for example on a full disk."""
        self._where = where
        self.folder = Path(tempfile.mkdtemp(prefix="as-left-", dir=where.parent))
        self._marks = _marks(where)
        try:
            for path in self._marks:
                (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(where / path, self.folder / path)
        except OSError as error:
            self.end()
            raise EnvironmentFailure(
                f"cannot keep a copy of the database: {error_message(error)}."
            ) from error

    def is_changed(self) -> bool:
        """Return whether a file was written, removed or created since the copy."""
        return _marks(self._where) != self._marks

    def restore(self) -> None:
        """Restore changed and removed files, and remove new files. Existing files keep their inodes."""
        current = _marks(self._where)
        for path in current.keys() - self._marks.keys():
            (self._where / path).unlink()
        for path, mark in self._marks.items():
            if current.get(path) != mark:
                (self._where / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.folder / path, self._where / path)

    def end(self) -> None:
        """Remove the copy."""
        with suppress(OSError):
            shutil.rmtree(self.folder)


def _marks(where: Path) -> dict[Path, _Mark]:
    paths = (path for path in where.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(where): _mark(path) for path in paths}


def _mark(path: Path) -> _Mark:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino
