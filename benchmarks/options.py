"""The command line: a parser with one sub-command for each question."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks import endurance, fair, harness, limit, memory, pgbench, published, sql, stages, where
from benchmarks.bench import DRIVERS, LOADS, Bench, Options, Scale
from benchmarks.results import Plan
from sqlstress.experiments.kv.experiment import LOOPS
from sqlstress.statistics.units import parse_duration

T = TypeVar("T")

STUDIES: dict[str, Callable[[Bench], Plan]] = {
    "limit": limit.plan,
    "published": published.plan,
    "harness": harness.plan,
    "fair": fair.plan,
    "memory": memory.plan,
    "sql": sql.plan,
    "pgbench": pgbench.plan,
    "profile": stages.plan,
    "where": where.plan,
    "endurance": endurance.plan,
}
APART = ("endurance", "pgbench")
"""Not among `all`: one takes a quarter of an hour, the other needs a server's programs."""
_TITLES = {
    "limit": limit.TITLE,
    "published": published.TITLE,
    "harness": harness.TITLE,
    "fair": fair.TITLE,
    "memory": memory.TITLE,
    "sql": sql.TITLE,
    "pgbench": pgbench.TITLE,
    "profile": stages.TITLE,
    "where": where.TITLE,
    "endurance": endurance.TITLE,
}


def parser() -> argparse.ArgumentParser:
    """Return the parser; each sub-command takes only the options that it uses."""
    found = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure sqlstress side by side with its limit and its peers, and print ratios.",
    )
    commands = found.add_subparsers(dest="study", required=True, metavar="COMMAND")
    made = {name: commands.add_parser(name, help=title, description=title) for name, title in _TITLES.items()}
    made["all"] = commands.add_parser(
        "all", help="all of them but endurance", description="all of them, one after the other"
    )
    _endurance(made.pop("endurance"))
    for name, command in made.items():
        _common(command)
        if name not in ("published", "profile", "where"):
            _window(command)
        if name in ("limit", "fair", "memory", "profile", "where", "all"):
            _choice(command, "--driver", DRIVERS)
        if name in ("limit", "fair", "harness", "pgbench", "profile", "where", "all"):
            _choice(command, "--load", tuple(LOADS))
        if name not in ("harness", "profile", "sql", "where"):
            command.add_argument(
                "--concurrency", type=counts, default=(), metavar="N,N", help="numbers of processes"
            )
    # It has a command line of its own, as it has workers: here it is listed only.
    commands.add_parser("gate", help="how often `sqlstress ab` is wrong")
    commands.add_parser("fleet", help="what a fleet takes, and what is lost when hosts die")
    commands.add_parser("mutations", help="what the verdicts catch")
    commands.add_parser("mutants", help="which changes of the code the tests notice")
    _choice(made["limit"], "--synchronous", limit.SYNCHRONOUS)
    _choice(made["limit"], "--arm", limit.EVERY_ARM)
    _choice(made["fair"], "--arm", LOOPS)
    _choice(made["sql"], "--synchronous", sql.SYNCHRONOUS)
    _choice(made["pgbench"], "--synchronous", ("full", "normal"))
    return found


def _endurance(command: argparse.ArgumentParser) -> None:
    _everywhere(command)
    command.add_argument("--duration", type=duration, default=600.0, help="the long run (default: 10m)")
    scale = Scale()
    for name in ("workers", "buckets", "keys"):
        default = getattr(scale, name)
        command.add_argument(f"--{name}", type=positive, default=default, help=f"(default: {default:,})")


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--repeats", type=positive, default=5, help="pairs for each cell (default: 5)")
    _everywhere(command)


def _everywhere(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=int, default=1, help="of the first round (default: 1)")
    command.add_argument("--dir", type=folder, default=Path(), help="where the databases go (default: here)")
    command.add_argument("--output", type=Path, metavar="NAME.md", help="write NAME.md and NAME.json too")


def _window(command: argparse.ArgumentParser) -> None:
    command.add_argument("--duration", type=duration, default=1.0, help="the window (default: 1s)")
    command.add_argument("--warmup", type=duration, default=0.3, help="load before it (default: 300ms)")


def _choice(command: argparse.ArgumentParser, name: str, choices: tuple[str, ...]) -> None:
    command.add_argument(
        name, choices=choices, action="append", default=[], help="repeatable (default: the study's own)"
    )


def options(given: argparse.Namespace) -> Options:
    """Return what was asked for; what a sub-command has no option for is left to it."""
    return Options(
        repeats=getattr(given, "repeats", 1),
        duration_s=getattr(given, "duration", 1.0),
        warmup_s=getattr(given, "warmup", 0.3),
        seed=given.seed,
        drivers=tuple(getattr(given, "driver", ())) or DRIVERS,
        loads=tuple(getattr(given, "load", ())),
        synchronous=tuple(getattr(given, "synchronous", ())),
        concurrency=getattr(given, "concurrency", ()),
        arms=tuple(getattr(given, "arm", ())),
        scale=_scale(given),
    )


def _argument(convert: Callable[[str], T], text: str) -> T:
    try:
        return convert(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def duration(text: str) -> float:
    """Read a duration in seconds."""
    return _argument(parse_duration, text)


def folder(text: str) -> Path:
    """Read the path of a folder that exists."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is not a folder")
    return Path(text)


def positive(text: str) -> int:
    """Read a whole number of 1 or more."""
    value = _argument(int, text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not 1 or more")
    return value


def counts(text: str) -> tuple[int, ...]:
    """Read a list such as 1,2,8."""
    return tuple(positive(part) for part in text.split(","))


def _scale(given: argparse.Namespace) -> Scale:
    return Scale(given.workers, given.buckets, given.keys) if "workers" in given else Scale()
