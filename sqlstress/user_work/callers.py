"""Origin of a statement: the line of the user's code, the thread, and the use of its row count."""

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

_COUNTS = {"rowcount", "changes", "total_changes"}
_OWN_FOLDER = str(Path(__file__).parent)


class CallSite(NamedTuple):
    """Position in the user's code that runs a statement."""

    at: str
    """File and line, such as "bank.py:27"; empty if not known."""
    number: int = 0
    """Number of the call, different for each call in a line; 0 if not known."""
    counted: bool = False
    """Whether the code reads the row count, as far as can be seen."""
    calls: tuple[Call, ...] = ()
    """Active calls of the user's functions, outermost first."""


def runner_id() -> int:
    """Return the id of the current asyncio task if there is one, else of the thread."""
    task = _task()
    return id(task) if task else threading.get_ident()


def _task() -> Any:
    import asyncio  # here, because every process of an application imports this module, and few trace

    with suppress(RuntimeError):
        return asyncio.current_task()
    return None


class UserFrames:
    """Finder of the frames of the user's code: below a folder, and not in a library."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.absolute()) + os.sep
        paths = sysconfig.get_paths()
        self._libraries = tuple(paths[name] + os.sep for name in ("stdlib", "purelib", "platlib"))

    def call_site(self) -> CallSite:
        """Return the position of the user's innermost active call."""
        frame, is_in_library = self._innermost(sys._getframe(1))
        calls = self._calls(frame)
        if threading.current_thread() is not threading.main_thread():
            waiting = self._waiting_calls()
            calls = waiting + calls if waiting or frame else ()
            # A thread that a library has started may have no frame of the user's code.
            frame = frame or self._waiting_frame()
        if not frame:
            return CallSite("")
        at = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        counted = (is_in_library and _uses_result(frame)) or _reads_count(frame.f_code)
        number = hash((frame.f_code, frame.f_lasti))
        return CallSite(at, number, counted, calls)

    def line(self, frame: FrameType | None) -> tuple[str, int] | None:
        """Return the file and line of the user's code that led to a frame."""
        user, _ = self._innermost(frame)
        return (user.f_code.co_filename, user.f_lineno) if user else None

    def text(self, line: tuple[str, int]) -> str:
        """Return a line as text, such as "bank.py:27"; empty if it is not in the user's code."""
        file, number = line
        return f"{Path(file).name}:{number}" if self._is_users(file) else ""

    def _calls(self, frame: FrameType | None) -> tuple[Call, ...]:
        """Return the calls of the user's functions that lead to a frame, outermost first."""
        calls = []
        while frame:
            if self._is_users(frame.f_code.co_filename):
                calls.append(_call(frame))
            frame = frame.f_back
        return tuple(reversed(calls))

    def _innermost(self, frame: FrameType | None) -> tuple[FrameType | None, bool]:
        """Return the innermost frame of the user's code, and whether it has called a library."""
        is_in_library = False
        while frame and not self._is_users(frame.f_code.co_filename):
            is_in_library |= not frame.f_code.co_filename.startswith(_OWN_FOLDER)
            frame = frame.f_back
        return frame, is_in_library

    def _waiting_frame(self) -> FrameType | None:
        """Return the frame that waits for this thread: of the only coroutine, else of the main thread."""
        coroutines = self._waiting_stacks()
        if len(coroutines) == 1:
            return coroutines[0][-1]
        return self._innermost(sys._current_frames().get(threading.main_thread().ident or 0))[0]

    def _waiting_calls(self) -> tuple[Call, ...]:
        """Return the calls that wait for this thread in an event loop; empty if several coroutines wait."""
        coroutines = self._waiting_stacks()
        if len(coroutines) != 1:
            return ()
        main = sys._current_frames().get(threading.main_thread().ident or 0)
        return (*self._calls(main), *map(_call, coroutines[0]))

    def _waiting_stacks(self) -> list[list[FrameType]]:
        """Return the user's frames of each waiting coroutine in the main thread's event loop."""
        import asyncio

        frame = sys._current_frames().get(threading.main_thread().ident or 0)
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


def _call(frame: FrameType) -> Call:
    return Call(id(frame), frame.f_code.co_filename, frame.f_lineno or 0, frame.f_lasti)


@cache
def _reads_count(code: CodeType) -> bool:
    texts = " ".join(text for text in code.co_consts if isinstance(text, str)).lower()
    return bool(_COUNTS & {*code.co_names}) or "changes()" in texts


def _uses_result(frame: FrameType) -> bool:
    """Return whether the code uses the result of a frame's current call, which may be a row count."""
    after = (
        instruction
        for instruction in dis.get_instructions(frame.f_code)
        if instruction.offset > frame.f_lasti
    )
    following = next(after, None)
    return following is not None and following.opname not in ("POP_TOP", "RETURN_VALUE")
