"""Origin of an SQL statement in the user's code: line, thread, and whether the code reads the row count.

The user's code is the code in a given folder, without installed libraries. The row count, such as
`cursor.rowcount`, is the number of rows that a write changed: code that does not read the count cannot notice
that an UPDATE changed no row. A statement may run in a thread of a library such as aiosqlite, while a
coroutine of the user's code waits for the result.
"""

from __future__ import annotations

import dis
import linecache
import os
import re
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from sqlstress.recording.threads import OUR_CODE, STARTING_FUNCTIONS, waiting_functions

_COUNTS = {"rowcount", "changes", "total_changes"}

_RECEIVER = re.compile(r"([\w.]+)\.execute\s*\(")
"""Pattern of a call such as `connection.execute(`, with a group for the object."""


class StackEntry(NamedTuple):
    """Function of the user that was running at an SQL statement, and its current position."""

    frame: int
    """Id of the function's frame; a later call may have the same id."""
    file: str
    line: int
    instruction: int
    """Offset of the current instruction in the bytecode."""


class CallSite(NamedTuple):
    """Position in the user's code from where a statement runs."""

    at: str
    """File and line, such as "bank.py:27"; empty if unknown."""
    number: int = 0
    """Hash of the position in the bytecode, because a line can contain several calls; 0 if unknown."""
    counted: bool = False
    """Whether the user's function may read the row count: by `rowcount`, `changes` or a call's result."""
    insists: bool = False
    """Whether a library on the call stack, such as an ORM, raises an error for a wrong row count."""
    unseen: bool = False
    """Whether it is certain that no function on the call stack reads the row count."""
    stack: tuple[StackEntry, ...] = ()
    """Functions of the user on the call stack, outermost first."""
    trusts_id: bool = False
    """Whether the user's function reads `lastrowid`, but not the row count."""


def runner_id() -> int:
    """Return the id of the current asyncio task, or of the thread if no task is running."""
    task = current_task()
    return id(task) if task else threading.get_ident()


def current_task() -> Any:
    """Return the asyncio task that this thread runs; None if there is none."""
    if "asyncio" not in sys.modules:  # Without asyncio there are no tasks. The import is slow.
        return None
    import asyncio

    with suppress(RuntimeError):
        return asyncio.current_task()
    return None


def has_other_tasks() -> bool:
    """Return whether this thread runs an asyncio task, and other tasks of its loop have not ended."""
    if current_task() is None:
        return False
    import asyncio

    return len(asyncio.all_tasks()) > 1


_MAX_LOOKS, _BACKGROUND_LOOKS, _LOOK_S = 200, 20, 0.0005


def awaiting_task() -> Any:
    """Return the asyncio task that waits for a result of this thread; None if unknown.

    For example, aiosqlite runs statements in a thread, which has the future that the task awaits. The task
    may begin to wait a little later, so the search is repeated.
    """
    if "asyncio" not in sys.modules or threading.current_thread() is threading.main_thread():
        return None
    import asyncio

    futures: list[asyncio.Future[Any]] = []
    executor_futures: list[Any] = []
    frame: FrameType | None = sys._getframe(1)
    while frame:
        values = [*frame.f_locals.values()]
        futures += [value for value in values if isinstance(value, asyncio.Future)]
        executor_futures += [value.future for value in values if type(value).__name__ == _WORK_ITEM]
        frame = frame.f_back
    for _ in range(_MAX_LOOKS):
        # `run_in_executor` may create the asyncio future only after this thread has begun. So if the main
        # thread is still in `run_in_executor` before the search, the search is repeated.
        is_submitting = bool(executor_futures) and _is_main_thread_in("run_in_executor")
        awaited = [*futures, *chain.from_iterable(map(_asyncio_futures, executor_futures))]
        unfinished = [future for future in awaited if not future.done()]
        for future in unfinished:
            for task in asyncio.all_tasks(future.get_loop()):
                if getattr(task, "_fut_waiter", None) is future:
                    return task
        if not (unfinished or is_submitting):
            break
        time.sleep(_LOOK_S)  # Meanwhile the main thread runs, also on a busy machine.
    return None


_WORK_ITEM = "_WorkItem"
"""Class in which concurrent.futures stores a function for a thread, and the future of its result."""


def _asyncio_futures(executor_future: Any) -> Iterator[Any]:
    # A future of concurrent.futures passes its result on to an asyncio future by a callback. The asyncio
    # future is in the closure of this callback.
    for callback in [*executor_future._done_callbacks]:
        for cell in getattr(callback, "__closure__", None) or ():
            if hasattr(cell.cell_contents, "get_loop"):
                yield cell.cell_contents


def is_rollback_after_error(frame: FrameType | None) -> bool:
    """Return whether a library rolls back because of an error, and not only to reuse a connection.

    `frame` is that of the rollback's caller. Pools of connections also roll back, in a function `reset`.
    """
    if sys.exc_info()[1] is None:
        return False
    while frame and not frame.f_code.co_name.lstrip("_").startswith("reset"):
        frame = frame.f_back
    return frame is None


def is_background_thread() -> bool:
    """Return whether the main thread, which calls the user's functions, does not wait for this thread.

    The main thread does not wait if it runs other code, or is only starting a thread. It may begin to wait a
    little later than this thread runs, so the search is repeated.
    """
    if threading.current_thread() is threading.main_thread():
        return False
    for _ in range(_BACKGROUND_LOOKS):
        names = waiting_functions(_main_frame())
        if names and names[-1] not in STARTING_FUNCTIONS:
            return False
        time.sleep(_LOOK_S)
    return True


def _main_frame() -> FrameType | None:
    return sys._current_frames().get(threading.main_thread().ident or 0)


def _is_main_thread_in(function: str) -> bool:
    frame = _main_frame()
    while frame and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None


def is_abandoned(thread: int) -> bool:
    """Return whether the thread with this id ran statements for asyncio tasks that have all ended.

    If so, no task can end the thread's open transaction.
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
    """Finder of the user's code on the call stack: code in a folder, without installed libraries."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.absolute()) + os.sep
        paths = sysconfig.get_paths()
        self._libraries = tuple(paths[name] + os.sep for name in ("stdlib", "purelib", "platlib"))

    def call_site(self) -> CallSite:
        """Return the position in the user's code from where this statement runs; `at` is "" if unknown."""
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
        trusts_id = _reads_id(frame) and not _reads_count(frame.f_code)
        return CallSite(at, number, counted, insists, not _is_count_read(), stack, trusts_id)

    def line(self, frame: FrameType | None) -> tuple[str, int] | None:
        """Return file and line of the user's innermost function that led to `frame`, or None."""
        user, _ = self._innermost(frame)
        return (user.f_code.co_filename, user.f_lineno) if user else None

    def awaiting_line(self) -> tuple[str, int] | None:
        """Return the file and line of the coroutine that waits for this thread; None if unknown."""
        task = awaiting_task()
        frames = self._coroutine_frames(task.get_coro()) if task else []
        return (frames[-1].f_code.co_filename, frames[-1].f_lineno) if frames else None

    def is_users_thread(self) -> bool:
        """Return whether the user's code started this thread for a function of its own, such as a loop.

        Such a function may do the work of several tasks in a transaction. A thread of a library, such as that
        of aiosqlite, works for a single task at a time.
        """
        frame: FrameType | None = sys._getframe(1)
        outermost = ""
        while frame:
            file = frame.f_code.co_filename
            if not (file == threading.__file__ or file.startswith(OUR_CODE)):
                outermost = file
            frame = frame.f_back
        return threading.current_thread() is not threading.main_thread() and self._is_users(outermost)

    def text(self, line: tuple[str, int]) -> str:
        """Return a line as text, such as "bank.py:27"; empty outside of the user's code."""
        file, number = line
        return f"{Path(file).name}:{number}" if self._is_users(file) else ""

    def active_calls(self, frame: FrameType | None) -> dict[tuple[int, CodeType], int]:
        """Return the user's functions on the call stack of `frame`, innermost first.

        A key has the id of the function's frame, and the function's code. A value is the current line.
        """
        calls = {}
        while frame:
            file = frame.f_code.co_filename
            if self._is_users(file):
                calls[id(frame), frame.f_code] = frame.f_lineno or 0
            frame = frame.f_back
        return calls

    def _stack(self, frame: FrameType | None) -> tuple[StackEntry, ...]:
        stack = []
        while frame:
            if self._is_users(frame.f_code.co_filename):
                stack.append(_stack_entry(frame))
            frame = frame.f_back
        return tuple(reversed(stack))

    def _innermost(self, frame: FrameType | None) -> tuple[FrameType | None, list[FrameType]]:
        """Return the user's innermost frame that led to `frame`, and the library frames that it called.

        The first item is None if no frame is the user's. The frames of sqlstress are left out.
        """
        library_frames = []
        while frame and not self._is_users(frame.f_code.co_filename):
            if not frame.f_code.co_filename.startswith(OUR_CODE):
                library_frames.append(frame)
            frame = frame.f_back
        return frame, library_frames

    def _waiting_frame(self) -> FrameType | None:
        coroutines = self._waiting_coroutines()
        if len(coroutines) == 1:
            return coroutines[0][-1]
        return self._innermost(_main_frame())[0]

    def _waiting_stack(self) -> tuple[StackEntry, ...]:
        """Return the user's functions that wait for this thread, outermost first; empty if unknown.

        The functions are those of the main thread, then those of the waiting coroutine. The result is empty
        if several coroutines may wait.
        """
        coroutines = self._waiting_coroutines()
        if len(coroutines) != 1:
            return ()
        return (*self._stack(_main_frame()), *map(_stack_entry, coroutines[0]))

    def _waiting_coroutines(self) -> list[list[FrameType]]:
        """Return the user's frames of each coroutine that may wait for this thread.

        If the waiting coroutine is unknown, each coroutine of the main thread's event loop may wait.
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


def _is_count_read() -> bool:
    """Return whether any function on the call stack may read the row count of a statement.

    Return True in an asyncio task, and outside of the main thread: functions that wait for the result are not
    on the call stack.
    """
    if threading.current_thread() is not threading.main_thread() or current_task():
        return True
    frame: FrameType | None = sys._getframe(1)
    while frame and not _function_counts(frame):
        frame = frame.f_back
    return frame is not None


_counting: dict[tuple[CodeType, int], bool] = {}
"""Cache of the results of `_function_counts`, by code of the function and id of its module's namespace.

A search per statement would be slow, above all in the rehearsal, whose profile function slows Python calls.
"""


def _function_counts(frame: FrameType) -> bool:
    """Return whether the frame's function may read a row count, itself or by a function of its module."""
    key = frame.f_code, id(frame.f_globals)
    if key not in _counting:
        _counting[key] = any(map(_reads_count, _codes(frame)))
    return _counting[key]


def _codes(frame: FrameType) -> list[CodeType]:
    codes = (getattr(frame.f_globals.get(name), "__code__", None) for name in frame.f_code.co_names)
    return [frame.f_code, *(code for code in codes if isinstance(code, CodeType))]


@cache
def _reads_count(code: CodeType) -> bool:
    texts = " ".join(text for text in code.co_consts if isinstance(text, str)).lower()
    return bool(_COUNTS & {*code.co_names}) or "changes()" in texts


def _raises_by_count(frame: FrameType) -> bool:
    return any(line >= frame.f_lineno for line in _lines_that_raise(frame.f_code))


@cache
def _lines_that_raise(code: CodeType) -> list[int]:
    """Return a function's lines such as `if cursor.rowcount != 1: raise ...`; empty without the source."""
    if not _COUNTS & {*code.co_names}:
        return []
    import ast  # Imported here: all workers of `sqlstress app` import this module, but few trace statements.
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


def _reads_id(frame: FrameType) -> bool:
    """Return whether a frame's function may read `lastrowid` of the cursor of its current call.

    The cursor of a connection's method, as in `connection.execute(...)`, is the result of the call.
    """
    if "lastrowid" not in frame.f_code.co_names:
        return False
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    receiver = _RECEIVER.search(line)
    source = "".join(linecache.getlines(frame.f_code.co_filename))
    return _uses_result(frame) or receiver is None or f"{receiver[1]}.lastrowid" in source


def _uses_result(frame: FrameType) -> bool:
    """Return whether a frame's function uses the result of its current call.

    A result that is dropped or returned at once is not used.
    """
    after = (
        instruction
        for instruction in dis.get_instructions(frame.f_code)
        if instruction.offset > frame.f_lasti
    )
    following = next(after, None)
    return following is not None and following.opname not in ("POP_TOP", "RETURN_VALUE")
