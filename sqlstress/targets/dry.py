"""The target dry, which stores nothing, to measure the overhead of sqlstress itself."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from sqlstress.target import NOTHING_STORED
from sqlstress.targets.native import NativeStore, extension, require_native, unavailable_reason
from sqlstress.targets.place import Place, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from sqlstress.options.dsn import Dsn
    from sqlstress.report.case import Case
    from sqlstress.targets.views import Operation


class DryStore:
    """A key-value store that returns the same value for every get and ignores every write."""

    def __init__(self, buckets: int, value: Any) -> None:
        def get(_params: Any) -> Any:
            return value

        def write(_params: Any) -> None:
            return None

        def pair(keys: Any) -> list[tuple[Any, Any]]:
            return [(keys[0], value), (keys[1], value)]

        self.gets: list[Operation] = [get] * buckets
        self.pairs: list[Operation] = [pair] * buckets
        self.puts: list[Operation] = [write] * buckets
        self.batches: list[Operation] = [write] * buckets
        self.updates: list[Operation] = [write] * buckets

    def was_busy(self, error: Exception) -> bool:
        return False

    def busy_counts(self) -> tuple[int, int]:
        return 0, 0

    def effective(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        pass


class DryPlace(Place):
    """A place (see `Place`) whose key-value operations have no effect."""

    stores: Literal[False] = False

    def __init__(self, case: Case, where: Path) -> None:
        self.case, self.where = case, where

    def keyvalue(self, worker: int, begin: str, sample: Any) -> DryStore:
        return DryStore(self.case.buckets, sample)

    @contextmanager
    def bare_call(self) -> Iterator[Callable[[], object]]:
        yield lambda: None

    def native(self, worker: int, begin: str) -> NativeStore:
        """Return a store without data for the C loop. Each get returns the value after a fresh fill."""
        with require_native("dry"):
            return NativeStore(DryStore(0, None), {"stores": False}, lambda code, message: message)

    def discard(self) -> None:
        pass


class DryTarget(Target):
    def open_place(self, case: Case, where: Path) -> DryPlace:
        return DryPlace(case, where)

    def preload(self, driver: str) -> tuple[str, ...]:
        return (__name__,)

    def durability(self, case: Case, effective: Mapping[str, str]) -> str:
        return f"{NOTHING_STORED}: the harness's own ceiling"

    def lacks_native(self, driver: str) -> str | None:
        return unavailable_reason(extension)

    def untold(self, driver: str) -> str:
        return f"the {driver} driver stores nothing"

    def describe_available(self, driver: str, address: Dsn | None) -> str:
        return "nothing is stored"


TARGET = DryTarget()
