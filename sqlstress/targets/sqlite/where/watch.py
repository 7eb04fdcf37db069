"""How a process begins to say where its time goes, before it opens a database, and ends it."""

from __future__ import annotations

import ctypes
from typing import Any

from sqlstress.errors import EnvironmentFailure
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets.native.extension import NotToBeHad, extension
from sqlstress.targets.sqlite.reach import reached_once
from sqlstress.targets.sqlite.where.area import CLOSES, OPENS, ROOM, Area


class Watch:
    """This process's own account. There is one in a process, at most."""

    def __init__(self, driver: str, words: Any, process: int, processes: int) -> None:
        """Connections opened from now on are watched; `words` are those of so many processes.

        Raises EnvironmentFailure where none can be.
        """
        area = Area(words, process, processes)
        try:
            handle = reached_once(driver)
            native: Any = extension()
        except NotToBeHad as error:
            raise EnvironmentFailure(f"it can't be told where the time goes: {error}") from error
        self._area, self._native = area, native
        area.words[ROOM] = area.room
        problem = native.where_begin(
            handle.functions, ctypes.addressof(ctypes.c_int64.from_buffer(area.words))
        )
        if problem:
            raise EnvironmentFailure(f"it can't be told where the time goes: {problem}")

    def window(self, opens_ns: int, closes_ns: int) -> None:
        """Say which time counts."""
        self._area.words[OPENS] = opens_ns
        self._area.words[CLOSES] = closes_ns

    def gave_up(self) -> None:
        """Say that an operation was given up: it waits for no lock any more."""
        self._native.where_gave_up()

    def paused(self, begin_s: float, end_s: float) -> None:
        """Say that nothing was tried between these times of perf_counter, so that others get the lock."""
        self._native.where_paused(int(begin_s * NS_PER_S), int(end_s * NS_PER_S))

    def end(self) -> None:
        """Say that all is done. What is still under way counts until the window closes."""
        self._native.where_end()
