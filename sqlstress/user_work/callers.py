"""Who runs a statement: which line of the user's code, which thread, and what they do with its row count."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, update_wrapper
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple
from weakref import WeakSet

_COUNTS = {"rowcount", "changes", "total_changes"}

_WAITING = tuple(
    str(Path(sysconfig.get_paths()["stdlib"], name))
    for name in ("asyncio", "concurrent", "selectors.py", "threading.py")
)
"""What a thread runs that waits for others. Who waits for a lock runs none of it."""
_OURS = str(Path(__file__).parents[1]) + os.sep
_BEGINS = {"start", "submit"}
"""Functions there that let another thread work, and do not wait for it."""


class Spot(NamedTuple):
    """Where the user's code runs a statement."""

    at: str
    """"bank.py:27"; empty: not known."""
    number: int = 0
    """Tells calls in one line from each other."""
    counted: bool = False
    """Whether it looks at the row count, as far as that can be seen."""
    insists: bool = False
    """Whether it takes the result of a library's call, which raises an error by the row count instead."""
    unseen: bool = False
    """Whether no function that has called it looks at the row count, a library's or the user's."""


def who() -> int:
    """Return who runs: a task of asyncio where there is one, else the thread."""
    task = _task()
    return id(task) if task else threading.get_ident()


def _task() -> Any:
    import asyncio  # here, since every process of an application imports this, and few trace anything

    with suppress(RuntimeError):
        return asyncio.current_task()
    return None


def is_beside() -> bool:
    """Return whether this is a thread that the main one, which makes the calls, does not wait for."""
    main = threading.main_thread()
    if threading.current_thread() is main:
        return False
    called = _called(sys._current_frames().get(main.ident or 0))
    return not called or called[-1] in _BEGINS


def works_beside() -> bool:
    """Return whether another thread is at work now."""
    return any(not (_waits(frame) or _sleeps(frame)) for frame in _others())


def has_others() -> bool:
    """Return whether there is another thread."""
    return any(True for _ in _others())


def _others() -> Iterator[FrameType]:
    """Yield where other threads are, but for ours."""
    frames = sys._current_frames()
    frames.pop(threading.get_ident())
    return (frame for frame in frames.values() if not _is_ours(frame))


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
    while frame.f_back:
        begun = begun if frame.f_code.co_filename == threading.__file__ else frame
        frame = frame.f_back
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

    _passed.add(begin.__code__)
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

    _passed.add(give.__code__)
    kind.submit = update_wrapper(give, submit)


_passed: set[CodeType] = set()
"""What of ours stands between those who begin threads, and the modules that do it for them."""


def _is_among_waiting(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_WAITING) or frame.f_code in _passed


def _waits(frame: FrameType | None) -> bool:
    """Return whether a thread that is there waits for others, as far as its frame tells."""
    called = _called(frame)
    # An event loop waits for what it has an executor do, unless that has several threads at work.
    begins = "run_in_executor" not in called and bool(_BEGINS & {*called})
    return bool(called) and not begins


def _called(frame: FrameType | None) -> list[str]:
    """Return which functions of what waits for threads are under way in a frame, the innermost first."""
    found = []
    while frame and _is_among_waiting(frame):
        found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found


class Frames:
    """The frames of the user's code."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.absolute()) + os.sep
        paths = sysconfig.get_paths()
        self._libraries = tuple(paths[name] + os.sep for name in ("stdlib", "purelib", "platlib"))

    def where(self) -> Spot:
        """Return where the user's code runs now: its innermost call."""
        frame, passed = self._users(sys._getframe(1))
        if not frame and threading.current_thread() is not threading.main_thread():
            frame = self._waiting()  # for a library's thread
        if not frame:
            return Spot("")
        at = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        is_used = bool(passed) and _uses_result(frame)
        counted = is_used or _looks_at_count(frame.f_code)
        insists = is_used and any(map(_raises_by_count, passed))
        return Spot(at, hash((frame.f_code, frame.f_lasti)), counted, insists, not _is_seen())

    def _users(self, frame: FrameType | None) -> tuple[FrameType | None, list[FrameType]]:
        """Return the innermost frame of the user's, and the frames of libraries within it."""
        passed = []
        while frame and not self._is_users(frame.f_code.co_filename):
            if not frame.f_code.co_filename.startswith(str(Path(__file__).parent)):
                passed.append(frame)
            frame = frame.f_back
        return frame, passed

    def _waiting(self) -> FrameType | None:
        """Return the frame of the main thread that waits for this one: of a coroutine, if one alone does."""
        import asyncio

        main = frame = sys._current_frames().get(threading.main_thread().ident or 0)
        while frame and not isinstance(frame.f_locals.get("self"), asyncio.AbstractEventLoop):
            frame = frame.f_back
        if frame:
            tasks = asyncio.all_tasks(frame.f_locals["self"])
            waiting = [found for task in tasks if (found := self._suspended(task.get_coro()))]
            if len(waiting) == 1:
                return waiting[0]
        return self._users(main)[0]

    def _suspended(self, coroutine: Any) -> FrameType | None:
        """Return where a coroutine of the user's waits."""
        found: FrameType | None = None
        while frame := getattr(coroutine, "cr_frame", None):
            found = frame if self._is_users(frame.f_code.co_filename) else found
            coroutine = coroutine.cr_await
        return found

    def _is_users(self, file: str) -> bool:
        return file.startswith(self._folder) and not file.startswith(self._libraries)


def _is_seen() -> bool:
    """Return whether a function that has called this one, or one that it calls, looks at a row count.

    Who waits for another thread or for a task is not known, and may.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame and not any(map(_looks_at_count, _codes(frame))):
        frame = frame.f_back
    waits = threading.current_thread() is not threading.main_thread() or _task() is not None
    return frame is not None or waits


def _codes(frame: FrameType) -> list[CodeType]:
    """Return the code of a function, and of the functions of its module that it names."""
    named = (getattr(frame.f_globals.get(name), "__code__", None) for name in frame.f_code.co_names)
    return [frame.f_code, *(code for code in named if isinstance(code, CodeType))]


@cache
def _looks_at_count(code: CodeType) -> bool:
    texts = " ".join(one for one in code.co_consts if isinstance(one, str)).lower()
    return bool(_COUNTS & {*code.co_names}) or "changes()" in texts


def _raises_by_count(frame: FrameType) -> bool:
    """Return whether a function raises an error by a row count, after the line where it is."""
    return any(line >= frame.f_lineno for line in _lines_that_raise(frame.f_code))


@cache
def _lines_that_raise(code: CodeType) -> list[int]:
    """Return the lines of `if cursor.rowcount …: raise …` in a function."""
    if not _COUNTS & {*code.co_names}:
        return []
    import ast  # here, as asyncio above
    import inspect
    import textwrap

    try:
        source = textwrap.dedent(inspect.getsource(code))
    except (OSError, TypeError):
        return []
    return [
        code.co_firstlineno + node.lineno - 1
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.If)
        and any(isinstance(one, ast.Attribute) and one.attr in _COUNTS for one in ast.walk(node.test))
        and any(isinstance(one, ast.Raise) for one in node.body)
    ]


def _uses_result(frame: FrameType) -> bool:
    """Return whether the result of the call that runs in a frame is taken: it may be a row count."""
    after = (one for one in dis.get_instructions(frame.f_code) if one.offset > frame.f_lasti)
    following = next(after, None)
    return following is not None and following.opname not in ("POP_TOP", "RETURN_VALUE")
