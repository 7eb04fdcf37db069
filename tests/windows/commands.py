"""What a user on Windows would type, and what must come of it."""

from __future__ import annotations

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
"""For the slowest on a busy machine: `ab` of two Pythons took 500 s on one."""
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
    descriptors: int = 0
    """Descriptors that Wine's server needs for it, where that is more than is allowed everywhere."""


def _strike(name: str, phase: str, *words: str) -> Command:
    program = (f"Z:{STRIKES}".replace("/", "\\"), name, phase)
    return Command(words, "(?i)stopped|interrupted", 130, phase == "measuring", program)


def _encoded(name: str) -> Command:
    words = ("kv", *SHORT, "-o", f"{name} ü 表.md")
    return Command(words, "TPS", environment=(("PYTHONIOENCODING", name),))


EXAMPLES = f"Z:{ROOT}/examples"
LINUX = f"Z:{ROOT}/reports/linux-1-and-20-files.json"
PYTHON = "C:/Python312/python.exe"
LINES = (
    "import os, sqlite3, sys; "
    "database = sqlite3.connect(os.environ['SQLSTRESS_DATABASE'], timeout=20, isolation_level=None); "
    "add = 'INSERT INTO ticket VALUES (?)'; "
    "[print(database.execute(add, [line]) and 'ok', flush=True) for line in sys.stdin]"
)
"""A program for --lines."""
DEEP = "\\".join(["d" * 40] * 6)
"""A folder whose path has 260 characters and more."""
PLACE = "commands of a user"
VERBATIM_DEEP = f"\\\\?\\C:\\work\\{PLACE}\\{DEEP}"
SIGNALS = "SIGINT", "SIGBREAK"
HIGHEST = "Best|highest"
PHASES = ("preparing", "starting", "measuring", "verifying")

PURE = (Command(("-c", "2", *SHORT), "Python loop(.|\\n)*was not built", short=True),)
"""What is run as long as nothing is compiled."""
NATIVE = (
    Command(("-c", "2", "-b", "3", "--loop", "native", *SHORT, "--details"), "(?i)native loop", short=True),
    Command(
        ("-c", "1", "--loop", "native", "--driver", "apsw", *SHORT, "--details"),
        "(?i)native loop",
        short=True,
    ),
    Command(("-c", "2", "--loop", "native", "--driver", "dry", *SHORT, "--details"), "(?i)native loop"),
    Command(("-c", "4", "--loop", "native", "--busy", "fair", *SHORT, "--details"), "(?i)native loop"),
    Command(
        ("-c", "2", "--loop", "native", "--update-ratio", "0.2", "--batch", "10", *SHORT, "--details"),
        "(?i)native loop",
    ),
    Command(("-c", "2", "--where", *SHORT), "Where the time of an operation goes"),
)
"""What needs the native loop."""
COMMANDS = (
    Command(("doctor",), "FlushFileBuffers", short=True),
    Command(("-c", "2", "-b", "3", *SHORT, "-o", "short.json"), "ok", short=True),
    Command(("-c", "1-8", "-b", "20"), HIGHEST),
    Command(("-c", "1-8", "-b", "1,20", "-o", "main.json", "-o", "main.html", "-o", "main.md"), HIGHEST),
    Command(("compare", LINUX, "main.json"), "Windows"),
    Command(("report", "main.json", "-o", "again.html")),
    Command(("-c", "100", *SHORT), "ok"),
    Command(("-c", "2", "-b", "300", *SHORT), "ok", descriptors=7_000),
    Command(("-c", "1", "-b", "1000", *SHORT, "--key-space=2000"), "ok", descriptors=15_000),
    Command(("-c", "2", "-b", "1000", *SHORT, "--key-space=2000"), "ok", descriptors=22_000),
    Command(("-c", "2", "--driver", "apsw", *SHORT), "ok"),
    Command(("-c", "4", "--driver", "apsw", "--busy", "fair", *SHORT), "ok"),
    Command(("-c", "4", "--update-ratio", "0.2", *SHORT), "ok"),
    Command(("-c", "2", "--batch", "10", *SHORT), "ok"),
    Command(("-c", "2", "--checkpointer=passive", *SHORT), "ok"),
    Command(("methods", "--phase", "insert", "--scale", "20", "--repeat", "1"), "Highest"),
    Command(("keys", "--users=20", "--picks=10", "--items=60", "--repeat=1"), "uuid"),
    Command(("cycles", "--cycles", "3", "--settings", "wal", "--repeat", "1"), "cycle"),
    Command(("crash", "--rounds", "5", "--seed", "1"), "kills"),
    Command(("ab", "--a=--synchronous=full", "--b=--synchronous=off", "--max-pairs=10", "-c2", *SHORT[1:])),
    Command(("ab", f"--python-a={PYTHON}", f"--python-b={PYTHON}", "--max-pairs=10", "-c1", *SHORT[1:])),
    *(_strike(name, phase, "-c", "2", *SHORT) for name in SIGNALS for phase in PHASES),
    _strike("SIGINT", "pair", "ab", f"--python-a={PYTHON}", f"--python-b={PYTHON}", "-c1", *SHORT[1:]),
    Command(("kv", *SHORT, "--dir", "C:\\work"), "ok"),
    Command(("kv", *SHORT, "--dir", "\\\\?\\C:\\work"), "ok"),
    Command(("kv", *SHORT, "-c", "2", "--dir", DEEP), "ok"),
    Command(("kv", *SHORT, "-c", "2", "--dir", VERBATIM_DEEP), "ok"),
    Command(("methods", "--phase=insert", "--scale=20", "--repeat=1", "--dir", DEEP), "Highest"),
    Command(("crash", "--rounds", "2", "--seed", "1", "--dir", DEEP), "kills"),
    Command(("kv", *SHORT, "--dir", f"{DEEP}\\no"), r"a path of \d+ characters.* Choose another --dir", 2),
    Command(("kv", *SHORT, "-o", f"{DEEP}\\r.json"), "-o .* More data available. Choose another file", 2),
    Command(("kv", *SHORT, "--dir", "Q:\\nothing"), "Choose another --dir", 2),
    Command(("hunt", "--max-time", "20s", "--driver", "apsw"), r"Tried \d+ round"),
    Command(("hunt", "app", f"{EXAMPLES}/app/bank.py", "--max-time", "20s"), r"Tried \d+ round"),
    Command(("app", f"{EXAMPLES}/app/bank.py", "-c", "2", "--repeat", "1"), "ok"),
    Command(
        ("app", f"{EXAMPLES}/app/bank_wrong.py", "-c", "2", "--repeat", "1", "--strict"), "bank_wrong.py:", 1
    ),
    Command(
        (
            "exec",
            "-c2",
            "--repeat=1",
            "--lines",
            f"--setup={EXAMPLES}/tickets.sql",
            "--",
            PYTHON,
            "-c",
            LINES,
        ),
        "ok",
    ),
    Command(("watch", "main.json"), "fcntl(.|\\n)*Linux or macOS", 2),
    Command(("exec", "--where", "--", "cmd", "/c", "exit 0"), "--where is not available(.|\\n)*fcntl", 2),
    *(_encoded(name) for name in ("cp437", "cp1252", "ascii")),
)


class Ended(NamedTuple):
    """How a command ended."""

    command: Command
    problems: tuple[str, ...]
    """What is not as it should be."""
    seconds: float
    left_out: str = ""
    """Why it was not run."""


def run(wine: Wine, commands: Sequence[Command]) -> Iterator[Ended]:
    """Run commands one after the other in one folder, and yield how each of them ended."""
    place = wine.work / PLACE
    place.joinpath(*DEEP.split("\\")).mkdir(parents=True, exist_ok=True)
    allowed = allow_descriptors()
    for command in commands:
        if command.descriptors > allowed:
            why = f"Wine's server needs {command.descriptors} descriptors for it and {allowed} are allowed"
            yield Ended(command, (), 0.0, why)
            continue
        begun = time.monotonic()
        yield Ended(command, tuple(_problems(wine, place, command)), time.monotonic() - begun)


def _problems(wine: Wine, place: Path, command: Command) -> Iterator[str]:
    arguments = (*command.program, *command.words)
    before = _ours(wine, place)  # of a command that did not end
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
    if left := _ours(wine, place) - before:
        yield f"left: {', '.join(sorted(path.name for path in left))}"


def _ours(wine: Wine, place: Path) -> set[Path]:
    return {*wine.work.glob("sqlstress-*"), *place.rglob("*sqlstress-*")}
