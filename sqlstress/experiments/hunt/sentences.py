"""Sentences of hunt, a function each; its parameters are the facts of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.analysis import wording
from sqlstress.analysis.finding import Finding, texts
from sqlstress.analysis.wording import duration, listing
from sqlstress.statistics.units import format_duration, plural, whole


def hunt_what(
    *,
    library: str,
    driver: str,
    round: float,
    seed: int,
    work: str | None = None,
    pauses: bool = False,
) -> str:
    work_part = f" of {work}" if work else ""
    pauses_text = "processes pause at random calls inside SQLite" if pauses else "without pauses"
    return (
        f"Hunt{work_part} with {library}, driver {driver}; rounds of {format_duration(round)}, "
        f"{pauses_text}; seed {seed}."
    )


def hunt_tried(*, rounds: int, took_ns: float, done: Sequence[Finding]) -> str:
    return f"Tried {plural(rounds, 'round')} in {duration(took_ns)}: {', '.join(texts(done))}."


def hunt_done(*, count: int, what: str) -> str:
    return f"{whole(count)} {what}s"


def hunt_calls(*, count: int, kind: str) -> str:
    return f"{plural(count, 'call')} of {kind}"


def hunt_found(*, took_ns: float, library: str, what: Sequence[Finding]) -> str:
    return f"FAILED after {duration(took_ns)}: {library} {listing(texts(what))}."


def hunt_lost() -> str:
    return "lost acknowledged commits"


def hunt_stale() -> str:
    return "returned data older than a commit acknowledged before the read"


def hunt_torn() -> str:
    return "returned an inconsistent snapshot"


def hunt_check_failed(*, name: str) -> str:
    return f"failed the check {name}"


def hunt_damaged() -> str:
    return "damaged the database file"


def hunt_work_failed(*, took_ns: float, checks: Sequence[str]) -> str:
    return f"FAILED after {duration(took_ns)}: {listing(checks)}."


def hunt_again(*, failed: int, tries: int, smallest: Finding | None = None) -> str:
    smallest_part = f"; the smallest round {smallest.text}" if smallest else ""
    return f"Repeated, this round failed {whole(failed)} of {plural(tries, 'time')}{smallest_part}."


def hunt_again_smallest(*, failed: int, tries: int) -> str:
    return f"(below) failed {whole(failed)} of {plural(tries, 'time')}"


def hunt_once(*, tries: int) -> str:
    return (
        f"Repeated {plural(tries, 'time')}, this round did not fail again. The report keeps what was found."
    )


def hunt_smallest(*, load: Finding) -> str:
    return f"Smallest round that still fails: {load.text}."


def hunt_round(*, load: Finding) -> str:
    return f"The round that failed: {load.text}."


def hunt_load(
    *,
    writers: int,
    journal: str,
    readers: int | None = None,
    holders: int | None = None,
    checkpointers: int | None = None,
    modes: Sequence[str] | None = None,
    autocheckpoint: int | None = None,
    pauses: Sequence[Finding] | None = None,
    points: Sequence[str] | None = None,
) -> str:
    readers_part = f", {plural(readers, 'reader')}" if readers is not None else ""
    holders_part = f", {plural(holders, 'long reader')}" if holders is not None else ""
    checkpointers_part = (
        (f", {plural(checkpointers, 'checkpointer')} ({', '.join(modes)})")
        if checkpointers is not None and modes
        else ""
    )
    autocheckpoint_part = (
        (f", wal_autocheckpoint {whole(autocheckpoint)}") if autocheckpoint is not None else ""
    )
    pauses_part = f"; pauses: {', '.join(texts(pauses))}" if pauses else ""
    points_part = f" (at {', '.join(points)})" if points else ""
    return (
        f"{plural(writers, 'writer')}{readers_part}{holders_part}{checkpointers_part}; journal "
        f"{journal}{autocheckpoint_part}{pauses_part}{points_part}"
    )


def hunt_work(
    *,
    processes: int,
    pauses: Sequence[Finding] | None = None,
    points: Sequence[str] | None = None,
) -> str:
    pauses_part = f"; pauses: {', '.join(texts(pauses))}" if pauses else ""
    points_part = f" (at {', '.join(points)})" if points else ""
    return f"{wording.processes(processes)}{pauses_part}{points_part}"


def hunt_pause(*, role: str, one_in: int) -> str:
    return f"each {role} at 1 of {whole(one_in)} calls"


def hunt_command(*, command: str) -> str:
    return f"Repeat it: {command}"


def hunt_wal_reset() -> str:
    return (
        "Probable cause: the WAL-reset bug of SQLite 3.7.0 to 3.51.2. When a checkpoint and a commit "
        "coincide, the checkpoint can skip frames of the new WAL and lose commits. Use 3.51.3 or later, "
        "3.50.7 or 3.44.6: https://www.sqlite.org/wal.html"
    )


def hunt_wal_reset_too() -> str:
    return (
        "This SQLite also has the WAL-reset bug, which loses commits. Repeat with SQLite 3.51.3 or later "
        "to rule it out: https://www.sqlite.org/wal.html"
    )


def hunt_nothing() -> str:
    return (
        "Nothing found. This does not prove that there is nothing to find: hunt longer (--max-time 10m) "
        "or again."
    )


def hunt_unchecked() -> str:
    return (
        "No check was given, so nothing that only you know of your data was verified. Add a check to "
        "find lost updates."
    )


def hunt_no_round() -> str:
    return "No round finished."
