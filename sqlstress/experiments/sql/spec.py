"""Options of the experiment `sql`, and the case fields that they set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlstress.experiments.sql.script import Script, read
from sqlstress.options.option import LOAD, MANY, TRUST, option
from sqlstress.options.parsing import switch, whole_number
from sqlstress.request import Request
from sqlstress.user_work import options
from sqlstress.user_work.options import NO_DATA, NO_OPTIONS, NO_TARGETS, Data, DataOptions, TargetOptions
from sqlstress.user_work.statements import dialect_of

MAX_TRIES = 1000
_DEFINED = re.compile(r"(\w+)=(.*)", re.ASCII | re.DOTALL)


def parse_definitions(value: Any) -> tuple[tuple[str, str], ...]:
    """Return (name, value) of each text NAME=VALUE. Raise ValueError for other texts."""
    pairs = []
    for text in value if isinstance(value, list | tuple) else [value]:
        match = _DEFINED.fullmatch(text) if isinstance(text, str) else None
        if not match:
            raise ValueError(f"{str(text)[:40]!r} is not NAME=VALUE")
        pairs.append((match[1], match[2]))
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class Scripted:
    """Script in pgbench's dialect, which runs as one transaction."""

    name: str
    """Path of the file, or name of the built-in script."""
    text: str
    """Text of the script."""
    weight: int = 1
    """Relative frequency of the script."""


@dataclass(frozen=True, slots=True)
class Scripts:
    """SQL scripts of a case, and their database."""

    scripts: tuple[Scripted, ...] = ()
    """Scripts; each transaction runs one, drawn at random by weight."""
    data: Data = NO_DATA
    """Files from which the database of the scripts is created, and the checks of its data."""
    builtin_setup: tuple[str, ...] = ()
    """Built-in tables to create: tpcb, bank, or both."""
    scale: int = option(
        whole_number(1, 10_000), 1, LOAD, "Value of the variable :scale, and size of the built-in tables."
    )
    define: tuple[tuple[str, str], ...] = option(
        parse_definitions,
        (),
        LOAD,
        "Define a variable for all scripts. May be repeated.",
        short="D",
        metavar="NAME=VALUE",
        multiple=True,
        meaning="Variables of all scripts, as (name, value).",
    )
    max_tries: int = option(
        whole_number(1, MAX_TRIES),
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
        meaning="Whether each statement is also timed.",
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
class SqlSelection:
    """Options that select cases but are not stored in them: a case has the scripts' texts."""

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
    where: TargetOptions = NO_TARGETS
    data: DataOptions = NO_OPTIONS


ScriptsRequest = Request[Scripts, SqlSelection]


def read_scripts(spec: Scripts, driver: str) -> list[Script]:
    """Return a case's parsed scripts. `driver` determines the dialect, SQLite's or PostgreSQL's.

    If a script is invalid, raise UsageError with the position of the mistake in the script.
    """
    variables, dialect = [name for name, _ in spec.define], dialect_of(driver)
    return [read(script.name, script.text, variables, dialect) for script in spec.scripts]


def script_labels(scripts: Sequence[Scripted]) -> str:
    """Return the names of scripts with weights, such as "transfer.sql@3, read.sql"."""
    return ", ".join(
        f"{script.name}@{script.weight}" if script.weight > 1 else script.name for script in scripts
    )
