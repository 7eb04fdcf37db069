"""A process that begins like a worker and sends the names of the modules that it imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstress.engine.worker import peak_memory_bytes
from sqlstress.system.child import Pipe, init_child
from sqlstress.targets import open_place

if TYPE_CHECKING:
    from sqlstress.report.case import Case


def begin(source: Callable[..., Any], case: Case, where: Path, shared: tuple[Any, ...], pipe: Pipe) -> None:
    """Connect and seal like a worker, and read what a worker reads at its end."""
    before = set(sys.modules)
    init_child()
    place = open_place(case, where)
    half = source(case, place, 1, 1, shared)
    seal = place.seal()
    peak_memory_bytes()
    half.findings()
    if seal:
        seal.broken()
    half.close()
    pipe.send(set(sys.modules) - before)
