"""What a user on Windows would type, and what must come of it."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.windows.wine import ROOT, Wine

PROGRAM = "-m", "sqlstress"
SHORT = ("--repeat=1", "--key-space=500", "--duration=200ms", "--warmup=100ms")
LONGEST_S = 600.0
STRIKES = ROOT / "tests" / "windows" / "strikes.py"


@dataclass(frozen=True, slots=True)
class Command:
    """Words after "sqlstress", the exit code that is right for them, and what must be said."""

    words: tuple[str, ...]
    said: str = ""
    """A regular expression of standard output and standard error together."""
    code: int = 0
    short: bool = False
    """Whether it is one of the few that are always run."""
    program: tuple[str, ...] = PROGRAM
    environment: tuple[tuple[str, str], ...] = ()


def _strike(phase: str, *words: str) -> Command:
    program = (f"Z:{STRIKES}".replace("/", "\\"), phase)
    return Command(words, "(?i)stopped|interrupted", 130, phase == "measuring", program)


def _encoded(name: str) -> Command:
    words = ("kv", *SHORT, "-o", f"{name} ü 表.md")
    return Command(words, "TPS", environment=(("PYTHONIOENCODING", name),))


LINUX = f"Z:{ROOT}/reports/linux-1-and-20-files.json"
PYTHON = "C:/Python312/python.exe"
PHASES = ("preparing", "starting", "measuring", "verifying")

PURE = (Command(("-c", "2", *SHORT), "Python loop(.|\\n)*was not built", short=True),)
"""What is run as long as nothing is compiled."""
NATIVE = (
    Command(("-c", "2", "-b", "3", "--loop", "native", *SHORT), "native loop", short=True),
    Command(("-c", "1", "--loop", "native", "--driver", "apsw", *SHORT), "native loop", short=True),
    Command(("-c", "2", "--loop", "native", "--driver", "dry", *SHORT), "native loop"),
    Command(("-c", "4", "--loop", "native", "--busy", "fair", *SHORT), "native loop"),
    Command(("-c", "2", "--loop", "native", "--update-ratio", "0.2", "--batch", "10", *SHORT), "native loop"),
    Command(("-c", "2", "--where", *SHORT), "Where the time of an operation goes"),
)
"""What needs the native loop."""
COMMANDS = (
    Command(("doctor",), "FlushFileBuffers", short=True),
    Command(("-c", "2", "-b", "3", *SHORT, "-o", "short.json"), "ok", short=True),
    Command(("-c", "1-8", "-b", "20"), "Best"),
    Command(("-c", "1-8", "-b", "1,20", "-o", "main.json", "-o", "main.html", "-o", "main.md"), "Best"),
    Command(("compare", LINUX, "main.json"), "Windows"),
    Command(("report", "main.json", "-o", "again.html")),
    Command(("-c", "100", *SHORT), "ok"),
    Command(("-c", "2", "-b", "1000", *SHORT, "--key-space=2000"), "ok"),
    Command(("-c", "2", "--driver", "apsw", *SHORT), "ok"),
    Command(("-c", "4", "--driver", "apsw", "--busy", "fair", *SHORT), "ok"),
    Command(("-c", "4", "--update-ratio", "0.2", *SHORT), "ok"),
    Command(("-c", "2", "--batch", "10", *SHORT), "ok"),
    Command(("-c", "2", "--checkpointer", *SHORT), "ok"),
    Command(("methods", "--phase", "insert", "--scale", "20", "--repeat", "1"), "ok"),
    Command(("keys", "--users=20", "--picks=10", "--items=60", "--repeat=1"), "uuid"),
    Command(("cycles", "--cycles", "3", "--settings", "wal", "--repeat", "1"), "cycle"),
    Command(("crash", "--rounds", "5", "--seed", "1"), "kills"),
    Command(("crash", "--power-loss", "--images", "20"), "images"),
    Command(("ab", "--a=--synchronous=full", "--b=--synchronous=off", "--max-pairs=10", "-c=2", *SHORT[1:])),
    Command(("ab", f"--python-a={PYTHON}", f"--python-b={PYTHON}", "--max-pairs=10", "-c=1", *SHORT[1:])),
    *(_strike(phase, "-c", "2", *SHORT) for phase in PHASES),
    _strike("pair", "ab", f"--python-a={PYTHON}", f"--python-b={PYTHON}", "-c=1", *SHORT[1:]),
    Command(("kv", *SHORT, "--dir", "C:\\work"), "ok"),
    Command(("kv", *SHORT, "--dir", "\\\\?\\C:\\work"), "ok"),
    Command(("kv", *SHORT, "--dir", "Q:\\nothing"), "Choose another --dir", 2),
    *(_encoded(name) for name in ("cp437", "cp1252", "ascii")),
)


class Ended(NamedTuple):
    """How a command ended."""

    command: Command
    problems: tuple[str, ...]
    """What is not as it should be."""
    seconds: float


def run(wine: Wine, commands: Sequence[Command]) -> Iterator[Ended]:
    """Run commands one after the other in one folder, and yield how each of them ended."""
    place = wine.work / "commands of a user"
    place.mkdir(exist_ok=True)
    for command in commands:
        begun = time.monotonic()
        yield Ended(command, tuple(_problems(wine, place, command)), time.monotonic() - begun)


def _problems(wine: Wine, place: Path, command: Command) -> Iterator[str]:
    arguments = (*command.program, *command.words)
    try:
        done = wine.run(*arguments, timeout_s=LONGEST_S, environment=dict(command.environment), cwd=place)
    except subprocess.TimeoutExpired:
        yield f"did not end within {LONGEST_S:.0f} s"
        return
    said = done.stdout + done.stderr
    if done.returncode != command.code:
        yield f"exit code {done.returncode}, not {command.code}: {said[-2000:]}"
    if "Traceback" in said:
        yield f"a traceback: {said[-2000:]}"
    if not re.search(command.said, said):
        yield f"{command.said!r} was not said: {said[-2000:]}"
    if left := [path.name for path in place.glob("sqlstress-*")]:
        yield f"left: {', '.join(left)}"
