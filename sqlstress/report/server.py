"""A server that keeps a case's data, and how it keeps transactions apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlstress.options.dsn import dsn
from sqlstress.options.option import SWEEP, either, option
from sqlstress.options.parsing import choices, shown, switch

SERVER = "A server"
ISOLATIONS = ("read-committed", "repeatable-read", "serializable")


def target_option(targets: Sequence[str]) -> Any:
    """Return the option that sets some of these targets side by side, as a field."""
    return option(
        choices(*targets),
        None,
        SWEEP,
        f"Side by side: some of {', '.join(targets)}.",
        metavar="LIST",
        meaning="The targets that are measured side by side, each with one driver.",
    )


def anyway_option() -> Any:
    """Return the option that lets a server be loaded wherever it is, as a field."""
    return option(switch, False, SERVER, "Load a server that is not on this machine.", flag=True)


def isolation(value: Any) -> str:
    """Read a level of isolation; between its words there may be spaces, as in SQL."""
    name = "-".join(value.lower().replace("-", " ").split()) if isinstance(value, str) else ""
    if name not in ISOLATIONS:
        raise ValueError(f"{shown(value)} is not one of {', '.join(ISOLATIONS)}")
    return name


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and how transactions are kept apart there."""

    address: str | None = option(
        dsn,
        None,
        SERVER,
        "Where it is: postgresql://user@host/database; without it, one of our own for the run.",
        name="dsn",
        metavar="DSN",
        meaning="Where it is, without its password; null: it was one of our own, for the run.",
    )
    isolation: str = option(
        isolation,
        "read-committed",
        SERVER,
        f"How transactions are kept apart: {either(ISOLATIONS)}.",
        metavar="LEVEL",
        meaning="How transactions are kept apart.",
    )
