"""What a case of SQL scripts says beside what all cases say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlstress.options.option import LOAD, MANY, TRUST, option
from sqlstress.options.parsing import switch, whole
from sqlstress.report.server import Server, anyway_option, target_option
from sqlstress.target import for_scripts, target_names
from sqlstress.user_work.options import NO_DATA, NO_OPTIONS, Data, DataOptions, names

MOST_TRIES = 1000
_DEFINED = re.compile(r"(\w+)=(.*)", re.ASCII | re.DOTALL)


def defines(value: Any) -> tuple[tuple[str, str], ...]:
    """Read several NAME=VALUE."""
    return tuple(_define(one) for one in (value if isinstance(value, list | tuple) else [value]))


def _define(value: Any) -> tuple[str, str]:
    found = _DEFINED.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError(f"{str(value)[:40]!r} is not NAME=VALUE")
    return found[1], found[2]


@dataclass(frozen=True, slots=True)
class Scripted:
    """A script: a transaction, in pgbench's dialect."""

    name: str
    """The file, or the name of the one that is built in."""
    text: str
    """What stands in it."""
    weight: int = 1
    """How often it is drawn, beside the others."""


@dataclass(frozen=True, slots=True)
class Scripts:
    """What the workers of a case of SQL scripts do."""

    scripts: tuple[Scripted, ...] = ()
    """The scripts, of which each worker draws one after the other."""
    data: Data = NO_DATA
    """The database that they find, and what must hold of it."""
    builtin_setup: tuple[str, ...] = ()
    """Which tables that are built in are made: tpcb, bank."""
    scale: int = option(
        whole(1, 10_000), 1, LOAD, "The variable :scale, and the size of the tables that are built in."
    )
    define: tuple[tuple[str, str], ...] = option(
        defines,
        (),
        LOAD,
        "A variable of all scripts; may be repeated.",
        short="D",
        metavar="NAME=VALUE",
        multiple=True,
        meaning="Variables of all scripts, as (name, value).",
    )
    max_tries: int = option(
        whole(1, MOST_TRIES),
        1,
        LOAD,
        "How often a transaction that meets BUSY is tried, as a whole, with the same values; of a server: a "
        "serialization failure, a deadlock or a lock that stays taken.",
    )
    per_statement: bool = option(
        switch,
        False,
        TRUST,
        "Show the latency of each statement too.",
        flag=True,
        meaning="Whether each statement is timed too.",
    )
    ledger: bool = option(
        switch,
        False,
        TRUST,
        "Write a row of ours in each writing transaction, which proves that what was acknowledged is there; "
        "measured beside the same without it, which shows its price.",
        flag=True,
        meaning="Whether a row of ours is written in each transaction that writes.",
    )


def named(scripts: Sequence[Scripted]) -> str:
    """Return scripts in a few words."""
    return ", ".join(f"{one.name}@{one.weight}" if one.weight > 1 else one.name for one in scripts)


_UNSAID = Server()


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that only say which cases there are."""

    script: tuple[str, ...] = option(
        names,
        (),
        LOAD,
        "Scripts, each with its weight: transfer.sql@3.",
        metavar="[SCRIPT[@N]]...",
        argument=MANY,
    )
    builtin: tuple[str, ...] = option(
        names,
        (),
        LOAD,
        "A script that is built in, with its weight: tpcb-like, simple-update, select-only or bank; may be "
        "repeated.",
        short="b",
        metavar="NAME[@N]",
        multiple=True,
    )
    target: tuple[str, ...] | None = target_option(target_names(for_scripts()))
    anyway: bool = anyway_option()
    server: Server = _UNSAID
    """What is said of a server."""
    data: DataOptions = NO_OPTIONS
    """The database, and its checks."""
