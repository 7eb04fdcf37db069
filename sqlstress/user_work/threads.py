"""Which threads of the user's process are at work, as far as their frames tell, and when more will be."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Container, Iterator
from functools import cache, update_wrapper
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from weakref import WeakSet

_WAITING = tuple(
    str(Path(sysconfig.get_paths()["stdlib"], name))
    for name in ("asyncio", "concurrent", "selectors.py", "threading.py")
)
"""What a thread runs that waits for others. Who waits for a lock runs none of it."""
BEGINS = {"start", "submit"}
"""Functions there that let another thread work, and do not wait for it."""
_OURS = str(Path(__file__).parents[1]) + os.sep


def works_beside(threads: Container[int] | None = None) -> bool:
    """Return whether another thread is at work now: it neither sleeps nor waits for others.

    If `threads` are given, only these count.
    """
    return any(
        not (_waits(frame) or _sleeps(frame))
        for thread, frame in _others()
        if threads is None or thread in threads
    )


def goes_on(threads: Container[int]) -> bool:
    """Return whether one of these threads works or sleeps: it goes on without the other threads."""
    return any(not _waits(frame) for thread, frame in _others() if thread in threads)


def other_threads() -> set[int]:
    """Return the other threads, except for ours."""
    return {thread for thread, _ in _others()}


def has_others() -> bool:
    """Return whether there is another thread."""
    return any(True for _ in _others())


def _others() -> Iterator[tuple[int, FrameType]]:
    """Yield other threads and where they are, but for ours."""
    frames = sys._current_frames()
    frames.pop(threading.get_ident())
    return ((thread, frame) for thread, frame in frames.items() if not _is_ours(frame))


def _sleeps(frame: FrameType) -> bool:
    return frame.f_lineno in _lines_that_sleep(frame.f_code)


@cache
def _lines_that_sleep(code: CodeType) -> set[int | None]:
    found = (
        one.positions.lineno for one in dis.get_instructions(code) if one.argval == "sleep" and one.positions
    )
    return {*found}


def _is_ours(frame: FrameType) -> bool:
    """Return whether what a thread was begun with is a function of ours."""
    begun = frame
    # Once, since the other thread goes on meanwhile.
    while caller := frame.f_back:
        is_between = frame.f_code.co_filename == threading.__file__ or frame.f_code in PASSED
        begun = begun if is_between else frame
        frame = caller
    return begun.f_code.co_filename.startswith(_OURS)


def tell_of_threads(tell: Callable[[bool], None]) -> None:
    """Tell from now on of a thread before it begins to work, and whether another may be at work beside it.

    Python 3.11 has no audit event for it.
    """
    _tell_of_new_threads(tell)
    _tell_of_executors(tell)


@cache
def _tell_of_new_threads(tell: Callable[[bool], None]) -> None:
    start = threading.Thread.start

    def begin(thread: threading.Thread) -> None:
        _tell_of_executors(tell)
        # Executors begin one to wait for it; who does so directly may work on meanwhile.
        tell(not _is_among_waiting(sys._getframe(1)) or works_beside())
        start(thread)

    PASSED.add(begin.__code__)
    threading.Thread.start = update_wrapper(begin, start)  # type: ignore[assignment, method-assign]


def _tell_of_executors(tell: Callable[[bool], None]) -> None:
    """Tell of what is given to an executor's threads, which wait for it, once there is an executor."""
    if module := sys.modules.get("concurrent.futures.thread"):
        _tell_of_tasks(tell, module.ThreadPoolExecutor)


@cache
def _tell_of_tasks(tell: Callable[[bool], None], kind: Any) -> None:
    submit, given = kind.submit, WeakSet[Any]()

    def give(executor: Any, /, *task: Any, **options: Any) -> Any:
        tell(not all(future.done() for future in [*given]) or works_beside())
        future = submit(executor, *task, **options)
        given.add(future)
        return future

    PASSED.add(give.__code__)
    kind.submit = update_wrapper(give, submit)


PASSED: set[CodeType] = set()
"""What of ours stands between those who begin threads, and the modules that do it for them."""


def _is_among_waiting(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_WAITING)


def _waits(frame: FrameType | None) -> bool:
    """Return whether a thread that is there waits for others, as far as its frame tells."""
    called = under_way(frame)
    # An event loop waits for what it has an executor do, unless that has several threads at work.
    begins = "run_in_executor" not in called and bool(BEGINS & {*called})
    return bool(called) and not begins


def under_way(frame: FrameType | None) -> list[str]:
    """Return which functions of what waits for threads are under way in a frame, the innermost first."""
    found = []
    while frame and (_is_among_waiting(frame) or frame.f_code in PASSED):
        if frame.f_code not in PASSED:
            found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found
