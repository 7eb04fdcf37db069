"""The command line of the fleet's benchmark."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import psutil
from tabulate import tabulate

from benchmarks.fleet import __doc__ as about
from benchmarks.fleet.cluster import PLAN, LocalCluster
from benchmarks.fleet.simulated import simulate
from benchmarks.fleet.watched import Watched, watched
from benchmarks.options import positive
from benchmarks.surroundings import revision
from sqlstress.report import read, write_atomically


@dataclass(frozen=True, slots=True)
class Row:
    """What one part of the benchmark found."""

    what: str
    hosts: int
    runs: int
    seconds: float
    """Of the command, from its start to its end; of several runs their median."""
    client_mib: float
    """Peak resident memory of the command."""
    scheduler_mib: float | None
    """The scheduler's; None without one."""
    lost: int
    """Reports of hosts that lived which did not come back whole."""
    load: float
    """Load average when it was done: over the cores, others were at work too."""


PARTS = ("simulated", "real", "killed")


def main(arguments: list[str]) -> int:
    """Carry out the command line and return the exit code: 0, 1 where a report was lost, 2, or 130."""
    given = _parser().parse_args(arguments)
    if unknown := {*given.parts} - {*PARTS}:
        print(f"Error: there is no part {', '.join(sorted(unknown))}.", file=sys.stderr)
        return 2
    rows: list[Row] = []
    try:
        for part in _parts(given):
            rows.append(part())
            print(_table(rows[-1:]), flush=True)
            if given.output:
                _write(rows, arguments, given.output)
    except KeyboardInterrupt:
        return 130
    return 1 if any(row.lost for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m benchmarks fleet",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = found.add_argument
    add("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    add("--workers", type=positive, default=64, help="hosts for real (default: 64)")
    add("--simulated", type=positive, default=1000, help="hosts simulated by their reports (default: 1000)")
    add("--kills", type=positive, default=100, help="runs in which a host is killed (default: 100)")
    add("--minutes", type=float, default=60.0, help="begin no further kill after so long (default: 60)")
    add("--seed", type=int, default=1, help="of the moments of the kills (default: 1)")
    add("--output", type=Path, help="write Markdown and JSON there")
    return found


def _parts(given: argparse.Namespace) -> Iterator[Callable[[], Row]]:
    parts = (
        lambda: _simulated(given.simulated),
        lambda: _real(given.workers),
        lambda: _killed(given.kills, given.minutes * 60, Random(given.seed)),
    )
    yield from (part for name, part in zip(PARTS, parts, strict=True) if name in (given.parts or PARTS))


def _simulated(count: int) -> Row:
    with TemporaryDirectory(prefix="sqlstress-benchmarks-") as own:
        reports = simulate(Path(own) / "reports", count)
        run = watched(
            [sys.executable, "-m", "sqlstress", "fleet", "--folder", str(reports), "-o", f"html:{own}/f"]
        )
        assert run.code == 0, run.err
        return _row("reports of a folder, as text and as a page", count, [run], None, 0)


def _real(count: int) -> Row:
    with _cluster() as cluster:
        cluster.hosts(*(f"host{number}" for number in range(count)))
        folder = cluster.folder / "reports"
        run = Watched.of(cluster.command(PLAN, folder))
        scheduler = cluster.scheduler.memory_info().rss
        return _row("a plan on every host at once", count, [run], scheduler, count - len(_whole(folder)))


KILLED_AMONG = 5


def _killed(count: int, seconds: float, random: Random) -> Row:
    begun, lost, runs = time.monotonic(), 0, list[Watched]()
    with _cluster() as cluster:
        names = [f"host{number}" for number in range(KILLED_AMONG)]
        hosts = {name: cluster.hosts(name) for name in names}
        while len(runs) < count and time.monotonic() - begun < seconds:
            victim, folder = random.choice(names), cluster.folder / f"reports{len(runs)}"
            command = cluster.command(PLAN, folder)
            time.sleep(random.uniform(0.0, 1.5 * runs[-1].seconds if runs else 10.0))
            hosts[victim].kill()
            runs.append(Watched.of(command))
            lost += len({*names} - {victim} - _whole(folder))
            hosts[victim] = cluster.hosts(victim)
        scheduler = cluster.scheduler.memory_info().rss
    return _row(f"one of {KILLED_AMONG} hosts killed at a random moment", KILLED_AMONG, runs, scheduler, lost)


@contextmanager
def _cluster() -> Iterator[LocalCluster]:
    with (
        TemporaryDirectory(prefix="sqlstress-benchmarks-", ignore_cleanup_errors=True) as own,
        LocalCluster(Path(own).resolve()) as cluster,
    ):
        yield cluster


def _whole(folder: Path) -> set[str]:
    """Return the hosts whose reports are there and whole."""
    if not folder.is_dir():
        return set()
    return {
        path.stem
        for path in folder.glob("*.json")
        if all(run.error is None and len(run.trials) == run.case.repeat for run in read(path).runs)
    }


def _row(what: str, hosts: int, runs: list[Watched], scheduler: int | None, lost: int) -> Row:
    ordered = sorted(runs, key=lambda run: run.seconds)
    return Row(
        what,
        hosts,
        len(runs),
        round(ordered[len(ordered) // 2].seconds, 1),
        round(max(run.peak_bytes for run in runs) / 2**20, 1),
        None if scheduler is None else round(scheduler / 2**20, 1),
        lost,
        round(psutil.getloadavg()[0], 1),
    )


HEADERS = ("what", "hosts", "runs", "seconds", "client MiB", "scheduler MiB", "lost", "load")


def _table(rows: list[Row], form: str = "simple") -> str:
    return tabulate([[*asdict(row).values()] for row in rows], HEADERS, tablefmt=form)


def _write(rows: list[Row], arguments: list[str], output: Path) -> None:
    made = datetime.now(UTC).isoformat(timespec="seconds")
    command = f"python -m benchmarks fleet {shlex.join(arguments)}".strip()
    notes = (about or "").partition("One machine")[2].strip().replace("\n", " ")
    memory = psutil.virtual_memory().total / 2**30
    where = f"{made}, {revision()}, {psutil.cpu_count()} cores, {memory:.1f} GiB"
    text = f"# fleet\n\n`{command}`\n\n{where}\n\nOne machine{' '}{notes}\n\n{_table(rows, 'pipe')}\n"
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(output.with_suffix(".md"), text)
    plain = {
        "command": command,
        "created": made,
        "revision": revision(),
        "rows": [asdict(row) for row in rows],
    }
    write_atomically(output.with_suffix(".json"), json.dumps(plain, indent=1) + "\n")
