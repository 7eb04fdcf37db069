"""Findings on the user's calls, connections and locks that do not come from failed statements.

A call is one call of a function of the user's Python file. A sighting is an observation in the report. A
group is the set of runs that the report shows in a single table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sqlstress.analysis import sentences
from sqlstress.analysis.causes import diagnose
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, sightings
from sqlstress.analysis.sentences import TracedStep
from sqlstress.analysis.wal_growth import growth_in_trial
from sqlstress.races.suspicions import LOST_DATA, MIXED
from sqlstress.recording import (
    BACKUP,
    CLOSED,
    COPIED,
    DELETED,
    IN_MEMORY,
    LEFT_OPEN,
    LONG_HOLD,
    LONG_HOLD_S,
    LOST_LOCKS,
    MIN_HOLD_S,
    MOVED,
    NO_EFFECT,
    OPEN_STATEMENT,
    OVERLAP,
    PASSED_OVER,
    REPEATED,
    SCHEMA_CHANGE,
    SCRIPT,
    SLOW_WRITE_S,
    SPLIT,
    UNCLOSED,
    UNFETCHED,
    WAL_HOOK,
)
from sqlstress.report.results import Sighting
from sqlstress.show.blocks import shortened
from sqlstress.sqlite_codes import ERROR, name
from sqlstress.user_work import SUSPICION
from sqlstress.user_work.failure_records import (
    HELD_LONGER,
    MAX_CAUSES,
    errors_after,
    failures_of,
    user_checks,
)

_MISSING_OBJECT = re.compile(r"no such (table|column|index|view)|already exists|duplicate column")
MIN_HOLDS, MIN_HOLD_SHARE, MIN_OUTSIDE = 2, 0.05, 0.5
"""Minimums for a finding on a transaction that holds the write lock for long.

MIN_HOLDS: number of long holds. MIN_HOLD_SHARE: share of the process's run time that it spent outside of
SQLite, or in a slow write, while it held the lock. MIN_OUTSIDE: share of the holds' time outside of SQLite;
does not apply to slow writes.
"""
_FUNCTION = re.compile(
    r"\b(lower|upper|trim|substr|date|datetime|strftime|coalesce|ifnull|cast|abs|json_extract)\s*"
    r"\([^()?]*\) *[=<>]",
    re.IGNORECASE,
)
"""Pattern of a comparison of a function of a column, such as `lower(name) = ?`."""
MIN_HOLDS_OF_CALLS, LARGE_HOLD_SHARE = 0.01, 0.3
"""Minimum share of calls with a long hold; does not apply from a share LARGE_HOLD_SHARE of run time on."""

BUSY_LOCK = 0.5
"""Minimum result of `_wasted_share` from which on holds shorter than LONG_HOLD_S are findings, too."""

MIN_RESTARTS = 3
"""Minimum number of restarts of a backup in several steps, for a finding. A few restarts cost little."""


def lock_losses(group: Group) -> Iterator[Finding]:
    """Yield findings on processes that lost SQLite's locks on a database that they had open."""
    kinds: dict[tuple[str, str, str], list[Sighting]] = {}
    for sighting in sightings(group, LOST_LOCKS):
        key = (sighting.what, sighting.traits["file"], sighting.traits["at"])
        kinds.setdefault(key, []).append(sighting)
    moved_files = {file for kind, file, _ in kinds if kind == MOVED}
    kinds = {key: found for key, found in kinds.items() if key[0] != DELETED or key[1] not in moved_files}
    for (kind, file, at), found in list(kinds.items())[:MAX_CAUSES]:
        if kind in (COPIED, MOVED):
            count, program = sum(sighting.count for sighting in found), found[0].traits["program"]
            moved = kind == MOVED
            yield Finding(
                sentences.touched_file,
                file=file,
                count=count,
                program=program,
                moved=moved,
                at=at or None,
                errors=errors_after(group, MOVED) if moved else [],
            )
            continue
        facts: dict[str, Any] = {}
        if kind == DELETED:
            written = {sighting.traits.get("written") for sighting in found}
            facts = {
                "holders": sum(sighting.count for sighting in found if sighting.traits.get("lock")),
                "signs": any(other != DELETED for other, _, _ in kinds),
                "written": "yes" in written if written != {None} else None,
            }
        if kind == CLOSED:
            facts = {"errors": errors_after(group, CLOSED)}
        count = sum(sighting.count for sighting in found)
        yield Finding(sentences.lost_locks, kind=kind, file=file, count=count, at=at or None, **facts)


def wal_growth_findings(group: Group, *, is_automatic: bool = True) -> Iterator[Finding]:
    """Yield a finding on the largest WAL, if the WAL of any trial grew too much.

    `is_automatic` is False if the user's connections make no automatic checkpoints.
    """
    growths = [
        (trial.wal, kind, run.case)
        for run in group.runs
        for trial in run.all_trials
        if trial.wal
        and (kind := growth_in_trial(trial.wal, run.case.settings.wal_autocheckpoint if is_automatic else 0))
    ]
    if not growths:
        return
    wal, kind, case = max(growths, key=lambda growth: growth[0].most_frames)
    yield Finding(
        sentences.wal_growth,
        where=group.place(case),
        kind=kind,
        wal_bytes=wal.most_frames * wal.page_size,
        frames=wal.most_frames,
        checkpointed=wal.most_checkpointed / wal.most_frames,
        live_frames=wal.frames,
        end_bytes=wal.end_bytes,
    )


def wal_findings(group: Group, *, is_automatic: bool = True) -> Iterator[Finding]:
    """Yield findings on WAL hooks and open queries. Without any of these, yield one on a grown WAL.

    An open query keeps its snapshot, so a checkpoint cannot reset the WAL. `is_automatic` is False if the
    user's connections make no automatic checkpoints.
    """
    statements = dict[tuple[str, str, str], float]()
    for sighting in sightings(group, OPEN_STATEMENT):
        traits = sighting.traits
        kind, seconds = (sighting.what, traits["at"], traits.get("blob", "")), float(traits["seconds"])
        statements[kind] = max(seconds, statements.get(kind, 0.0))
    hooks = {sighting.what: sighting for sighting in sightings(group, WAL_HOOK)}
    for at, sighting in hooks.items():
        yield Finding(sentences.wal_hook, at=at, frames=int(sighting.traits["frames"]))
    growth = [] if hooks else [*wal_growth_findings(group, is_automatic=is_automatic)]
    large = growth[0].facts["wal_bytes"] if growth else None
    for (sql, at, blob), seconds in list(statements.items())[:MAX_CAUSES]:
        yield Finding(
            sentences.open_statement,
            statement=shortened(sql, 60),
            seconds=seconds,
            at=at or None,
            wal_bytes=large,
            blob=blob or None,
        )
    if not statements:
        yield from growth


def _wasted_share(group: Group) -> float:
    """Return the share of the time in which a process held the write lock needlessly.

    It worked outside of SQLite, or a write scanned a table. If there is a trial with a longer window, only
    this trial counts.
    """
    trials = [run.longer for run in group.runs if run.longer]
    trials = trials or [trial for run in group.runs for trial in run.trials]
    wasted = sum(
        float(sighting.traits["share"])
        for trial in trials
        for sighting in trial.sightings
        if sighting.topic == LONG_HOLD
        and (float(sighting.traits["outside"]) >= MIN_OUTSIDE or _scans(sighting))
    )
    return wasted / max(1, len(trials))


def _scans(sighting: Sighting) -> bool:
    return sighting.traits.get("work", "").startswith("SCAN")


def _condition_without_index(sql: str) -> str:
    """Return "LIKE" or "function" if a write has such a condition, which a plain index does not serve."""
    where = re.split(r"\bwhere\b", sql, maxsplit=1, flags=re.IGNORECASE)[-1]
    if re.search(r"\blike\b", where, re.IGNORECASE):
        return "LIKE"
    return "function" if _FUNCTION.search(where) else ""


def own_hold_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on transactions of the user's own code that held the write lock for long.

    The reason is a slow write, a write with unfetched rows, a checkpoint that waits, or work outside of
    SQLite. A single long hold of a statement is left out: it may be an accident of a busy machine.
    """
    failures = failures_of(group)
    waited_for = {failure.held_since for failure in failures}
    causes = (diagnose(failure.code, failure.facts).cause for failure in failures)
    is_short = any(cause and cause.name == HELD_LONGER for cause in causes)
    # A single process waits for no other.
    is_short |= any(run.case.concurrency > 1 for run in group.runs) and _wasted_share(group) >= BUSY_LOCK
    shortest_s = MIN_HOLD_S if is_short else LONG_HOLD_S
    kinds: dict[tuple[str, str], list[Sighting]] = {}
    for sighting in sightings(group, LONG_HOLD):
        kinds.setdefault((sighting.what, sighting.traits.get("work", "")), []).append(sighting)
    for (sql, work), found in list(kinds.items())[:MAX_CAUSES]:
        longest = max(found, key=lambda sighting: float(sighting.traits["seconds"]))
        count = sum(sighting.count for sighting in found)
        share = max(float(sighting.traits["share"]) for sighting in found)
        outside = float(longest.traits["outside"])
        least_s = MIN_HOLD_S if work == UNFETCHED else shortest_s
        if is_short and _scans(longest):
            least_s = SLOW_WRITE_S
        if float(longest.traits["seconds"]) < least_s:
            continue
        if count < MIN_HOLDS or share < MIN_HOLD_SHARE or (outside < MIN_OUTSIDE and not work):
            continue
        calls = sum(int(sighting.traits.get("calls", 0)) for sighting in found)
        if count < MIN_HOLDS_OF_CALLS * calls and share < LARGE_HOLD_SHARE:
            continue  # The processes may have waited for a processor.
        known = {
            name: next(filter(None, (sighting.traits[name] for sighting in found)), None)
            for name in ("at", "began_at")
        }
        if any(line and f"({line})" in since for line in known.values() for since in waited_for):
            continue  # A failure of the same process already names this transaction as the holder.
        yield Finding(
            sentences.long_hold,
            statement=shortened(sql, 60),
            count=count,
            seconds=float(longest.traits["seconds"]),
            outside=outside,
            at=known["at"],
            began_at=known["began_at"],
            last=shortened(longest.traits.get("last", ""), 60),
            work=work,
            condition=_condition_without_index(sql) if work.startswith("SCAN") else "",
        )


def backup_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each line of code whose backup in several steps began again and again."""
    kinds: dict[str, list[Sighting]] = {}
    for sighting in sightings(group, BACKUP):
        kinds.setdefault(sighting.what, []).append(sighting)
    for at, found in [*kinds.items()][:MAX_CAUSES]:
        longest = max(found, key=lambda sighting: int(sighting.traits["restarts"]))
        if int(longest.traits["restarts"]) >= MIN_RESTARTS:
            yield Finding(
                sentences.backup_in_steps,
                at=at or None,
                count=sum(sighting.count for sighting in found),
                restarts=int(longest.traits["restarts"]),
                seconds=float(longest.traits["seconds"]),
            )


def unclosed_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each line of code that opens connections which are never closed."""
    most: dict[str, int] = {}
    for sighting in sightings(group, UNCLOSED):
        most[sighting.what] = max(most.get(sighting.what, 0), int(sighting.traits["open"]))
    for at, count in [*most.items()][:MAX_CAUSES]:
        yield Finding(sentences.unclosed, at=at or None, count=count)


def memory_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each database in memory, which other processes cannot see."""
    kinds = dict.fromkeys((sighting.what, sighting.traits["at"]) for sighting in sightings(group, IN_MEMORY))
    for name_given, at in [*kinds][:MAX_CAUSES]:
        yield Finding(
            sentences.in_memory,
            name=shortened(name_given, 80),
            at=at or None,
            cache="cache=shared" in name_given,
        )


def split_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each line of code that commits a transaction which other code had begun.

    The line calls `executescript`, or ends an inner block `with connection`.
    """
    kinds: dict[str, list[Sighting]] = {}
    for sighting in sightings(group, SPLIT):
        kinds.setdefault(sighting.what, []).append(sighting)
    for at, found in list(kinds.items())[:MAX_CAUSES]:
        lines = [line for sighting in found if (line := sighting.traits["at"])]
        yield Finding(
            sentences.split_transaction,
            at=at,
            count=sum(sighting.count for sighting in found),
            began_at=lines[0] if lines else None,
            way=found[0].traits.get("way", SCRIPT),
        )


def schema_change_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding on a schema change outside of a transaction, if statements failed because of it."""
    messages = [failure.message for failure in failures_of(group) if failure.code == ERROR]
    broken = [message for message in messages if _MISSING_OBJECT.search(message)]
    changes = [*sightings(group, SCHEMA_CHANGE)] if broken else []
    for change in changes[:1]:
        yield Finding(
            sentences.schema_change,
            statement=shortened(change.what, 60),
            at=change.traits["at"] or None,
            message=broken[0],
        )


def overlap_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding on overlapping transactions of threads that share a connection."""
    counts: dict[tuple[tuple[str, str], ...], int] = {}
    for sighting in sightings(group, OVERLAP):
        kind = tuple(sighting.traits.items())
        counts[kind] = counts.get(kind, 0) + sighting.count
    # Prefer an overlap that ended with ROLLBACK, because it lost data, to a more frequent overlap.
    kinds = [(dict(kind), count) for kind, count in counts.items()]
    kinds.sort(key=lambda pair: (pair[0]["end"] != "ROLLBACK", -pair[1]))
    for traits, _ in kinds[:1]:
        yield Finding(
            sentences.overlap,
            count=sum(counts.values()),
            first=TracedStep(shortened(traits["first"], 60), traits["first_at"]),
            then=TracedStep(shortened(traits["then"], 60), traits["then_at"]),
            end=traits["end"] or None,
            end_at=traits["end_at"] or None,
        )


def passed_over_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each column by which a query, such as `created > ?`, misses new rows."""
    kinds: dict[tuple[str, str], Sighting] = {}
    for sighting in sightings(group, PASSED_OVER):
        kinds.setdefault((sighting.traits["table"], sighting.traits["column"]), sighting)
    for (table, column), found in list(kinds.items())[:MAX_CAUSES]:
        yield Finding(
            sentences.suspicion,
            kind="passed-over",
            transaction="",
            table=table,
            kept=column,
            first=TracedStep(shortened(found.traits["reader"], 120), found.traits["reader_at"]),
            then=TracedStep(shortened(found.what, 120), found.traits["at"]),
        )


def repeat_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on calls that may have done work twice, because they went on after a refused write.

    The call repeated its transaction, or had already committed another write. Such calls may be why a check
    of the user failed. So yield nothing if all checks passed, or if another cause of the failed check is
    known.
    """
    is_wrong = any(check.status == "failed" for check in user_checks(group))
    if not is_wrong or _explains_data(group):
        return
    kinds: dict[tuple[str, str, str], list[Sighting]] = {}
    for sighting in sightings(group, REPEATED):
        committed, after = (sighting.traits.get(name, "") for name in ("committed", "after"))
        kinds.setdefault((sighting.what, committed, after), []).append(sighting)
    for (call, committed, after), found in list(kinds.items())[:MAX_CAUSES]:
        yield Finding(
            sentences.repeated_transaction,
            call=call,
            count=sum(sighting.count for sighting in found),
            most=max(int(sighting.traits["most"]) for sighting in found),
            at=max(found, key=lambda sighting: sighting.count).traits["at"] or None,
            committed=committed or None,
            after=after,
        )


def _explains_data(group: Group) -> bool:
    """Return whether the group's report names a probable cause of wrong data, such as an open transaction."""
    others = (LEFT_OPEN, LOST_LOCKS, OVERLAP, SPLIT, SUSPICION, NO_EFFECT, PASSED_OVER)
    return any(
        sighting.topic != SUSPICION or sighting.what in (*LOST_DATA, MIXED)
        for topic in others
        for sighting in sightings(group, topic)
    )


def no_effect_findings(group: Group) -> Iterator[Finding]:
    """Yield findings on PRAGMAs without effect in a transaction, and on COMMIT or ROLLBACK outside of one."""
    kinds: dict[tuple[str, str], list[Sighting]] = {}
    for sighting in sightings(group, NO_EFFECT):
        kinds.setdefault((sighting.what, sighting.traits["at"]), []).append(sighting)
    undone = {
        seen.traits.get("write") for (sql, _), found in kinds.items() for seen in found if sql == "ROLLBACK"
    }
    for (sql, at), found in list(kinds.items())[:MAX_CAUSES]:
        if sql == "COMMIT" and found[0].traits.get("write") in undone:
            continue
        yield Finding(
            sentences.pragma_without_effect,
            statement=shortened(sql, 60),
            at=at or None,
            count=sum(sighting.count for sighting in found),
            began=found[0].traits["began"],
            began_at=found[0].traits["began_at"] or None,
            write=found[0].traits.get("write"),
        )


def open_findings(group: Group) -> Iterator[Finding]:
    """Yield a finding for each function that left a transaction open.

    The function ended, or closed the connection, before it committed.
    """
    kinds: dict[tuple[str, bool], list[Sighting]] = {}
    for sighting in sightings(group, LEFT_OPEN):
        kinds.setdefault((sighting.what, bool(sighting.traits.get("closed"))), []).append(sighting)
    for (call, is_closed), found in list(kinds.items())[:MAX_CAUSES]:
        codes = [code for sighting in found if (code := sighting.traits["failed_commit"])]
        lines = [line for sighting in found if (line := sighting.traits["at"])]
        yield Finding(
            sentences.left_open,
            call=call,
            count=sum(sighting.count for sighting in found),
            began=found[0].traits["began"],
            at=lines[0] if lines else None,
            error=name(int(codes[0])) if codes else None,
            written=any(sighting.traits["state"] == "written" for sighting in found),
            tasks=any(sighting.traits.get("tasks") for sighting in found),
            closed=is_closed,
        )
