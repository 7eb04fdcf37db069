"""What an import string names: a thing that is imported when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def named(target: str) -> Any:
    """Return what an import string "module:name" names."""
    module, name = target.split(":")
    return getattr(import_module(module), name)
