"""The user's Python file: its declarations, calls of its functions, and the threads and forks that it leaves.

A declaration is a function with a decorator such as @transaction, which gives it a role.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.errors import UsageError, plainly
from sqlstress.recording import MAX_WEIGHT
from sqlstress.statistics.histogram import MAX_KINDS
from sqlstress.system.child import end_with_parent
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import Died, call_in_subprocess
from sqlstress.targets import target_of
from sqlstress.user_work import loading, notes
from sqlstress.user_work.checks import end_parameters
from sqlstress.user_work.own_files import OtherFileError, OwnFiles, guard_files

if TYPE_CHECKING:
    from sqlstress.experiments.app.spec import App
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import ConnectionInfo

Function = Callable[..., Any]

MAX_IMPORT_S = 30.0
"""Time limit for the import of the user's file, in seconds."""
MAX_SETUP_S = 600.0
_WAITS = ". It may be waiting for input or a lock"
MAX_ENDING_S = 2.0
"""Maximum time that a process waits after the last transaction for the user's threads, in seconds."""
_SINGLE = (loading.SETUP, loading.CONNECT, loading.FINISH)


class Declarations(NamedTuple):
    """Functions that the user's file declares with decorators, such as @connect."""

    single: dict[str, Function]
    """Functions of @setup, @connect and @finish, by role. A file has at most one of each."""
    transactions: dict[str, Function]
    """Transactions by name."""
    weights: dict[str, int]
    """Weight (relative frequency) of each transaction, by name."""
    checks: dict[str, bool]
    """Whether a check runs only after all worker processes have ended, by the check's name."""

    def connected(self, address: str) -> Any:
        """Return the transactions' argument: the result of a call of @connect, or `address`."""
        connect = self.single.get(loading.CONNECT)
        return bind_argument(connect, address)() if connect else address


def import_declarations(file: str) -> Declarations:
    """Import a file into this process and return its declarations. Raises UsageError."""
    # A function with two names in the module counts once.
    functions = {id(value): (name, value) for name, value in reversed(vars(loading.load(file)).items())}
    marked: dict[str, dict[str, Function]] = defaultdict(dict)
    weights: dict[str, int] = {}
    for name, value in reversed(functions.values()):
        role = None
        with suppress(Exception):  # A library's proxy raises if it is not bound; it is no declaration.
            role = getattr(value, loading.MARK, None)
        if not isinstance(role, loading.FunctionRole):
            continue
        if loading.is_lazy(value):
            raise UsageError(
                f"{file}: the {role.name} {name} is async or a generator, so a call does nothing. Wrap it "
                "in a function that runs it to its end."
            )
        if role.weight not in range(1, MAX_WEIGHT + 1):
            raise UsageError(
                f"{file}: the weight of {name} must be a whole number from 1 to {MAX_WEIGHT:,}.",
            )
        marked[role.name][name], weights[name] = value, role.weight
    transactions = marked[loading.TRANSACTION]
    if not transactions:
        raise UsageError(
            f"{file} declares no transaction. Put @transaction before a function (from sqlstress import "
            "transaction)."
        )
    if len(transactions) > MAX_KINDS:
        raise UsageError(f"{file} declares more than {MAX_KINDS} transactions. Remove some.")
    for role_name in _SINGLE:
        if len(marked[role_name]) > 1:
            first, second, *_ = marked[role_name]
            raise UsageError(
                f"{file} declares two functions with @{role_name}: {first} and {second}. Keep one."
            )
    return Declarations(
        {role_name: function for role_name in _SINGLE for function in marked[role_name].values()},
        transactions,
        {name: weights[name] for name in transactions},
        {name: bool(end_parameters(function)) for name, function in marked[loading.CHECK].items()},
    )


def bind_argument(function: Function, given: Any) -> Callable[[], Any]:
    """Return `function`; if it requires an argument, bind `given` to it."""
    try:
        signature(function).bind()
    except (TypeError, ValueError):
        return lambda: function(given)
    return function


# Calls of the user's code in separate processes, to inspect the file and to set up the database.


class SentDeclarations(NamedTuple):
    """Declarations of a file without their functions, which cannot be sent to another process."""

    weights: dict[str, int]
    checks: dict[str, bool]
    connects: bool
    """Whether the file has a function with @connect."""
    creates: bool
    """Whether @connect succeeded without an existing database; False if @connect was not tried."""


def look(file: str, driver: str, *, allow_others: bool, tries_connect: bool = False) -> SentDeclarations:
    """Import a file in a child process and return its declarations. Raises UsageError.

    With `allow_others`, the file may open databases outside of the trial's folder. With `tries_connect`, the
    child process also calls @connect, with the path of a database that does not exist.
    """
    with tempfile.TemporaryDirectory(prefix="sqlstress-", ignore_cleanup_errors=True) as folder:
        overdue = UsageError(f"{file} takes longer than {MAX_IMPORT_S:g} s to import{_WAITS}")
        limited = loading.limit_time(lambda: None, MAX_IMPORT_S, overdue)
        try:
            directions = target_of(driver).stand_in(Path(folder))
            return call_in_subprocess(
                limited, inspect_in_process, file, directions, allow_others, tries_connect
            )
        except Died as error:
            raise UsageError(f"importing {file} ended the process: {error}") from error


def inspect_in_process(
    file: str, directions: ConnectionInfo, allow_others: bool, tries_connect: bool
) -> SentDeclarations:
    """Import a file into this process, a child of sqlstress, and return the file's declarations."""
    files = prepare(directions, "", file, allow_others=allow_others)
    declarations = import_declarations(file)
    files.check()
    creates = False
    if tries_connect:
        with suppress(Exception, SystemExit):
            declarations.connected(directions.address)
            creates = True
        files.check()
    connects = loading.CONNECT in declarations.single
    return SentDeclarations(declarations.weights, declarations.checks, connects, creates)


def finish_setup(place: SqlPlace, roles: Collection[str], pulse: Pulse) -> None:
    """Prepare the database for the load, after the user's @setup.

    `roles` contains SETUP if the file declares a @setup. Raises UsageError if @setup left the database empty.
    """
    if loading.SETUP in roles and not place.is_filled():
        raise UsageError(
            f"{place.case.spec.file}: setup left the database empty. Open the path that setup gets, which is "
            f"also in {loading.DATABASE}."
        )
    place.settle(pulse)


def call_once(what: str, place: SqlPlace, seed: str, pulse: Pulse) -> set[str]:
    """Call the user's @setup or @connect in a child process and return the roles that the file declares.

    `what` is SETUP or CONNECT. @connect is called once before the load, so that its changes of the database
    do not count as changes during the load. Each call has a new process, because an ORM may refuse a second
    database. Raises UsageError.
    """
    file = place.case.spec.file
    overdue = UsageError(f"the {what} of {file} takes longer than {MAX_SETUP_S:g} s{_WAITS}")
    limited = loading.limit_time(pulse, MAX_SETUP_S, overdue)
    try:
        return call_in_subprocess(
            limited, call_role, what, place.case.spec, place.directions(), seed, place.where
        )
    except Died as error:
        raise UsageError(f"{file}: {what} ended the process: {error}") from error


def call_role(what: str, spec: App, directions: ConnectionInfo, seed: str, where: Path) -> set[str]:
    """Import the file and call @setup or @connect, in the child process of `call_once`.

    A declared @finish follows @connect, so that connections are closed. `where` is the trial's folder.
    """
    file = spec.file
    files = prepare(directions, spec.data.database, seed, allow_others=spec.allow_other_files)
    declarations = import_declarations(file)
    try:
        if what == loading.CONNECT:
            given = declarations.connected(directions.address)
            if finish := declarations.single.get(loading.FINISH):
                bind_argument(finish, given)()
        elif setup := declarations.single.get(what):
            book = notes.take(where, 0, 1)
            bind_argument(setup, directions.address)()
            book.check()
        files.check()
    except (Exception, SystemExit) as error:
        raise UsageError(f"{file}: {what} failed: {problem_of(error, directions)}.") from error
    return set(declarations.single)


def problem_of(error: BaseException, directions: ConnectionInfo) -> str:
    """Return the reason why a function of the user's file failed, without secrets such as passwords."""
    text = directions.hidden(plainly(error))
    return text if isinstance(error, OtherFileError) else text[:300]


def prepare(directions: ConnectionInfo, original: str, seed: str, *, allow_others: bool) -> OwnFiles:
    """Prepare this process for the user's file. Return the guard of database connections.

    The guard refuses to open databases outside of the trial's folder. With `allow_others`, it refuses only
    `original`, the user's database that the trial has copied. `seed` is for the user's random numbers.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_begin_fork)
    loading.prepare_process(directions, seed)
    return guard_files(directions, original, allow_others=allow_others)


# The user's code may leave threads that run after the last transaction. A process must not wait for them.


def unfinished_threads() -> list[str]:
    """Wait up to MAX_ENDING_S for the user's threads. Return the names of threads that still run.

    If any thread still runs, start a thread that ends this process once the main thread has ended. Daemon
    threads do not count, because they do not keep a process from ending.
    """
    deadline = time.monotonic() + MAX_ENDING_S
    for thread in _blocking_threads():
        thread.join(max(0.0, deadline - time.monotonic()))
    names = sorted(thread.name for thread in _blocking_threads())
    if names:
        threading.Thread(target=_leave_without_them, daemon=True).start()
    return names


def _blocking_threads() -> list[threading.Thread]:
    # Threads of a pool end by themselves when the process exits.
    pool_threads = getattr(sys.modules.get("concurrent.futures.thread"), "_threads_queues", ())
    own_threads = (threading.current_thread(), threading.main_thread())
    return [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread not in own_threads and thread not in pool_threads
    ]


def _leave_without_them() -> None:
    threading.main_thread().join()
    os._exit(0)


# Handling of processes that the user's code forks. Such a process must neither return to sqlstress's loop nor
# outlive its parent.


_forked: list[bool] = []
"""List that is empty except in a process that the user's code forked."""


def _begin_fork() -> None:
    _forked.append(True)
    # A fork has no thread but the current one. So start again the thread that waits for the parent's death.
    threading.Thread(target=end_with_parent, daemon=True).start()


def leave_if_forked() -> None:
    """End this process if the user's code forked it. A fork would use the parent's pipes and connections."""
    if _forked:
        os._exit(0)
