"""A store that does nothing: what remains is the harness's own cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlstress.targets.keyvalue import Operation


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
