"""How a statement with :name has its values given to a server: as parameters, never pasted."""

from __future__ import annotations

from typing import Any

from sqlstress.options.dialects import POSTGRES


def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with $1, $2, ... for its variables, and their names.

    Each place has a number of its own: the server may infer another type for each.
    """
    parts: list[str] = []
    names: list[str] = []
    for token in POSTGRES.tokens(sql):
        if token.kind == "parameter" and token.text[0] == ":":
            names.append(token.text[1:])
            parts.append(f"${len(names)}")
        else:
            parts.append(token.text)
    return "".join(parts), tuple(names)


def written(value: Any) -> bytes | None:
    """Return a value as the server reads it, whatever type it has there; None for NULL."""
    if value is None:
        return None
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return value if isinstance(value, bytes) else str(value).encode()
