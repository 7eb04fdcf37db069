"""State of the user's threads (running, sleeping or waiting), and a callback before a thread starts.

A thread waits for other threads while it is in a function of the standard library such as `Thread.join`.
"""

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
"""Modules of the standard library whose functions wait for other threads.

A thread that waits for a database lock is in no function of these modules, so it counts as running.
"""
STARTING_FUNCTIONS = {"start", "submit"}
"""Functions in the modules _WAITING that start work in another thread, but do not wait for the work."""
OUR_CODE = str(Path(__file__).parents[1]) + os.sep
"""Folder of sqlstress, as the beginning of file names."""


def other_threads_running(threads: Container[int] | None = None) -> bool:
    """Return whether another thread is running: it neither sleeps nor waits for other threads.

    If `threads` is given, only threads with these ids count. Threads of sqlstress do not count.
    """
    return any(
        not (waits_for_threads(frame) or _sleeps(frame))
        for thread, frame in _other_frames()
        if threads is None or thread in threads
    )


def any_continues(threads: Container[int]) -> bool:
    """Return whether a thread with one of these ids runs or sleeps, and does not wait for other threads."""
    return any(not waits_for_threads(frame) for thread, frame in _other_frames() if thread in threads)


def other_threads() -> set[int]:
    """Return the ids of all threads except for this thread and those of sqlstress."""
    return {thread for thread, _ in _other_frames()}


def has_other_threads() -> bool:
    """Return whether there is another thread that sqlstress did not start."""
    return any(True for _ in _other_frames())


def _other_frames() -> Iterator[tuple[int, FrameType]]:
    frames = sys._current_frames()
    frames.pop(threading.get_ident())
    return ((thread, frame) for thread, frame in frames.items() if not _is_ours(frame))


def _sleeps(frame: FrameType) -> bool:
    return frame.f_lineno in _lines_that_sleep(frame.f_code)


@cache
def _lines_that_sleep(code: CodeType) -> set[int | None]:
    lines = (
        instruction.positions.lineno
        for instruction in dis.get_instructions(code)
        if instruction.argval == "sleep" and instruction.positions
    )
    return {*lines}


def _is_ours(frame: FrameType) -> bool:
    entry = frame
    # Each f_back is read only once, because the other thread keeps running.
    while caller := frame.f_back:
        is_between = frame.f_code.co_filename == threading.__file__ or frame.f_code in WRAPPER_CODES
        entry = entry if is_between else frame
        frame = caller
    return entry.f_code.co_filename.startswith(OUR_CODE)


def on_thread_start(notify: Callable[[bool], None]) -> None:
    """Call `notify` before each start of a thread, and before an executor gets a task.

    The argument of `notify` is whether two threads may run at the same time. Methods of the standard library
    are replaced, because Python 3.11 has no audit event for thread starts.
    """
    _patch_thread_start(notify)
    _patch_executors(notify)


@cache
def _patch_thread_start(notify: Callable[[bool], None]) -> None:
    start = threading.Thread.start

    def report_and_start(thread: threading.Thread) -> None:
        _patch_executors(notify)
        # An executor or event loop waits for the thread that it starts, but any other code may go on.
        notify(not _is_waiting_code(sys._getframe(1)) or other_threads_running())
        start(thread)

    WRAPPER_CODES.add(report_and_start.__code__)
    threading.Thread.start = update_wrapper(report_and_start, start)  # type: ignore[assignment, method-assign]


def _patch_executors(notify: Callable[[bool], None]) -> None:
    if module := sys.modules.get("concurrent.futures.thread"):
        _patch_submit(notify, module.ThreadPoolExecutor)


@cache
def _patch_submit(notify: Callable[[bool], None], kind: Any) -> None:
    submit, futures = kind.submit, WeakSet[Any]()

    def report_and_submit(executor: Any, /, *task: Any, **options: Any) -> Any:
        notify(not all(future.done() for future in [*futures]) or other_threads_running())
        future = submit(executor, *task, **options)
        futures.add(future)
        return future

    WRAPPER_CODES.add(report_and_submit.__code__)
    kind.submit = update_wrapper(report_and_submit, submit)


WRAPPER_CODES: set[CodeType] = set()
"""Code of our wrappers of methods that start threads, which a search of a call stack skips."""


def _is_waiting_code(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_WAITING)


def waits_for_threads(frame: FrameType | None) -> bool:
    """Return whether a thread with this innermost frame seems to wait for other threads."""
    names = waiting_functions(frame)
    # A thread in `submit` starts work without a wait. If `run_in_executor` called `submit`, the thread runs
    # an event loop, whose task waits for the work.
    starts_work = "run_in_executor" not in names and bool(STARTING_FUNCTIONS & {*names})
    return bool(names) and not starts_work


def waiting_functions(frame: FrameType | None) -> list[str]:
    """Return the names of the functions in which a thread waits for other threads, innermost first.

    `frame` is the thread's innermost frame. STARTING_FUNCTIONS, which do not wait, are included.
    """
    names = []
    while frame and (_is_waiting_code(frame) or frame.f_code in WRAPPER_CODES):
        if frame.f_code not in WRAPPER_CODES:
            names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names
