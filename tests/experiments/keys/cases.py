"""Cases of keys that sync nothing."""

from __future__ import annotations

from typing import Any

from sqlstress.experiments.classics.spec import Picks
from sqlstress.report.case import Case, Settings

FAST = Settings(synchronous="off", pragmas=(("foreign_keys", "on"),))


def case_of(schema: str, id_type: str, **fields: Any) -> Case:
    load = Picks(schema, id_type, users=30, picks=10, items=60)
    return Case(**{"workload": "keys", "concurrency": 2, "settings": FAST, "spec": load, "seed": 3, **fields})
