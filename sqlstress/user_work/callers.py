"""Origin of an SQL statement: line, thread, and use of its row count, such as `cursor.rowcount`."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from sqlstress.user_work.guards import StackEntry
from sqlstress.user_work.threads import STARTING_FUNCTIONS, under_way

_COUNTS = {"rowcount", "changes", "total_changes"}
_OWN_FOLDER = str(Path(__file__).parent)


class CallSite(NamedTuple):
    """Position in the user's code that runs a statement."""

    at: str
    """File and line, such as "bank.py:27"; empty if not known."""
    number: int = 0
    """Number of the call in the bytecode, different for each call in a line; 0 if not known."""
    counted: bool = False
    """Whether the code seems to read the row count: it uses the result, or names rowcount or changes."""
    insists: bool = False
    """Whether the user's code calls a library function that raises an error if the row count is wrong."""
    unseen: bool = False
    """Whether certainly no function on the call stack, of a library or of the user, reads the row count."""
    stack: tuple[StackEntry, ...] = ()
    """Running functions of the user, outermost first."""


def runner_id() -> int:
    """Return the id of the current asyncio task if there is one, else of the thread."""
    task = _task()
    return id(task) if task else threading.get_ident()


def _task() -> Any:
    if "asyncio" not in sys.modules:  # without it there are no tasks, and its import is slow
        return None
    import asyncio

    with suppress(RuntimeError):
        return asyncio.current_task()
    return None


_PATIENCE_S, _LOOK_S = 0.05, 0.0005


def awaiting_task() -> Any:
    """Return the asyncio task that waits for this thread, as for a thread of aiosqlite; None if unknown.

    The thread has a future, for which the task waits. The task may still be about to wait, so look again for
    _PATIENCE_S.
    """
    if "asyncio" not in sys.modules or threading.current_thread() is threading.main_thread():
        return None
    import asyncio

    futures: list[asyncio.Future[Any]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame:
        futures += [value for value in frame.f_locals.values() if isinstance(value, asyncio.Future)]
        frame = frame.f_back
    deadline = time.monotonic() + _PATIENCE_S
    while unfinished := [future for future in futures if not future.done()]:
        for future in unfinished:
            for task in asyncio.all_tasks(future.get_loop()):
                if getattr(task, "_fut_waiter", None) is future:
                    return task
        if time.monotonic() > deadline:
            break
        time.sleep(_LOOK_S)
    return None


def is_background_thread() -> bool:
    """Return whether the main thread, which calls transactions, continues without waiting for this one."""
    if threading.current_thread() is threading.main_thread():
        return False
    names = under_way(_main_frame())
    return not names or names[-1] in STARTING_FUNCTIONS


def _main_frame() -> FrameType | None:
    return sys._current_frames().get(threading.main_thread().ident or 0)


def is_abandoned(thread: int) -> bool:
    """Return whether a thread runs statements for tasks of an event loop that has stopped without tasks.

    The thread still has the last future. No task is left that could end an open transaction.
    """
    if "asyncio" not in sys.modules:
        return False
    import asyncio

    frame, futures = sys._current_frames().get(thread), list[asyncio.Future[Any]]()
    while frame:
        futures += [value for value in frame.f_locals.values() if isinstance(value, asyncio.Future)]
        frame = frame.f_back
    loops = {future.get_loop() for future in futures}
    return bool(futures) and not any(loop.is_running() or asyncio.all_tasks(loop) for loop in loops)


class UserFrames:
    """Finder of the frames of the user's code: their files are below a folder, but not in a library."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.absolute()) + os.sep
        paths = sysconfig.get_paths()
        self._libraries = tuple(paths[name] + os.sep for name in ("stdlib", "purelib", "platlib"))

    def call_site(self) -> CallSite:
        """Return the position in the user's code that runs the current statement; `at` is "" if unknown."""
        frame, library_frames = self._innermost(sys._getframe(1))
        stack = self._stack(frame)
        if threading.current_thread() is not threading.main_thread():
            waiting = self._waiting_stack()
            stack = waiting + stack if waiting or frame else ()
            # A thread that a library has started may have no frame of the user's code.
            frame = frame or self._waiting_frame()
        if not frame:
            return CallSite("")
        at = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        is_used = bool(library_frames) and _uses_result(frame)
        counted = is_used or _reads_count(frame.f_code)
        insists = is_used and any(map(_raises_by_count, library_frames))
        number = hash((frame.f_code, frame.f_lasti))
        return CallSite(at, number, counted, insists, not _callers_may_count(), stack)

    def line(self, frame: FrameType | None) -> tuple[str, int] | None:
        """Return the innermost file and line of the user's code that led to a frame; None if unknown."""
        user, _ = self._innermost(frame)
        return (user.f_code.co_filename, user.f_lineno) if user else None

    def awaiting_line(self) -> tuple[str, int] | None:
        """Return the file and line of the coroutine that waits for this thread; None if unknown."""
        task = awaiting_task()
        frames = self._coroutine_frames(task.get_coro()) if task else []
        return (frames[-1].f_code.co_filename, frames[-1].f_lineno) if frames else None

    def text(self, line: tuple[str, int]) -> str:
        """Return a line as text, such as "bank.py:27"; empty if it is not in the user's code."""
        file, number = line
        return f"{Path(file).name}:{number}" if self._is_users(file) else ""

    def active_calls(self, frame: FrameType | None) -> dict[tuple[int, CodeType], int]:
        """Return the active calls of the user's functions that lead to a frame, innermost first.

        A key has the id of the call's frame, and its code. The value is the number of the current line.
        """
        calls = {}
        while frame:
            file = frame.f_code.co_filename
            if self._is_users(file):
                calls[id(frame), frame.f_code] = frame.f_lineno or 0
            frame = frame.f_back
        return calls

    def _stack(self, frame: FrameType | None) -> tuple[StackEntry, ...]:
        """Return the running functions of the user that lead to a frame, outermost first."""
        stack = []
        while frame:
            if self._is_users(frame.f_code.co_filename):
                stack.append(_stack_entry(frame))
            frame = frame.f_back
        return tuple(reversed(stack))

    def _innermost(self, frame: FrameType | None) -> tuple[FrameType | None, list[FrameType]]:
        """Return the innermost frame of the user's code, if any, and the library frames that it called."""
        library_frames = []
        while frame and not self._is_users(frame.f_code.co_filename):
            if not frame.f_code.co_filename.startswith(_OWN_FOLDER):
                library_frames.append(frame)
            frame = frame.f_back
        return frame, library_frames

    def _waiting_frame(self) -> FrameType | None:
        """Return the user's frame of the only waiting coroutine, else of the main thread; None if unknown."""
        coroutines = self._waiting_stacks()
        if len(coroutines) == 1:
            return coroutines[0][-1]
        return self._innermost(_main_frame())[0]

    def _waiting_stack(self) -> tuple[StackEntry, ...]:
        """Return the stack of the main thread's only waiting coroutine; empty if several coroutines wait."""
        coroutines = self._waiting_stacks()
        if len(coroutines) != 1:
            return ()
        return (*self._stack(_main_frame()), *map(_stack_entry, coroutines[0]))

    def _waiting_stacks(self) -> list[list[FrameType]]:
        """Return the user's frames of each waiting coroutine in the main thread's event loop.

        Only those of the coroutine that waits for this thread, if it is known.
        Empty if the main thread runs no event loop.
        """
        import asyncio

        if task := awaiting_task():
            return [frames] if (frames := self._coroutine_frames(task.get_coro())) else []
        frame = _main_frame()
        while frame and not isinstance(frame.f_locals.get("self"), asyncio.AbstractEventLoop):
            frame = frame.f_back
        if not frame:
            return []
        tasks = asyncio.all_tasks(frame.f_locals["self"])
        return [frames for task in tasks if (frames := self._coroutine_frames(task.get_coro()))]

    def _coroutine_frames(self, coroutine: Any) -> list[FrameType]:
        """Return the user's frames in which a coroutine waits, outermost first."""
        frames: list[FrameType] = []
        while frame := getattr(coroutine, "cr_frame", None):
            if self._is_users(frame.f_code.co_filename):
                frames.append(frame)
            coroutine = coroutine.cr_await
        return frames

    def _is_users(self, file: str) -> bool:
        return file.startswith(self._folder) and not file.startswith(self._libraries)


def _stack_entry(frame: FrameType) -> StackEntry:
    return StackEntry(id(frame), frame.f_code.co_filename, frame.f_lineno or 0, frame.f_lasti)


def _callers_may_count() -> bool:
    """Return whether a function on the call stack, or a function that it mentions, may read a row count.

    True in an asyncio task or outside of the main thread: the functions that wait are unknown.
    """
    if threading.current_thread() is not threading.main_thread() or _task():
        return True
    frame: FrameType | None = sys._getframe(1)
    while frame and not _function_counts(frame):
        frame = frame.f_back
    return frame is not None


_counting: dict[tuple[CodeType, int], bool] = {}
"""Cache of `_function_counts`, by code and id of the module's namespace.

Each statement needs the result, and the profile function of traced threads slows down the search.
"""


def _function_counts(frame: FrameType) -> bool:
    """Return whether a function, or a function of its module that it mentions, reads a row count."""
    key = frame.f_code, id(frame.f_globals)
    if key not in _counting:
        _counting[key] = any(map(_reads_count, _codes(frame)))
    return _counting[key]


def _codes(frame: FrameType) -> list[CodeType]:
    """Return the code of a function, and of the functions of its module that it mentions."""
    codes = (getattr(frame.f_globals.get(name), "__code__", None) for name in frame.f_code.co_names)
    return [frame.f_code, *(code for code in codes if isinstance(code, CodeType))]


@cache
def _reads_count(code: CodeType) -> bool:
    texts = " ".join(text for text in code.co_consts if isinstance(text, str)).lower()
    return bool(_COUNTS & {*code.co_names}) or "changes()" in texts


def _raises_by_count(frame: FrameType) -> bool:
    """Return whether a function raises an error because of a row count, at or after its current line."""
    return any(line >= frame.f_lineno for line in _lines_that_raise(frame.f_code))


@cache
def _lines_that_raise(code: CodeType) -> list[int]:
    """Return the lines of all `if cursor.rowcount …: raise …` in a function; empty if it has no source."""
    if not _COUNTS & {*code.co_names}:
        return []
    import ast  # Here, because every worker of `sqlstress app` imports this module, and few of them trace.
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
        and any(isinstance(part, ast.Attribute) and part.attr in _COUNTS for part in ast.walk(node.test))
        and any(isinstance(part, ast.Raise) for part in node.body)
    ]


def _uses_result(frame: FrameType) -> bool:
    """Return whether the frame's next instruction neither drops nor returns the result of its call."""
    after = (
        instruction
        for instruction in dis.get_instructions(frame.f_code)
        if instruction.offset > frame.f_lasti
    )
    following = next(after, None)
    return following is not None and following.opname not in ("POP_TOP", "RETURN_VALUE")
