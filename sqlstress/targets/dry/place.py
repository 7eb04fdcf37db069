"""A place where nothing is kept."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from sqlstress.targets.dry.keyvalue import DryStore
from sqlstress.targets.untold import Untold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from sqlstress.report.case import Case
    from sqlstress.system.pulse import Pulse
    from sqlstress.targets.dry.native import DryNativeStore
    from sqlstress.targets.place import Definition


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
        from sqlstress.targets.dry.native import DryNativeStore

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
