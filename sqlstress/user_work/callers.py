"""Who runs a statement: which line of the user's code, which thread, and what they do with its row count."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from sqlstress.user_work.guards import Call
from sqlstress.user_work.threads import BEGINS, under_way

_COUNTS = {"rowcount", "changes", "total_changes"}


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
    calls: tuple[Call, ...] = ()
    """The user's functions that are under way, the outermost first."""


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
    called = under_way(sys._current_frames().get(main.ident or 0))
    return not called or called[-1] in BEGINS


class Frames:
    """The frames of the user's code."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.absolute()) + os.sep
        paths = sysconfig.get_paths()
        self._libraries = tuple(paths[name] + os.sep for name in ("stdlib", "purelib", "platlib"))

    def where(self) -> Spot:
        """Return where the user's code runs now: its innermost call."""
        frame, passed = self._users(sys._getframe(1))
        calls = self._calls(frame)
        if threading.current_thread() is not threading.main_thread():
            waiting = self._waiting_coroutine()
            calls = waiting + calls if waiting or frame else ()
            # for a library's thread
            frame = frame or self._waiting()
        if not frame:
            return Spot("")
        at = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        is_used = bool(passed) and _uses_result(frame)
        counted = is_used or _looks_at_count(frame.f_code)
        insists = is_used and any(map(_raises_by_count, passed))
        number = hash((frame.f_code, frame.f_lasti))
        return Spot(at, number, counted, insists, not _is_seen(), calls)

    def _calls(self, frame: FrameType | None) -> tuple[Call, ...]:
        """Return the user's functions that have led to a frame, the outermost first."""
        calls = []
        while frame:
            if self._is_users(frame.f_code.co_filename):
                calls.append(_call(frame))
            frame = frame.f_back
        return tuple(reversed(calls))

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
        coroutines = self._waiting_coroutines()
        if len(coroutines) == 1:
            return coroutines[0][-1]
        return self._users(sys._current_frames().get(threading.main_thread().ident or 0))[0]

    def _waiting_coroutine(self) -> tuple[Call, ...]:
        """Return the user's functions that wait for this thread in an event loop; empty if several may."""
        coroutines = self._waiting_coroutines()
        if len(coroutines) != 1:
            return ()
        main = sys._current_frames().get(threading.main_thread().ident or 0)
        return (*self._calls(main), *map(_call, coroutines[0]))

    def _waiting_coroutines(self) -> list[list[FrameType]]:
        """Return the user's frames of each coroutine that waits in the main thread's event loop."""
        import asyncio

        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        while frame and not isinstance(frame.f_locals.get("self"), asyncio.AbstractEventLoop):
            frame = frame.f_back
        if not frame:
            return []
        tasks = asyncio.all_tasks(frame.f_locals["self"])
        return [frames for task in tasks if (frames := self._suspended(task.get_coro()))]

    def _suspended(self, coroutine: Any) -> list[FrameType]:
        """Return the frames of the user's in which a coroutine waits, the outermost first."""
        found: list[FrameType] = []
        while frame := getattr(coroutine, "cr_frame", None):
            if self._is_users(frame.f_code.co_filename):
                found.append(frame)
            coroutine = coroutine.cr_await
        return found

    def _is_users(self, file: str) -> bool:
        return file.startswith(self._folder) and not file.startswith(self._libraries)


def _call(frame: FrameType) -> Call:
    return Call(id(frame), frame.f_code.co_filename, frame.f_lineno or 0, frame.f_lasti)


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
