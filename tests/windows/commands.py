"""Commands of a user on Windows, and their expected results."""

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.windows.wine import ROOT, Wine, allow_descriptors

PROGRAM = "-m", "sqlstress"
SHORT = ("--repeat=1", "--key-space=500", "--duration=200ms", "--warmup=100ms")
LONGEST_S = 1800.0
"""Time limit of a command, in seconds: Wine is slow on a busy machine."""
STRIKES = ROOT / "tests" / "windows" / "strikes.py"


@dataclass(frozen=True, slots=True)
class Command:
    """Arguments after "sqlstress", the expected exit code, and the expected output."""

    words: tuple[str, ...]
    said: str = ""
    """A regular expression of standard output and standard error together."""
    code: int = 0
    program: tuple[str, ...] = PROGRAM


def _strike(name: str, phase: str, *words: str) -> Command:
    program = (f"Z:{STRIKES}".replace("/", "\\"), name, phase)
    return Command(words, "(?i)stopped|interrupted", 130, program)


PLACE = "commands of a user"
SIGNALS = "SIGINT", "SIGBREAK"

PURE = (Command(("-c", "2", *SHORT), "Python loop(.|\\n)*was not built"),)
"""Commands to run before anything is compiled."""
NATIVE = (
    Command(("-c", "2", "-b", "3", "--loop", "native", *SHORT, "--details"), "(?i)native loop"),
    Command(("-c", "1", "--loop", "native", "--driver", "apsw", *SHORT, "--details"), "(?i)native loop"),
)
"""Commands that need the native loop."""
COMMANDS = (
    Command(("doctor",), "FlushFileBuffers"),
    Command(("-c", "2", "-b", "3", *SHORT, "-o", "short.json"), "ok"),
    *(_strike(name, "measuring", "-c", "2", *SHORT) for name in SIGNALS),
)


class Ended(NamedTuple):
    """The result of a command."""

    command: Command
    problems: tuple[str, ...]
    """Differences from the expected result."""
    seconds: float


def run(wine: Wine, commands: Sequence[Command]) -> Iterator[Ended]:
    """Run commands in sequence in the same folder, and yield the result of each."""
    place = wine.work / PLACE
    place.mkdir(parents=True, exist_ok=True)
    allow_descriptors()
    for command in commands:
        start_s = time.monotonic()
        yield Ended(command, tuple(_problems(wine, place, command)), time.monotonic() - start_s)


def _problems(wine: Wine, place: Path, command: Command) -> Iterator[str]:
    arguments = (*command.program, *command.words)
    before = _ours(wine, place)  # left by a command that did not end
    try:
        done = wine.run(*arguments, timeout_s=LONGEST_S, cwd=place)
    except subprocess.TimeoutExpired:
        yield f"did not end within {LONGEST_S:.0f} s"
        return
    output = done.stdout + done.stderr
    if done.returncode != command.code:
        yield f"exit code {done.returncode}, not {command.code}: {output[-2000:]}"
    if "Traceback" in output:
        yield f"a traceback: {output[-2000:]}"
    if not re.search(command.said, output):
        yield f"{command.said!r} was not said: {output[-2000:]}"
    if left := _ours(wine, place) - before:
        yield f"left: {', '.join(sorted(path.name for path in left))}"


def _ours(wine: Wine, place: Path) -> set[Path]:
    return {*wine.work.glob("sqlstress-*"), *place.rglob("*sqlstress-*")}
