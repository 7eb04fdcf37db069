"""The suite under Wine, room by room, in parallel."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer
from typing import NamedTuple

from tests.windows.gaps import Gap
from tests.windows.installed import add_what_was_built, checkout
from tests.windows.wine import ROOT, Wine

AT_ONCE = 2
LONGEST_S = 1800.0
TEMPORARY = "t"
"""Below it pytest's folders lie: their paths are long, and Windows' are to be short."""
_COUNTS = re.compile(r"^=* ?(\d+ (?:passed|failed|skipped|error|deselected).*?) in [\d.]+s", re.MULTILINE)


class Ran(NamedTuple):
    """How a room ended."""

    room: str
    code: int | None
    """pytest's exit code; None: it took too long, and was ended."""
    counts: str
    """"12 passed, 1 skipped"; "" when it came to no end."""
    log: Path

    @property
    def ok(self) -> bool:
        """Whether all that it has passed; 5 is pytest's word for no tests."""
        return self.code in (0, 5)


def rooms() -> list[str]:
    """Return what is run by itself: each folder of tests, and each module that is in none."""
    tests = ROOT / "tests"
    folders = sorted({path.parent for path in tests.rglob("test_*.py")})
    own = [path.relative_to(ROOT).as_posix() for path in folders if path not in (tests, tests / "windows")]
    return [*own, *(path.relative_to(ROOT).as_posix() for path in sorted(tests.glob("test_*.py")))]


def run(wine: Wine, asked: Sequence[str], gaps: Iterable[Gap]) -> Iterator[Ran]:
    """Run rooms, some at once, and yield how each of them ended."""
    place = checkout(wine)
    add_what_was_built(wine, place)
    left_out = [option for gap in gaps for test in gap.tests for option in _left_out(test)]
    logs = wine.folder / "logs"
    for folder in (logs, wine.drive / TEMPORARY):
        folder.mkdir(exist_ok=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda room: _run(wine, place, room, left_out, logs), asked)


def _left_out(test: str) -> tuple[str, str]:
    return ("--deselect" if "::" in test else "--ignore"), test


def _run(wine: Wine, place: Path, room: str, left_out: Sequence[str], logs: Path) -> Ran:
    # Folders too: a room is what lies in it and in no room below it.
    modules = [room] if room.endswith(".py") else _modules(place, room)
    modules = [module for module in modules if module not in left_out]
    name = room.removeprefix("tests/").replace("/", "-").removesuffix(".py")
    options = (
        "-v",
        "-n0",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        "-oconsole_output_style=classic",
        f"--basetemp=C:\\{TEMPORARY}\\{name}",
    )
    log = logs / f"{name}.log"
    if not modules:
        return Ran(room, 5, "nothing to run", log)
    code = _logged(wine, place, ("-m", "pytest", *options, *left_out, *modules), log)
    counts = _COUNTS.search(log.read_text(encoding="utf-8", errors="replace"))
    return Ran(room, code, counts[1] if counts else "", log)


def _logged(wine: Wine, place: Path, arguments: Sequence[str], log: Path) -> int | None:
    """Write down what a process says line by line; return its exit code, None if it took too long.

    Its output is a pipe: Wine hands no file on.
    """
    with wine.popen(arguments, cwd=place, stderr=subprocess.STDOUT) as process:
        given_up = Event()

        def give_up() -> None:
            given_up.set()
            process.kill()

        guard = Timer(LONGEST_S, give_up)
        guard.start()
        with log.open("w", encoding="utf-8", buffering=1) as stream:
            for line in process.stdout or ():
                stream.write(line)
        guard.cancel()
        code = process.wait()
    return None if given_up.is_set() else code


def _modules(place: Path, room: str) -> list[str]:
    return [f"{room}/{path.name}" for path in sorted((place / room).glob("test_*.py"))]
