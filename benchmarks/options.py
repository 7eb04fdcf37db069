"""Types of option values, and the parser of a command that saves its measurements."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlstress.statistics.units import parse_duration

T = TypeVar("T")


def command(name: str, about: str | None, output: bool = True) -> argparse.ArgumentParser:
    """Return the parser of a command with --output, which may be required or optional."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--output", type=Path, required=output, metavar="NAME.md", help="write NAME.md and NAME.json"
    )
    return parser


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
