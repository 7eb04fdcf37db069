"""The user's file: what it declares, what processes of its own do with it, and what it leaves there."""

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
from sqlstress.statistics.histogram import MOST_KINDS
from sqlstress.system.child import end_with_parent
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import Died, call_apart
from sqlstress.targets import target_of
from sqlstress.user_work import MOST_WEIGHT, loading, notes
from sqlstress.user_work.checks import at_end
from sqlstress.user_work.own_files import OtherFile, OwnFiles, own_files

if TYPE_CHECKING:
    from sqlstress.experiments.app.spec import App
    from sqlstress.targets.place import SqlPlace
    from sqlstress.targets.views import Directions

Function = Callable[..., Any]

IMPORT_S = 30.0
"""How long an import may take."""
SETUP_S = 600.0
_WAITS = ". It may be waiting for input or a lock"
ENDING_S = 2.0
"""How long threads have to end with the work."""
_SINGLE = (loading.SETUP, loading.CONNECT, loading.FINISH)


class Declared(NamedTuple):
    """The functions of a file, by what they are for."""

    single: dict[str, Function]
    """By role, those of which there is one at most: setup, connect and finish."""
    transactions: dict[str, Function]
    weights: dict[str, int]
    checks: dict[str, bool]
    """By name, and whether each runs only when all processes have ended."""

    def connected(self, address: str) -> Any:
        """Connect, if the file says how; return what its transactions are given."""
        connect = self.single.get(loading.CONNECT)
        return called(connect, address)() if connect else address


def declared(file: str) -> Declared:
    """Import a file and return what it declares. Raises UsageError."""
    # A function may have two names.
    functions = {id(value): (name, value) for name, value in reversed(vars(loading.load(file)).items())}
    marked: dict[str, dict[str, Function]] = defaultdict(dict)
    weights: dict[str, int] = {}
    for name, value in reversed(functions.values()):
        role = None
        with suppress(Exception):  # a proxy of a library may have nothing behind it yet: it is none of ours
            role = getattr(value, loading.MARK, None)
        if not isinstance(role, loading.Role):
            continue
        if loading.only_begins(value):
            raise UsageError(
                f"{file}: the {role.name} {name} is async or a generator, so a call does nothing. Wrap it "
                "in a function that runs it to its end."
            )
        if role.weight not in range(1, MOST_WEIGHT + 1):
            raise UsageError(
                f"{file}: the weight of {name} must be a whole number from 1 to {MOST_WEIGHT:,}.",
            )
        marked[role.name][name], weights[name] = value, role.weight
    transactions = marked[loading.TRANSACTION]
    if not transactions:
        raise UsageError(
            f"{file} declares no transaction. Put @transaction before a function (from sqlstress import "
            "transaction)."
        )
    if len(transactions) > MOST_KINDS:
        raise UsageError(f"{file} declares more than {MOST_KINDS} transactions. Remove some.")
    for what in _SINGLE:
        if len(marked[what]) > 1:
            first, second, *_ = marked[what]
            raise UsageError(f"{file} declares two functions with @{what}: {first} and {second}. Keep one.")
    return Declared(
        {what: function for what in _SINGLE for function in marked[what].values()},
        transactions,
        {name: weights[name] for name in transactions},
        {name: bool(at_end(function)) for name, function in marked[loading.CHECK].items()},
    )


def called(function: Function, given: Any) -> Callable[[], Any]:
    """Return a call of a function: with what is given, if it needs anything."""
    try:
        signature(function).bind()
    except (TypeError, ValueError):
        return lambda: function(given)
    return function


# In processes that do nothing else: it is looked at, and sets a database up.


class Seen(NamedTuple):
    """What a file declares, as it can be sent."""

    weights: dict[str, int]
    checks: dict[str, bool]


def look(file: str, driver: str, *, allow_others: bool) -> Seen:
    """Return what a file declares. Raises UsageError for one that can't be used, whatever it does.

    It is told a database that is not there, of the kind that the driver is for.
    """
    with tempfile.TemporaryDirectory(prefix="sqlstress-", ignore_cleanup_errors=True) as folder:
        overdue = UsageError(f"{file} takes longer than {IMPORT_S:g} s to import{_WAITS}")
        limited = loading.limited(lambda: None, IMPORT_S, overdue)
        try:
            directions = target_of(driver).stand_in(Path(folder))
            return call_apart(limited, look_apart, file, directions, allow_others)
        except Died as error:
            raise UsageError(f"importing {file} ended the process: {error}") from error


def look_apart(file: str, directions: Directions, allow_others: bool) -> Seen:
    """Do so in this process."""
    files = prepare(directions, "", file, allow_others=allow_others)
    found = declared(file)
    files.check()
    return Seen(found.weights, found.checks)


def settled(place: SqlPlace, roles: Collection[str], pulse: Pulse) -> None:
    """See that setup has made something, and leave it as workers are to find it. Raises UsageError."""
    if loading.SETUP in roles and not place.is_filled():
        raise UsageError(
            f"{place.case.spec.file}: setup left the database empty. Open the path that setup gets, which is "
            f"also in {loading.DATABASE}."
        )
    place.settle(pulse)


def call_once(what: str, place: SqlPlace, seed: str, pulse: Pulse) -> set[str]:
    """Let the file of a case set its database up, or connect; return the roles it has. Raises UsageError.

    What connecting sets is then no stranger's work later. It is done as in a worker's process, which has had
    no setup: a mapper refuses to be bound twice.
    """
    file = place.case.spec.file
    overdue = UsageError(f"the {what} of {file} takes longer than {SETUP_S:g} s{_WAITS}")
    limited = loading.limited(pulse, SETUP_S, overdue)
    try:
        return call_apart(limited, call_role, what, place.case.spec, place.directions(), seed, place.where)
    except Died as error:
        raise UsageError(f"{file}: {what} ended the process: {error}") from error


def call_role(what: str, spec: App, directions: Directions, seed: str, where: Path) -> set[str]:
    """Call the setup of a file, or its connect, in this process."""
    file = spec.file
    files = prepare(directions, spec.data.database, seed, allow_others=spec.allow_other_files)
    found = declared(file)
    try:
        if what == loading.CONNECT:
            given = found.connected(directions.address)
            if finish := found.single.get(loading.FINISH):
                called(finish, given)()
        elif setup := found.single.get(what):
            book = notes.take(where, 0, 1)
            called(setup, directions.address)()
            book.check()
        files.check()
    except (Exception, SystemExit) as error:
        raise UsageError(f"{file}: {what} failed: {problem_of(error, directions)}.") from error
    return set(found.single)


def problem_of(error: BaseException, directions: Directions) -> str:
    """Return why a function of the file failed, without what may not be shown."""
    text = directions.hidden(plainly(error))
    return text if isinstance(error, OtherFile) else text[:300]


def prepare(directions: Directions, original: str, seed: str, *, allow_others: bool) -> OwnFiles:
    """Make this process one in which the file finds its database, and opens no other.

    Return what refuses others; nobody may connect to the original in any case.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_begin_fork)
    loading.prepare_process(directions, seed)
    return own_files(directions, original, allow_others=allow_others)


# What it starts and does not end: threads that keep a process, which nobody should wait for.


def lasting() -> list[str]:
    """Return the names of the threads that keep this process from ending, after they have had time to end.

    Where there are some, this process ends with its main thread all the same.
    """
    until = time.monotonic() + ENDING_S
    for thread in _keeping():
        thread.join(max(0.0, until - time.monotonic()))
    names = sorted(thread.name for thread in _keeping())
    if names:
        threading.Thread(target=_leave_without_them, daemon=True).start()
    return names


def _keeping() -> list[threading.Thread]:
    # Those of a pool are told to end when the process does, which is not yet.
    of_pools = getattr(sys.modules.get("concurrent.futures.thread"), "_threads_queues", ())
    ours = (threading.current_thread(), threading.main_thread())
    return [
        one for one in threading.enumerate() if not one.daemon and one not in ours and one not in of_pools
    ]


def _leave_without_them() -> None:
    threading.main_thread().join()
    os._exit(0)


# And processes that it forks: they must neither come back into our loop nor outlive us.


_forked: list[bool] = []
"""Not empty in a process that was forked from one of ours."""


def _begin_fork() -> None:
    _forked.append(True)
    # The thread that waits for the parent's end has stayed behind in the process that forked.
    threading.Thread(target=end_with_parent, daemon=True).start()


def leave_if_forked() -> None:
    """End a fork that has come back from the user's code: our pipes and its connections are not its own."""
    if _forked:
        os._exit(0)
