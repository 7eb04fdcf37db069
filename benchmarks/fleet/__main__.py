"""The command line of the fleet's benchmark."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

import psutil
from tabulate import tabulate

from benchmarks import fleet
from benchmarks.document import CHECKOUT, revision, write
from benchmarks.fleet.cluster import PLAN, LocalCluster, environment
from benchmarks.options import command, positive
from benchmarks.watch import Watch
from sqlstress.report import read

PARTS = ("simulated", "real", "killed")
REAL = CHECKOUT / "reports" / "linux-20-files.json"
"""The report that those of simulated hosts are made of."""
KILLED_AMONG = 5
HEADERS = ("what", "hosts", "runs", "seconds", "client MiB", "scheduler MiB", "lost", "load")


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


def main(arguments: list[str]) -> int:
    """Carry out the command line and return the exit code: 0, 1 where a report was lost, 2, or 130."""
    parser = command("fleet", fleet.__doc__, output=False)
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    add("--workers", type=positive, default=64, help="hosts for real (default: 64)")
    add("--simulated", type=positive, default=1000, help="hosts simulated by their reports (default: 1000)")
    add("--kills", type=positive, default=100, help="runs in which a host is killed (default: 100)")
    add("--minutes", type=float, default=60.0, help="begin no further kill after so long (default: 60)")
    add("--seed", type=int, default=1, help="of the moments of the kills (default: 1)")
    given, rows = parser.parse_args(arguments), list[Row]()
    if unknown := {*given.parts} - {*PARTS}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    try:
        for part in PARTS:
            if part in (given.parts or PARTS):
                rows.append(_measured(part, given))
                print(tabulate([[*asdict(rows[-1]).values()]], HEADERS), flush=True)
                if given.output:
                    _write(rows, arguments, given.output)
    except KeyboardInterrupt:
        return 130
    return 1 if any(row.lost for row in rows) else 0


def _measured(part: str, given: argparse.Namespace) -> Row:
    if part == "simulated":
        return _simulated(given.simulated)
    if part == "real":
        return _real(given.workers)
    return _killed(given.kills, given.minutes * 60, Random(given.seed))


@dataclass(frozen=True, slots=True)
class Watched:
    """How a command ended."""

    code: int
    err: str
    seconds: float
    """Since it was started."""
    peak_bytes: int
    """Its own resident memory, at most, as it was seen."""


def _watched(running: subprocess.Popen[str]) -> Watched:
    watch, begun = Watch(0.05), psutil.Process(running.pid).create_time()
    with watch.watching(running.pid):
        _, err = running.communicate()
    peak = max((moment.parent.memory for moment in watch.moments), default=0)
    return Watched(running.returncode, err, time.time() - begun, peak)


def _simulated(count: int) -> Row:
    """Show the reports of many hosts, made of a real one: only its rates and its sync's cost are changed."""
    with TemporaryDirectory(prefix="sqlstress-benchmarks-") as own:
        folder, random = Path(own) / "reports", Random(1)
        folder.mkdir()
        host = json.loads(REAL.read_text(encoding="utf-8"))
        sync, trials = host["environment"]["sync"], [trial for run in host["runs"] for trial in run["trials"]]
        cost, rates = sync["overwrite_p50_ns"], [trial["tps"] for trial in trials]
        for number in range(count):
            factor = random.lognormvariate(0, 0.4)
            host["created"] = f"2026-01-01T00:00:00.{number:06}+00:00"
            sync["overwrite_p50_ns"] = int(cost / factor)
            for trial, rate in zip(trials, rates, strict=True):
                trial["tps"] = rate * factor * random.lognormvariate(0, 0.05)
            (folder / f"host{number:05}.json").write_text(json.dumps(host), encoding="utf-8")
        words = ("-m", "sqlstress", "fleet", "--folder", str(folder), "-o", f"html:{own}/f")
        pipe = subprocess.PIPE
        running = subprocess.Popen(
            [sys.executable, *words], stdout=pipe, stderr=pipe, text=True, env=environment()
        )
        run = _watched(running)
        assert run.code == 0, run.err
    return _row("reports of a folder, as text and as a page", count, [run], None, 0)


def _real(count: int) -> Row:
    with _cluster() as cluster:
        cluster.hosts(*(f"host{number}" for number in range(count)))
        folder = cluster.folder / "reports"
        run = _watched(cluster.command(PLAN, folder))
        scheduler = cluster.scheduler.memory_info().rss
        return _row("a plan on every host at once", count, [run], scheduler, count - len(_whole(folder)))


def _killed(count: int, seconds: float, random: Random) -> Row:
    begun, lost, runs = time.monotonic(), 0, list[Watched]()
    with _cluster() as cluster:
        names = [f"host{number}" for number in range(KILLED_AMONG)]
        hosts = {name: cluster.hosts(name) for name in names}
        while len(runs) < count and time.monotonic() - begun < seconds:
            victim, folder = random.choice(names), cluster.folder / f"reports{len(runs)}"
            running = cluster.command(PLAN, folder)
            time.sleep(random.uniform(0.0, 1.5 * runs[-1].seconds if runs else 10.0))
            hosts[victim].kill()
            runs.append(_watched(running))
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
    return {
        path.stem
        for path in folder.glob("*.json")
        if all(run.error is None and len(run.trials) == run.case.repeat for run in read(path).runs)
    }


def _row(what: str, hosts: int, runs: list[Watched], scheduler: int | None, lost: int) -> Row:
    return Row(
        what,
        hosts,
        len(runs),
        round(median(run.seconds for run in runs), 1),
        round(max(run.peak_bytes for run in runs) / 2**20, 1),
        None if scheduler is None else round(scheduler / 2**20, 1),
        lost,
        round(psutil.getloadavg()[0], 1),
    )


def _write(rows: list[Row], arguments: list[str], output: Path) -> None:
    made = datetime.now(UTC).isoformat(timespec="seconds")
    words = f"python -m benchmarks fleet {shlex.join(arguments)}".strip()
    _, begin, notes = (fleet.__doc__ or "").partition("One machine")
    memory = psutil.virtual_memory().total / 2**30
    where = f"{made}, {revision()}, {psutil.cpu_count()} cores, {memory:.1f} GiB"
    plain = [asdict(row) for row in rows]
    table = tabulate([[*row.values()] for row in plain], HEADERS, tablefmt="pipe")
    told = " ".join(f"{begin}{notes}".split())
    markdown = f"# fleet\n\n`{words}`\n\n{where}\n\n{told}\n\n{table}\n"
    write(output, markdown, {"command": words, "created": made, "revision": revision(), "rows": plain})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
