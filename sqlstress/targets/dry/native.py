"""The native loop over a store that does nothing."""

from __future__ import annotations

from typing import Any

from sqlstress.targets.sqlite.native.run import carry_out


class DryNativeStore:
    """Has no connections: then the loop in C answers every get with a value of the preload."""

    def run(self, plan: dict[str, Any]) -> dict[str, Any]:
        nothing = {
            "stores": False,
            "connections": [],
            "statements": (),
            "fair": False,
            "mean_wait_ns": 0,
            "jitter": 1,
        }
        return carry_out({**plan, **nothing})

    def effective(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        pass
