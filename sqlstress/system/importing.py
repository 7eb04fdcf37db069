"""What an import string names: a thing that is imported when it is used."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def named(target: str) -> Any:
    """Return what an import string "module:name" names."""
    module, name = target.split(":")
    return getattr(import_module(module), name)


@contextmanager
def no_search() -> Iterator[None]:
    """Search for none meanwhile: among the millions of lists of a report it takes most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
