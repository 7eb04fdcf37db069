"""A place where nothing is kept."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from sqlstress.targets.native import carry_out, extension, needed
from sqlstress.targets.views import Untold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse
    from sqlstress.targets.place import Definition
    from sqlstress.targets.views import Operation


# A store that does nothing: what remains is the harness's own cost.


class DryStore:
    """Answers every get with one given value, and forgets every write."""

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


class DryPlace(Untold):
    """Has a view for each worker, which does nothing; there is nothing else to be asked of it."""

    stores: Literal[False] = False

    def __init__(self, case: Case, where: Path) -> None:
        self.case, self.where = case, where

    def keyvalue(self, worker: int, begin: str, sample: Any) -> DryStore:
        return DryStore(self.case.buckets, sample)

    @contextmanager
    def bare_call(self) -> Iterator[Callable[[], object]]:
        yield lambda: None

    def native(self, worker: int, begin: str) -> DryNativeStore:

        return DryNativeStore()

    def seal(self) -> None:
        return None

    def table(self, key_type: str, value_size: int, counters: int) -> None:
        return None

    def schema(self) -> tuple[Definition, ...]:
        return ()

    def snapshot(self, pulse: Pulse) -> None:
        return None

    def differences(self, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        return iter(())

    def integrity(self, level: str, pulse: Pulse) -> None:
        return None

    def redefined(self, created: object, pulse: Pulse) -> None:
        return None

    def space(self, pulse: Pulse) -> None:
        return None

    def discard(self) -> None:
        pass


# The native loop over a store that does nothing.


class DryNativeStore:
    """Has no connections, and no server: then the loop in C answers every get with a value of the preload."""

    def __init__(self) -> None:
        with needed("dry"):
            self._native = extension()

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        return carry_out(self._native, {**plan, "stores": False}, lambda code, said: said)

    def effective(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        pass
