"""Options and spec of the experiment with SQL scripts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlstress.experiments.sql.script import Script, read
from sqlstress.options.option import LOAD, MANY, TRUST, option
from sqlstress.options.parsing import switch, whole
from sqlstress.request import Request
from sqlstress.user_work import options
from sqlstress.user_work.options import NO_DATA, NO_OPTIONS, NOWHERE, Data, DataOptions, Where
from sqlstress.user_work.statements import dialect_of

MOST_TRIES = 1000
_DEFINED = re.compile(r"(\w+)=(.*)", re.ASCII | re.DOTALL)


def defines(value: Any) -> tuple[tuple[str, str], ...]:
    """Read several NAME=VALUE."""
    found = []
    for one in value if isinstance(value, list | tuple) else [value]:
        match = _DEFINED.fullmatch(one) if isinstance(one, str) else None
        if not match:
            raise ValueError(f"{str(one)[:40]!r} is not NAME=VALUE")
        found.append((match[1], match[2]))
    return tuple(found)


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
        whole(1, 10_000), 1, LOAD, "Value of the variable :scale, and size of the built-in tables."
    )
    define: tuple[tuple[str, str], ...] = option(
        defines,
        (),
        LOAD,
        "Define a variable for all scripts. May be repeated.",
        short="D",
        metavar="NAME=VALUE",
        multiple=True,
        meaning="Variables of all scripts, as (name, value).",
    )
    max_tries: int = option(
        whole(1, MOST_TRIES),
        1,
        LOAD,
        "How often to try a transaction that fails with BUSY, as a whole, with the same values. On a server: "
        "with a serialization failure, a deadlock or a lock timeout.",
    )
    per_statement: bool = option(
        switch,
        False,
        TRUST,
        "Also show the latency of each statement.",
        flag=True,
        meaning="Whether each statement is timed too.",
    )
    ledger: bool = option(
        switch,
        False,
        TRUST,
        "Add a row to each writing transaction, which proves that every acknowledged transaction is there. "
        "Also measures the load without it, which shows the cost.",
        flag=True,
        meaning="Whether sqlstress adds a row to each transaction that writes.",
    )
    strict: bool = options.strict_option()


@dataclass(frozen=True, slots=True)
class CaseSelection:
    """Options that only say which cases there are."""

    script: tuple[str, ...] = option(
        options.names,
        (),
        LOAD,
        "Scripts, each with an optional weight: transfer.sql@3.",
        metavar="[SCRIPT[@N]]...",
        argument=MANY,
    )
    builtin: tuple[str, ...] = option(
        options.names,
        (),
        LOAD,
        "A built-in script, with an optional weight: tpcb-like, simple-update, select-only or "
        "bank. May be repeated.",
        aliases=("-b",),
        metavar="NAME[@N]",
        multiple=True,
    )
    where: Where = NOWHERE
    data: DataOptions = NO_OPTIONS


ScriptsRequest = Request[Scripts, CaseSelection]


def read_scripts(spec: Scripts, driver: str) -> list[Script]:
    """Return the scripts of a case. Raises UsageError, with the place in the file."""
    variables, dialect = [name for name, _ in spec.define], dialect_of(driver)
    return [read(one.name, one.text, variables, dialect) for one in spec.scripts]


def named(scripts: Sequence[Scripted]) -> str:
    """Return scripts in a few words."""
    return ", ".join(f"{one.name}@{one.weight}" if one.weight > 1 else one.name for one in scripts)
