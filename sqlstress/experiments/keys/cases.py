"""What the options of the experiment with primary keys mean: its cases, schemas outside, types inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.plan.settings import check_locking, settings_of
from sqlstress.report.case import Case, Settings
from sqlstress.report.parts import SCHEMAS, Picks

MOST_ROWS = 10_000_000
"""Picks in the table: all of them are compared with what the workers were told, in memory."""


def cases(values: dict[str, Any], asked: Mapping[str, Any]) -> Iterator[Case]:
    """Yield the cases: `values` holds every option, parsed; `asked` only those that were given.

    Raises UsageError when options contradict each other.
    """
    schemas = _schemas(values, asked)
    load = Picks("", "", "", values["users"], values["picks"], values["items"], values["begin"])
    _check_together(values, load)
    for schema, concurrency in product(schemas, values["concurrency"]):
        # Where picks have no id of their own, nobody makes it.
        makers = values["made-by"] if replace(load, schema=schema).own_id else ("python",)
        for made_by, id_type in product(makers, values["id-type"]):
            picks = replace(load, schema=schema, id_type=id_type, made_by=made_by)
            yield _case(values, concurrency, picks)


def _schemas(values: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[str, ...]:
    if values["full"] and "schema" in asked:
        raise UsageError("--full is every schema: leave out --full or --schema.")
    schemas: tuple[str, ...] = SCHEMAS if values["full"] else values["schema"]
    if "sqlite" in values["made-by"] and not any(Picks(schema, "").own_id for schema in schemas):
        raise UsageError("--made-by sqlite needs a --schema whose picks have an id of their own.")
    return schemas


def _check_together(values: Mapping[str, Any], load: Picks) -> None:
    if load.most_picks > load.items:
        raise UsageError(
            f"--picks {load.picks} is up to {load.most_picks:,} distinct items of the {load.items:,} that "
            "there are. Lower --picks or raise --items."
        )
    if load.users * load.picks > MOST_ROWS:
        raise UsageError(f"--users times --picks is more than {MOST_ROWS:,} rows: lower one of them.")
    most = max(values["concurrency"])
    if most > load.users:
        raise UsageError(f"--users {load.users} leaves some of {most} processes without one: raise --users.")
    if values["driver"] == "dry" and "sqlite" in values["made-by"]:
        raise UsageError("--made-by sqlite needs a database: the dry driver stores nothing.")
    check_locking(values)


def _case(values: Mapping[str, Any], concurrency: int, picks: Picks) -> Case:
    return Case(
        workload="keys",
        driver=values["driver"],
        concurrency=concurrency,
        duration_s=0.0,
        warmup_s=0.0,
        repeat=values["repeat"],
        seed=values["seed"],
        verify=values["verify"],
        settings=_settings(values),
        picks=picks,
    )


def _settings(values: Mapping[str, Any]) -> Settings:
    """Return the settings, with foreign keys enforced unless it is said otherwise."""
    settings = settings_of(values)
    if "foreign_keys" in dict(settings.pragmas):
        return settings
    return replace(settings, pragmas=(("foreign_keys", "on"), *settings.pragmas))
