"""What is stressed, a package each: a target has drivers, and a place for the data of a case."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar, cast

from sqlstress.errors import EnvironmentFailure
from sqlstress.target import Known, drivers, known_as

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
    return _imported(known_as(driver))


def _imported(known: Known) -> Target:
    if not known.package:
        return cast("Target", import_module(f"{__name__}.{known.target}").TARGET)
    try:
        return cast("Target", import_module(known.package).TARGET)
    except Exception as error:  # it is somebody else's code
        raise EnvironmentFailure(f"cannot import {known.package}: {error}") from error


def open_place(case: Case, where: Path) -> Place:
    """Return where the data of a case lies; nothing is touched there yet.

    `where` is a folder of ours. A target that keeps no files in it may call its data by the folder's name.
    """
    return target_of(case.driver).open_place(case, where)


@contextmanager
def serving(cases: Sequence[Case], folder: Path) -> Iterator[None]:
    """Have what cases need beside their workers, such as a server of ours, while the block lasts."""
    by_target: dict[str, list[Case]] = {}
    for case in cases:
        by_target.setdefault(known_as(case.driver).target, []).append(case)
    with ExitStack() as served:
        for of_target in by_target.values():
            served.enter_context(target_of(of_target[0].driver).serving(of_target, folder))
        yield


def file_patterns() -> list[str]:
    """Return, as regular expressions, the names of the files that targets leave in a folder."""
    patterns = []
    for known in {known.target: known for known in drivers().values()}.values():
        with suppress(EnvironmentFailure):  # what can't be imported has left nothing
            patterns.append(_imported(known).FILES)
    return [pattern for pattern in patterns if pattern]


def run_watched(connection: Interruptible, task: Callable[[], T], pulse: Pulse) -> T:
    """Return what a task returns that may take long in a database; it is interrupted when `pulse` raises."""
    with watched(connection, task, pulse) as answer:
        return answer()


@contextmanager
def watched(connection: Interruptible, task: Callable[[], T], pulse: Pulse) -> Iterator[Callable[[], T]]:
    """Begin such a task, and yield what waits for its answer; it is interrupted when the block ends before.

    It runs in a thread of its own: a signal is heard by the main thread only, and not inside a library.
    """
    from concurrent.futures import ThreadPoolExecutor, wait

    with ThreadPoolExecutor(1) as executor:
        try:
            begun = executor.submit(task)
        except RuntimeError as error:
            raise EnvironmentFailure(f"{error}. Close other programs.") from error

        def answer() -> T:
            while wait([begun], _TICK_S).not_done:
                pulse()
            return begun.result()

        try:
            yield answer
        finally:
            while wait([begun], _TICK_S).not_done:
                connection.interrupt()
