"""Plan: flags or a TOML file become a list of Cases."""

from __future__ import annotations

import difflib
import secrets
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sqlstress.case import Case, Load, Settings
from sqlstress.errors import UsageError
from sqlstress.options import BY_NAME, OPTIONS
from sqlstress.parsing import shown

MOST_CASES = 1000
WORKLOADS = ("kv",)

CLASSIC: Mapping[str, Any] = {
    "duration": None,
    "warmup": None,
    "ops": 5000,
    "read-ratio": 0.5,
    "update-ratio": 0.0,
    "key-space": (1 << 31) + 1,
    "distribution": "uniform",
    "key-type": "int",
    "value-size": 8,
    "batch": 1,
    "begin": "deferred",
    "journal-mode": "wal",
    "synchronous": None,
    "fullfsync": None,
    "wal-autocheckpoint": None,
    "page-size": None,
    "cache-size": None,
    "mmap-size": None,
    "pragma": (),
    "busy-timeout": 60.0,
    "busy": "default",
}
"""What `--preset classic` fixes: the published script's measurement; None: left alone."""


def parse_option(name: str, value: Any) -> Any:
    """Parse one option's value; raises UsageError that names the option."""
    try:
        return BY_NAME[name].parse(value)
    except ValueError as error:
        raise UsageError(f"--{name}: {error}.") from error


def cases_of(given: Mapping[str, Any]) -> list[Case]:
    """Return the cases of one set of options: layouts outside, concurrencies inside.

    `given` holds unparsed values by option name; what is missing or None has its default.
    Raises UsageError, also for more cases than anybody waits for, before they take memory.
    """
    asked = {name: parse_option(name, value) for name, value in given.items() if value is not None}
    if asked.get("preset") == "classic":
        _refuse_contradictions(asked)
        values = {**_defaults(), **asked, **CLASSIC}
    else:
        values = {**_defaults(), **asked}
        _check_together(values, asked)
    _check_count(len(values["buckets"]) * len(values["concurrency"]))
    return [
        _case(values, concurrency, buckets)
        for buckets in values["buckets"]
        for concurrency in values["concurrency"]
    ]


def _defaults() -> dict[str, Any]:
    return {
        option.name: None if option.default is None else option.parse(option.default) for option in OPTIONS
    }


def _refuse_contradictions(asked: Mapping[str, Any]) -> None:
    for name, value in asked.items():
        if name in CLASSIC and value != CLASSIC[name]:
            raise UsageError(
                f"--{name} contradicts --preset classic, which {_fixed(name)}. Leave one of them out."
            )


def _fixed(name: str) -> str:
    value = CLASSIC[name]
    return "leaves it unset" if value in (None, ()) else f"fixes it at {value}"


def _check_together(values: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    if values["read-ratio"] + values["update-ratio"] > 1 + 1e-9:
        raise UsageError(
            "--read-ratio and --update-ratio add up to more than 1. Lower one of them; the rest are replaces."
        )
    if values["batch"] > values["key-space"]:
        raise UsageError("--batch is larger than --key-space: a transaction writes distinct keys.")
    for name in ("duration", "warmup"):
        if values["ops"] is not None and name in asked:
            raise UsageError(f"--ops takes the place of a window: leave out --ops or --{name}.")
    for name, value in values["pragma"]:
        if name == "locking_mode" and value.lower() == "exclusive" and max(values["concurrency"]) > 1:
            raise UsageError(
                "PRAGMA locking_mode=exclusive lets one process in: use it with --concurrency 1 only."
            )
    if values["seed"] is None:
        raise UsageError("a seed is missing")


def _case(values: Mapping[str, Any], concurrency: int, buckets: int) -> Case:
    return Case(
        workload="classic" if values["preset"] == "classic" else "kv",
        driver=values["driver"],
        concurrency=concurrency,
        buckets=buckets,
        duration_s=values["duration"] or 0.0,
        warmup_s=0.0 if values["ops"] is not None else values["warmup"],
        ops=values["ops"],
        repeat=values["repeat"],
        seed=values["seed"],
        verify=values["verify"],
        settings=_settings(values),
        load=_load(values),
    )


def _settings(values: Mapping[str, Any]) -> Settings:
    return Settings(
        journal_mode=values["journal-mode"],
        synchronous=values["synchronous"],
        fullfsync=values["fullfsync"],
        wal_autocheckpoint=values["wal-autocheckpoint"],
        page_size=values["page-size"],
        cache_size=values["cache-size"],
        mmap_size=values["mmap-size"],
        pragmas=values["pragma"],
        busy_timeout_ms=round(values["busy-timeout"] * 1000),
        busy=values["busy"],
    )


def _load(values: Mapping[str, Any]) -> Load:
    return Load(
        read_ratio=values["read-ratio"],
        update_ratio=values["update-ratio"],
        key_space=values["key-space"],
        distribution=values["distribution"],
        key_type=values["key-type"],
        value_size=values["value-size"],
        batch=values["batch"],
        begin=values["begin"],
    )


def from_options(given: Mapping[str, Any]) -> tuple[Case, ...]:
    """Return the cases that the command line asks for."""
    return tuple(cases_of(_seeded(given)))


def from_toml(path: Path) -> tuple[Case, ...]:
    """Return the cases of a plan: options at the top are defaults, each [[case]] has its own."""
    document = _read(path)
    tables = document.pop("case", None)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{path}: a plan needs at least one [[case]].")
    document = _seeded(document)
    planned: list[Case] = []
    for number, table in enumerate(tables, 1):
        try:
            planned += cases_of(_known({**document, **table}))
        except UsageError as error:
            raise UsageError(f"{path}, case {number}: {error}") from error
        _check_count(len(planned))
    return tuple(planned)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        # tomllib lets more than its own TOMLDecodeError through: text that is not UTF-8, huge numbers.
        raise UsageError(f"{path} is not a TOML file: {error!s:.160}.") from error


def _known(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table without its workload; raises UsageError for names that are not options."""
    given = dict(table)
    workload = given.pop("workload", None)
    if workload not in WORKLOADS:
        raise UsageError(f"workload = {workload!r:.40} is missing or not one of {', '.join(WORKLOADS)}.")
    for name in given:
        if name not in BY_NAME:
            raise UsageError(f"{shown(name)} is not an option.{suggestion(name, BY_NAME)}")
    return given


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" for a mistyped word, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]}?" if near else ""


def _seeded(given: Mapping[str, Any]) -> dict[str, Any]:
    seed = given.get("seed")
    return {**given, "seed": secrets.randbelow(1 << 32) if seed is None else seed}


def _check_count(cases: int) -> None:
    if cases > MOST_CASES:
        raise UsageError(f"these are {cases:,} cases, more than {MOST_CASES:,}: split the plan.")
