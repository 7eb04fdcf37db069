"""Hunts, one after the other, and a row of a table for each library, or each application, that was hunted."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tabulate import tabulate

from benchmarks.document import revision
from benchmarks.hunt.mutants import MUTANTS, mutated
from sqlstress.report.document import write_atomically

FLAGS = ("-O1", "-fPIC", "-shared", "-w", "-DSQLITE_THREADSAFE=1", "-DSQLITE_ENABLE_COLUMN_METADATA")
HEADERS = ("hunted", "found", "median s", "longest s", "hunted s", "commits", "note")


@dataclass(frozen=True, slots=True)
class Subject:
    """A library to hunt in, or an application."""

    name: str
    folder: Path | None = None
    """Folder of the library that replaces Python's own; None if no library does."""
    note: str = ""
    file: str = ""
    """File of the application; empty for the built-in load."""


@dataclass(frozen=True, slots=True)
class Row:
    """Result of the hunts in one library."""

    name: str
    hunts: int
    found_s: tuple[float, ...]
    """Seconds until a bug was found, for each hunt that found it."""
    hunted_s: float
    commits: int
    note: str

    def cells(self) -> tuple[Any, ...]:
        """Return the cells of the table's row."""
        found = self.found_s
        return (
            self.name,
            f"{len(found)} of {self.hunts}",
            f"{median(found):.1f}" if found else "",
            f"{max(found):.1f}" if found else "",
            f"{self.hunted_s:.0f}",
            f"{self.commits:,}",
            self.note,
        )


def main(words: Sequence[str]) -> int:
    """Run the command line; return the exit code."""
    given = _parser().parse_args(words)
    rows: list[Row] = []
    with TemporaryDirectory(prefix="sqlstress-hunts-") as name:
        try:
            for subject in _subjects(given, Path(name)):
                rows.append(_hunted(subject, given, Path(name)))
                _write(rows, given, words)
        except KeyboardInterrupt:
            return 130
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"Error: {error}", file=sys.stderr)
            return 4
    print(tabulate([row.cells() for row in rows], HEADERS))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks hunt", description="Time to find.")
    parser.add_argument("files", nargs="*", help="applications to hunt in, instead of the built-in load")
    parser.add_argument("--hunts", type=int, default=5, help="hunts in each library")
    parser.add_argument("--max-time", default="60s", help="of each hunt")
    parser.add_argument("--driver", default="sqlite3")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that hunts")
    parser.add_argument("--no-pauses", action="store_true")
    parser.add_argument("--amalgamation", type=Path, help="a sqlite3.c to make faults in")
    parser.add_argument("--only", default="", help="only faults whose name has this in it")
    parser.add_argument("--output", type=Path, help="Markdown and JSON, written after each library")
    return parser


def _subjects(given: argparse.Namespace, folder: Path) -> Iterator[Subject]:
    if given.files:
        yield from (Subject(Path(file).name, file=file) for file in given.files)
        return
    if given.amalgamation is None:
        yield Subject(given.driver)
        return
    source = given.amalgamation.read_text(encoding="utf-8")
    if not given.only:
        yield Subject("as it is", _built(source, folder / "plain"))
    for number, mutant in enumerate(MUTANTS):
        if given.only in mutant.name:
            library = _built(mutated(source, mutant), folder / f"fault-{number}")
            yield Subject(mutant.name, library, mutant.why)


def _built(source: str, folder: Path) -> Path:
    """Compile a library, and return its folder."""
    folder.mkdir()
    (folder / "sqlite3.c").write_text(source, encoding="utf-8")
    command = ("cc", *FLAGS, str(folder / "sqlite3.c"), "-o", str(folder / "libsqlite3.so.0"), "-lm")
    subprocess.run(command, check=True)
    return folder


def _hunted(subject: Subject, given: argparse.Namespace, folder: Path) -> Row:
    found: list[float] = []
    hunted_s, commits = 0.0, 0
    for seed in range(1, given.hunts + 1):
        hunt = _hunt(subject, given, folder, seed)
        hunted_s += hunt["seconds"]
        commits += sum(hunt["operations"].values()) if subject.file else hunt["operations"].get("writer", 0)
        if hunt["found"]:
            found.append(hunt["seconds"])
        print(f"{subject.name}, seed {seed}: {hunt['seconds']:.1f} s, {bool(hunt['found'])}", file=sys.stderr)
    return Row(subject.name, given.hunts, tuple(found), hunted_s, commits, subject.note)


def _hunt(subject: Subject, given: argparse.Namespace, folder: Path, seed: int) -> dict[str, Any]:
    report = folder / "report.json"
    command = [given.python, "-m", "sqlstress", "hunt", "--seed", str(seed), "--max-time", given.max_time]
    command += ["--shrink-time", "0s", "--dir", str(folder), "--quiet"]
    command += ["--output", f"json:{report}", *(["--no-pauses"] if given.no_pauses else [])]
    command += ["app", subject.file] if subject.file else ["--driver", given.driver]
    environment = dict(os.environ)
    if subject.folder:
        environment["LD_LIBRARY_PATH"] = str(subject.folder)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))["hunt"]["found"]
    return found


def _write(rows: Sequence[Row], given: argparse.Namespace, words: Sequence[str]) -> None:
    if given.output is None:
        return
    head = f"`python -m benchmarks hunt {' '.join(words)}`, revision {revision()}."
    table = tabulate([row.cells() for row in rows], HEADERS, tablefmt="github")
    write_atomically(given.output.with_suffix(".md"), f"# Hunts\n\n{head}\n\n{table}\n")
