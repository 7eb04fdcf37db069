"""The databases under test, such as SQLite and PostgreSQL, with one package each.
A target is a kind of database, such as SQLite. A case is one combination of options, such as 4 workers and
20 files. A place is one process's access to the data of a case. A `pulse` is a function to call often, which
raises Interrupted after a stop signal, such as Ctrl-C.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar, cast

from sqlstress.errors import EnvironmentFailure
from sqlstress.target import DriverInfo, driver_info, drivers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Place, Target
    from sqlstress.targets.views import Interruptible

T = TypeVar("T")
_TICK_S = 0.05


def target_of(driver: str) -> Target:
    return _import_target(driver_info(driver))


def _import_target(info: DriverInfo) -> Target:
    if not info.package:
        return cast("Target", import_module(f"{__name__}.{info.target}").TARGET)
    try:
        return cast("Target", import_module(info.package).TARGET)
    except Exception as error:  # An external target can raise any exception.
        raise EnvironmentFailure(f"cannot import {info.package}: {error}") from error


def open_place(case: Case, where: Path) -> Place:
    """Return an object with which this process uses the data of a case. It opens connections later.

    `where` is the folder for the case's files. On a server, the schema's name derives from this path.
    """
    return target_of(case.driver).open_place(case, where)


@contextmanager
def run_services(cases: Sequence[Case], folder: Path) -> Iterator[None]:
    """Run the services that the cases need, such as a PostgreSQL server in `folder`, during the block."""
    by_target: dict[str, list[Case]] = {}
    for case in cases:
        by_target.setdefault(driver_info(case.driver).target, []).append(case)
    with ExitStack() as services:
        for target_cases in by_target.values():
            services.enter_context(target_of(target_cases[0].driver).serving(target_cases, folder))
        yield


def file_patterns() -> list[str]:
    """Return regular expressions for the names of database files that sqlstress creates."""
    patterns = []
    for info in {info.target: info for info in drivers().values()}.values():
        with suppress(EnvironmentFailure):  # A target that cannot be imported has created no files.
            patterns.append(_import_target(info).FILES)
    return [pattern for pattern in patterns if pattern]


def run_watched(connection: Interruptible, task: Callable[[], T], pulse: Pulse) -> T:
    """Call `task` and return its result. If `pulse` raises, interrupt the statement of `connection`.

    `task` is a function that runs slow statements on `connection`.
    """
    with watched(connection, task, pulse) as get_result:
        return get_result()


@contextmanager
def watched(connection: Interruptible, task: Callable[[], T], pulse: Pulse) -> Iterator[Callable[[], T]]:
    """Call `task`, a slow use of `connection`, in a thread. Yield a function that returns its result.

    The yielded function waits for the result, and calls `pulse` often. The main thread stays free to handle
    signals. The end of the block interrupts an unfinished task. Raises EnvironmentFailure if no thread can
    start.
    """
    from concurrent.futures import ThreadPoolExecutor, wait

    with ThreadPoolExecutor(1) as executor:
        try:
            future = executor.submit(task)
        except RuntimeError as error:
            raise EnvironmentFailure(f"{error}. Close other programs.") from error

        def get_result() -> T:
            while wait([future], _TICK_S).not_done:
                pulse()
            return future.result()

        try:
            yield get_result
        finally:
            while wait([future], _TICK_S).not_done:
                connection.interrupt()
