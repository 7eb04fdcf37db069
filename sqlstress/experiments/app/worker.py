"""Worker's part of a trial of app: imports the user's file, calls its transactions, counts errors."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress import sqlite_codes as codes
from sqlstress.engine.protocols import FAILED, Chunk, Findings, Stamps
from sqlstress.errors import EnvironmentFailure, error_message
from sqlstress.experiments.app import (
    BROKEN_TRANSACTION,
    EXCEPTION,
    LOGGED,
    PENDING_ROLLBACK,
    SCHEMA_CHECK,
    SHARED,
    THREAD,
    THREAD_RAISED,
    UNPROVED,
    USED_FILE,
)
from sqlstress.experiments.app.migrations import is_migration, migration_race, schema_check
from sqlstress.recording import PlainObservation
from sqlstress.recording.failures import is_within
from sqlstress.recording.messages import OTHER_KINDS, group_key
from sqlstress.targets.postgres import dialect as server
from sqlstress.user_work.loading import CONNECT, FINISH, imported_modules
from sqlstress.user_work.source import KindCounter, UserSource

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.experiments.app.ledger import Ledger
    from sqlstress.experiments.app.watch import FileWatch, ServerWatch
    from sqlstress.races.tracing import Tracer
    from sqlstress.recording.failed_statements import FailedStatements
    from sqlstress.recording.lost_locks import LostLocks
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import ConnectionInfo
    from sqlstress.user_work.notes import Notebook
    from sqlstress.user_work.own_files import OwnFiles
    from sqlstress.user_work.rehearsal import Calls


SPARE_DESCRIPTORS = 12
"""Number of file descriptors reserved for a worker's report after the load."""


class AppSource(UserSource):
    """Operations of a worker: calls of the user's transactions.

    After an exception, the call counts as failed and the worker goes on with the next call.
    """

    _unraised: OtherErrors
    _notes: Notebook | None = None
    _ledger: Ledger | None = None
    _files: OwnFiles | None = None
    _finish: Callable[[], Any] | None = None
    _statements: FailedStatements | None = None
    _locks: LostLocks | None = None
    _spare: Sequence[int] = ()
    """File descriptors to close before the final report: the user's code may use up all others."""
    _address = ""
    """Path of the database file, or URL of the database server."""
    _modules: frozenset[str] = frozenset()
    """Names of the modules imported before the user's file."""

    def __init__(
        self, case: Case, place: SqlPlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        super().__init__(
            case,
            worker,
            salt,
            {transaction.name: transaction.weight for transaction in case.spec.transactions},
        )
        self._errors = Errors()
        self._folder = Path.cwd()
        self._connections: list[Any] = []
        self._watch: FileWatch | ServerWatch | None = None
        # Without a database, only the cost of sqlstress itself is measured, so the calls do nothing.
        self.calls: Sequence[Callable[[Any], Any]] = [lambda _: None] * len(self.kinds)
        if place.stores:
            self.calls = self._load_calls(
                place.directions(), place.where, f"{case.seed}:{salt}:{worker}", *shared[-2:]
            )

    def _load_calls(
        self, directions: ConnectionInfo, where: Path, seed: str, bounds: Any, states: Any
    ) -> list[Callable[[Any], Any]]:
        """Import the user's file and call @connect. Return a function for each @transaction function.

        With --start, which measures @connect itself, return only a function that calls @connect. `directions`
        has the database's address. `where` is the folder of the database. `seed` is for random numbers. All
        workers share the memory `bounds`, which serves to find rows that a query misses, and the memory
        `states`, which has the results of @connect. Raises EnvironmentFailure if the file has changed.
        """
        # Imported here: the measurement of sqlstress's own cost does not load these modules.
        from sqlstress.experiments.app.ledger import Ledger
        from sqlstress.experiments.app.user_file import bind_argument, import_declarations, prepare
        from sqlstress.experiments.app.watch import FileWatch, ServerWatch
        from sqlstress.user_work.notes import take

        spec, address = self.case.spec, directions.address
        self._address = address
        self._errors, self._unraised = Errors(directions.hidden), OtherErrors(directions.hidden)
        self._files = prepare(directions, spec.data.database, seed, allow_others=spec.allow_other_files)
        if spec.ledger:
            self._ledger = Ledger(where, self.worker)
        self._watch = ServerWatch(address) if self.case.server else FileWatch(address, self._ledger)
        statements = self._watch_statements(address, bounds)
        self._modules = frozenset(sys.modules)
        declarations = import_declarations(spec.file)
        if not spec.situation and tuple(declarations.transactions) != self.kinds:
            raise EnvironmentFailure(f"{spec.file} changed during the measurement. Measure again.")
        self._unraised.watch()
        self._notes = take(where, self.worker, self.case.concurrency)
        if spec.situation:
            return [_guarded(CONNECT, lambda: self._keep(declarations.connected(address)), statements)]
        given = self._connect(lambda: declarations.connected(address), directions, states)
        self._check_files()
        if finish := declarations.single.get(FINISH):
            self._finish = bind_argument(finish, given)
        return [
            _guarded(name, bind_argument(function, given), statements)
            for name, function in declarations.transactions.items()
        ]

    def _connect(self, connect: Callable[[], Any], directions: ConnectionInfo, states: Any) -> Any:
        """Wait until all workers are ready, call @connect by `connect`, and return its result.

        All workers share `states`, the memory in which each stores whether its @connect failed. `directions`
        has the password, which the error's text must not show. Raises EnvironmentFailure if @connect fails.
        """
        from sqlstress.experiments.app.openings import CONNECTED, NOT_CONNECTED, Openings
        from sqlstress.experiments.app.user_file import problem_of

        openings = Openings(states)
        openings.meet(self.worker)
        started_s = time.perf_counter()
        try:
            given = connect()
        except (Exception, SystemExit) as error:
            took_ms = (time.perf_counter() - started_s) * 1000
            openings.set_state(self.worker, NOT_CONNECTED)
            failed, processes = openings.failed(), self.case.concurrency
            race = ""
            if failed < processes and is_migration(str(error)):
                race = f" {migration_race(schema_check(Path(self.case.spec.file)))}"
            raise EnvironmentFailure(
                f"{self.case.spec.file}: connect failed in {failed} of {processes} processes "
                f"(here after {took_ms:.3g} ms): {problem_of(error, directions)}.{self._cause()}{race}"
            ) from error
        openings.set_state(self.worker, CONNECTED)
        return given

    def _watch_statements(self, address: str, bounds: Any) -> FailedStatements:
        """Start to watch connections to SQLite, if the target is SQLite. Return the recorder of failures.

        All workers share the memory `bounds`, which serves to find rows that a query misses.
        """
        from sqlstress.recording.call_costs import CallCosts
        from sqlstress.recording.callers import UserFrames
        from sqlstress.recording.failed_statements import FailedStatements
        from sqlstress.recording.lost_locks import LostLocks

        statements = FailedStatements(UserFrames(Path(self.case.spec.file).parent), CallCosts())
        self._statements, self._locks = statements, LostLocks(address, statements)
        statements.passed_rows.share(bounds, self.worker)
        self._spare = [os.open(os.devnull, os.O_RDONLY) for _ in range(SPARE_DESCRIPTORS)]
        if not self.case.server:
            statements.install()
            self._locks.install()
        return statements

    def _keep(self, connection: Any) -> None:
        # The connection stays open, as in an application.
        self._connections.append(connection)

    def _cause(self) -> str:
        """Return " " and a sentence on the first failed statement and its cause; empty if none failed."""
        from sqlstress.recording import FAILED_STATEMENT
        from sqlstress.recording.failure_facts import explain

        records = self._statements.records() if self._statements else []
        failures = (
            explain(what, message, traits)
            for topic, what, _, message, traits in records
            if topic == FAILED_STATEMENT
        )
        return "".join(f" {sentence}" for sentence in islice(failures, 1))

    def hear(self, window: Window) -> None:
        super().hear(window)
        if self._statements:
            self._statements.failures.window = window

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        kind = self.kinds[chunk.kinds[index]]
        self._errors.add(kind, error, counts=is_within(self.failures.window))
        self.failures.add(index, kind, name_of(error))
        chunk.kinds[index] = FAILED

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        """Record the durations of failed calls after a batch of calls.

        Raises EnvironmentFailure if a note (a fact that the user's code records for its checks) was not
        stored, or if the user's code tried to open another database.
        """
        super().settle(chunk, done, results, stamps)
        if self._notes:
            self._notes.check()
        self._check_files()

    def _check_files(self) -> None:
        """Raise EnvironmentFailure if the user's code tried to open another database.

        The user's code may have caught the exception of the refused connection.
        """
        if self._files and self._files.refused:
            raise EnvironmentFailure(f"{self.case.spec.file}: {self._files.refused}")

    def _used_files(self) -> Iterator[PlainObservation]:
        from sqlstress.experiments.app.watch import database_name

        for name in self._statements.used_files if self._statements else ():
            yield USED_FILE, database_name(name, self._address), 1, "", {}

    def _schema_checks(self) -> Iterator[PlainObservation]:
        """With --start, report the line that reads the schema's state if migrations raced."""
        raised = self._errors.sightings() if self.case.spec.situation else ()
        if any(is_migration(example) for _, _, _, example, _ in raised):
            yield SCHEMA_CHECK, schema_check(Path(self.case.spec.file)), 1, "", {}

    def busy_counts(self) -> tuple[int, int]:
        return self._errors.busy, self._errors.busy_snapshot

    def findings(self) -> Findings:
        for descriptor in self._spare:
            os.close(descriptor)
        self._spare = ()
        # Read the records on lost locks before the user's @finish, which may close connections.
        lost = self._locks.records() if self._locks else []
        apsw_settings = self._statements.apsw_settings(Path(self._address).name) if self._statements else {}
        if self._finish:
            try:
                self._finish()
            except (Exception, SystemExit) as error:
                self._errors.add("finish", error)
        if self._notes:
            self._notes.check()
        # sqlstress uses relative paths, and the user's code may have changed the working directory.
        os.chdir(self._folder)
        if self._modules:
            user_file = os.path.realpath(self.case.spec.file)
            modules = imported_modules(self._modules)
            self.seen.modules = {name: file for name, file in modules.items() if file != user_file}
        if self._watch:
            from sqlstress.experiments.app.user_file import unfinished_threads

            self.seen.sightings = [
                *self._watch.sightings(),
                *self._errors.sightings(),
                *self._unraised.sightings(),
                *(self._statements.records() if self._statements else ()),
                *self._used_files(),
                *self._schema_checks(),
                *lost,
                *((THREAD, name, 1, "", {}) for name in unfinished_threads()),
            ]
            if self._ledger:
                self.seen.sightings += [
                    (UNPROVED, "", self._ledger.unproved, "", {}),
                    (SHARED, "", self._ledger.shared, "", {}),
                ]
            self.seen.effective = self._watch.effective() or apsw_settings
        self.seen.failures = self.failures.recorded()
        return self.seen


def _guarded(name: str, call: Callable[[], Any], statements: FailedStatements) -> Callable[[Any], Any]:
    """Return a function that runs the transaction `name` and records cost, error and state.

    The state is whether the call left a transaction open. The function never returns in a process that the
    user's code forked during the call: it ends that process.
    """
    from sqlstress.experiments.app.user_file import leave_if_forked

    def guarded(_: Any) -> None:
        statements.costs.begin()
        returned = False
        try:
            call()
            returned = True
        except Exception as error:
            statements.note_raised(error)
            raise
        finally:
            leave_if_forked()
            statements.end_call(name, returned=returned)

    return guarded


# The rehearsal calls transactions a few times on a copy of the data and traces their SQL, to find races.


def open_calls(case: Case, place: SqlPlace, tracer: Tracer) -> Calls:
    """Import the user's file, call its @connect, and return a function for each transaction.

    The rehearsal calls these functions, which have no parameters. `place` has the database.
    """
    from sqlstress.experiments.app.user_file import bind_argument, import_declarations, prepare

    spec, directions = case.spec, place.directions()
    tracer.find_lines_in(Path(spec.file).parent)
    allow_others = spec.allow_other_files
    prepare(directions, spec.data.database, f"{case.seed}:rehearsal", allow_others=allow_others)
    declarations = import_declarations(spec.file)
    given = declarations.connected(directions.address)
    return {name: bind_argument(function, given) for name, function in declarations.transactions.items()}


# Errors of a process, counted by kind: exceptions of transactions, and errors that no transaction raised. A
# library may wrap the database's exception in its own. If so, the database's error determines the kind.


MAX_NESTED_EXCEPTIONS = 10
"""Maximum number of exceptions that are examined, from an exception to those that it wraps."""
_WIDEST = 160
_SQLSTATE = re.compile(r"[0-9A-Z]{5}")


class Errors:
    """Counter of this process's exceptions, by transaction, database error and class."""

    def __init__(self, hidden: Callable[[str], str] = str) -> None:
        """`hidden` removes secrets, such as passwords, from a text."""
        self._hidden = hidden
        self.busy = self.busy_snapshot = 0
        self._kinds = KindCounter(("", "others", ""))

    def add(self, transaction: str, error: BaseException, *, counts: bool = True) -> None:
        """Count an exception of a transaction. `counts` is False outside of the measured time.

        `busy` (a lock was not available) and `busy_snapshot` (a snapshot was out of date) are counted anyway.
        """
        code, state = code_of(error), _sqlstate_of(error)
        is_snapshot = code == codes.BUSY_SNAPSHOT or state == server.SERIALIZATION_FAILURE
        self.busy_snapshot += is_snapshot
        self.busy += (codes.is_busy(code) or state in server.BUSY) and not is_snapshot
        if counts:
            kind = (transaction, name_of(error), class_of(error))
            self._kinds.add(kind, line(lambda: error_message(error), self._hidden))

    def sightings(self) -> list[PlainObservation]:
        """Return an observation for each kind of exception, with its count and first message."""
        return [
            (EXCEPTION, what, count, example, {"transaction": transaction, "raised": raised})
            for (transaction, what, raised), count, example in self._kinds
        ]


def line(text: Callable[[], str], hidden: Callable[[str], str]) -> str:
    """Return the result of `text` in one line, shortened and without secrets. `text` may raise an error."""
    try:
        content = text()
    except Exception:  # The __str__ of a user's exception may raise.
        content = "(it can't be written)"
    return " ".join(hidden(content).split())[:_WIDEST]


def _values(error: BaseException, *names: str) -> Iterator[Any]:
    """Yield the attributes `names` of an exception and of those it wraps; None if missing."""
    layer: BaseException | None = error
    for _ in range(MAX_NESTED_EXCEPTIONS):
        if layer is None:
            return
        yield from (getattr(layer, name, None) for name in names)
        inner = getattr(layer, "orig", None)  # SQLAlchemy and Peewee
        layer = inner if isinstance(inner, BaseException) else layer.__cause__ or layer.__context__


def code_of(error: BaseException) -> int | None:
    """Return the extended SQLite result code of an exception or of its causes; None without a code."""
    # The attributes are those of Python's sqlite3 and of apsw.
    values = _values(error, "sqlite_errorcode", "extendedresult")
    return next((code for code in values if isinstance(code, int)), None)


def _sqlstate_of(error: BaseException) -> str | None:
    values = _values(error, "sqlstate", "pgcode")  # Attributes of psycopg and asyncpg, and of psycopg2.
    return next((state for state in values if isinstance(state, str) and _SQLSTATE.fullmatch(state)), None)


def name_of(error: BaseException) -> str:
    """Return the database's name for an exception, such as "SQLITE_BUSY", else its class name."""
    code = code_of(error)
    if class_of(error) in (PENDING_ROLLBACK, BROKEN_TRANSACTION):
        return class_of(error)  # The wrapped error was caught before.
    if code is None:
        state = _sqlstate_of(error)
        return f"SQLSTATE {state}" if state else class_of(error)
    names = _values(error, "sqlite_errorname")
    return next((name for name in names if isinstance(name, str)), codes.name(code))


def class_of(error: BaseException) -> str:
    """Return the class name of an exception, with its module unless it is a builtin."""
    class_ = type(error)
    return (
        class_.__qualname__
        if class_.__module__ == "builtins"
        else f"{class_.__module__}.{class_.__qualname__}"
    )


class OtherErrors:
    """Errors that no transaction raised: exceptions that end threads, and logged errors."""

    def __init__(self, hidden: Callable[[str], str] = str) -> None:
        self._hidden = hidden
        self._threads, self._records = KindCounter(("", OTHER_KINDS)), KindCounter(("", OTHER_KINDS))

    def watch(self) -> None:
        """Start to count exceptions that end threads, and messages logged at ERROR or above."""
        previous_hook, previous_factory = threading.excepthook, logging.getLogRecordFactory()

        def report_thread(args: threading.ExceptHookArgs) -> None:
            if args.exc_value and not isinstance(args.exc_value, SystemExit):
                self._add_exception(args.exc_value)
            previous_hook(args)

        # A logging handler would make the user's logging.basicConfig() do nothing. So replace the factory.
        def record(*args: Any, **options: Any) -> logging.LogRecord:
            log_record = previous_factory(*args, **options)
            if log_record.levelno >= logging.ERROR:
                text = line(log_record.getMessage, self._hidden)
                self._records.add((log_record.name, group_key(text)), text)
            return log_record

        threading.excepthook = report_thread
        logging.setLogRecordFactory(record)

    def _add_exception(self, error: BaseException) -> None:
        self._threads.add((name_of(error), class_of(error)), line(lambda: error_message(error), self._hidden))

    def sightings(self) -> list[PlainObservation]:
        """Return an observation for each kind of error, with its count and first message."""
        threads, records = self._threads, self._records
        return [
            *(
                (THREAD_RAISED, what, count, first, {"raised": raised})
                for (what, raised), count, first in threads
            ),
            *((LOGGED, kind, count, first, {"logger": name}) for (name, kind), count, first in records),
        ]
