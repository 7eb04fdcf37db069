"""The native loop over a store that does nothing."""

from __future__ import annotations

from typing import Any

from sqlstress.targets.native.extension import extension, needed
from sqlstress.targets.native.run import carry_out


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
