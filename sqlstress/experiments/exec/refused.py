"""SQLite's errors in the output of commands, with their possible causes.

A group is the runs that the report shows in one table. A run has all trials of a case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

from sqlstress.analysis.causes import MESSAGES, Facts, Rule, code_in, diagnose, rules_of
from sqlstress.analysis.failed import failure_time_of, failures_of
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, sightings
from sqlstress.analysis.wording import FailureTime
from sqlstress.experiments.exec import ANSWER, STDERR, TIMEOUTS, TOUCHED, Timeouts, sentences
from sqlstress.recording import COPIED, DAMAGE_CODES, DELETED, LOST_LOCKS, MOVED, MOVED_CODES, NO_LOCKS
from sqlstress.report import Run
from sqlstress.report.results import Sighting
from sqlstress.sqlite_codes import BUSY, BUSY_SNAPSHOT, CANTOPEN, LOCKED, name

MAX_REFUSALS, MAX_CAUSES, MAX_LENGTH = 3, 3, 600
"""Limits of the report: number of explained errors, causes per error, characters of all its causes."""
NO_TIMEOUT, READ_BEFORE_WRITE = "no-timeout", "read-before-write"
USUAL = NO_TIMEOUT, READ_BEFORE_WRITE, "held-longer"
"""Names of the usual causes of SQLITE_BUSY.

The first cause is the likeliest if only the output of the command is known. The cause "held-longer" means
that other connections held the lock during the whole busy timeout.
"""
WAITED_NS = 1e9
"""Minimum median time of failed commands, in ns, to conclude that they waited for a busy timeout."""
_GENERAL = "out of memory", "access permission denied", "interrupted", "bus error", "sigbus"
"""Messages of SQLite that do not show that an error is SQLite's, because other libraries have them, too."""
_SQLITE = re.compile("|".join(["SQLITE_", *(text for text, _ in MESSAGES if text not in _GENERAL)]), re.I)

ARGUMENT, SCRIPT = "argument", "script"
"""Source of the SQL that SQLite's shell ran: its command line, or its standard input."""
_SHELL = {
    re.compile(r"^Error: (stepping|in prepare), "): ARGUMENT,
    re.compile(r"^((Runtime|Parse) error|Error:) near line \d+: "): SCRIPT,
}
"""Source of the SQL (ARGUMENT or SCRIPT), by the beginning of the shell's error message."""
CONSEQUENCES = {MOVED: MOVED_CODES, COPIED: tuple({*DAMAGE_CODES} - {CANTOPEN})}
"""SQLite's result codes that may follow from a move (MOVED) or a copy (COPIED) of the database in use."""
_UNIQUE = re.compile(r"UNIQUE constraint failed: [\w.]+(, [\w.]+)*")


class PrintedError(NamedTuple):
    """SQLite error in the output of commands."""

    code: int
    statement: str
    """Kind of the failed statement, such as "write"; empty if unknown."""
    alone: bool
    """Whether the error occurred in a run with a single process, so that no other command was running."""
    text: str
    """Name of the error, such as "SQLITE_BUSY"; for a duplicate key, the message with the columns."""
    shell: str = ""
    """ARGUMENT or SCRIPT if SQLite's shell printed the error; else empty."""

    @property
    def is_lock(self) -> bool:
        """Whether the error means that a lock was not free."""
        return self.code & 0xFF in (BUSY, LOCKED)


def refused(group: Group) -> Iterator[Finding]:
    """Yield a finding for each SQLite error in the output of commands, with its possible causes."""
    counts, sources = _printed_errors(group)
    time = _failure_time(group, sum(count for error, count in counts.items() if error.is_lock))
    has_waited = time is not None and time.median_ns >= WAITED_NS
    snapshots = [error for error in counts if error.code == BUSY_SNAPSHOT and not error.alone]
    busy = 0
    if snapshots and not has_waited:
        busy = sum(
            counts.pop(PrintedError(BUSY, statement, False, name(BUSY)), 0) for statement in ("", "write")
        )
    for error in [error for error in counts if _touch_before(group, error.code)]:
        del counts[error]
    explained: dict[tuple[bool, str, tuple[str, ...]], list[PrintedError]] = {}
    for error, _ in counts.most_common():
        causes = _causes(error, group, time, has_waited=has_waited)
        is_own_lock = error.alone and error.code == BUSY
        explained.setdefault((is_own_lock, error.text, tuple(causes)), []).append(error)
    for (is_own_lock, text, possible), errors in islice(explained.items(), MAX_REFUSALS):
        error = errors[0]
        yield Finding(
            sentences.refused,
            error=text,
            count=sum(counts[error] for error in errors),
            causes=possible,
            source=next(filter(None, map(sources.get, errors)), None),
            time=time if error.is_lock else None,
            alone=is_own_lock,
            lines=group.case.spec.lines,
            soon=error.code == BUSY
            and time is not None
            and not has_waited
            and len(possible) > 1
            and not _timeouts_in_text(group).short,
            busy=busy if snapshots[:1] == [error] else 0,
        )


def _failure_time(group: Group, printed: int) -> FailureTime | None:
    """Return the time until commands failed; None if it is unknown or misleading.

    `printed` is the number of lock errors in the output. If there are more errors than failed commands,
    commands went on after an error. A long time is then the sum of several waits, which is misleading.
    """
    time = failure_time_of(failures_of(group.runs), None)
    if time is not None and time.median_ns >= WAITED_NS and printed > time.failures:
        return None
    return time


def _causes(error: PrintedError, group: Group, time: FailureTime | None, *, has_waited: bool) -> list[str]:
    """Return the possible causes of an error with remedies, the likeliest first.

    `time` is the time until commands failed; None if unknown. `has_waited` is whether the median of this time
    is so long (WAITED_NS) that commands probably waited for a busy timeout.
    """
    if error.code == DUPLICATE and (is_race := _is_race(group)) is not None:
        return [_RACE if is_race else _REPEATED_KEY]
    seen = {sighting.what for sighting in sightings(group, LOST_LOCKS)}
    if error.code & 0xFF in DAMAGE_CODES and seen & {NO_LOCKS, DELETED}:
        fault = "missing locks" if NO_LOCKS in seen else "deleted WAL"
        return [f"This probably follows from the {fault}."]
    timeouts = _timeouts_in_text(group) if error.code == BUSY and not has_waited else Timeouts()
    facts = Facts()
    if error.is_lock:
        has_timeout = timeouts.short or (error.shell and timeouts.shells and not timeouts.unset_at)
        facts = Facts(
            waited=None if time is None else "the timeout" if has_waited else "at once",
            timeout="set" if has_timeout else None,
            statement=error.statement or None,  # type: ignore[arg-type]
            transaction="none" if error.statement == "begin" else None,
            holder="this process" if error.alone else None,
            busy_handler=False,  # It is rare, and nothing shows it from outside.
        )
    diagnosis = diagnose(error.code, facts)
    # The usual causes come first, in the order of USUAL, because only the output is known. Other causes
    # follow, the most general first. `diagnose` lists the most special first, so its order is reversed.
    from_usual_to_special = diagnosis.possible[::-1]
    possible = sorted(from_usual_to_special, key=_place_in_usual)
    texts = [f"{rule.cause} {rule.advice}" for rule in possible]
    if error.code == BUSY and not has_waited and not diagnosis.cause:
        texts = _busy_causes(error, possible, timeouts) or texts
    lengths = accumulate(map(len, texts))
    return [text for text, length in zip(texts[:MAX_CAUSES], lengths, strict=False) if length <= MAX_LENGTH]


def _busy_causes(error: PrintedError, possible: Sequence[Rule], timeouts: Timeouts) -> list[str]:
    """Return the causes of SQLITE_BUSY, with remedies, that agree with the text of the command.

    `possible` has the rules (cause and remedy) that agree with the other facts.
    """
    first = _short_timeout(timeouts) if timeouts.short else _shell_cause(error.shell, timeouts)
    left_out = {NO_TIMEOUT} if error.shell else set()
    if not _may_have_read(error, timeouts):
        left_out.add(READ_BEFORE_WRITE)
    further = [rule for rule in possible if rule.name not in left_out]
    if timeouts.short:
        further = [rule for rule in further if rule.name == READ_BEFORE_WRITE]
    return [*filter(None, [first]), *(f"{rule.cause} {rule.advice}" for rule in further)]


def _timeouts_in_text(group: Group) -> Timeouts:
    traits = next((seen.traits for seen in sightings(group, TIMEOUTS)), {})
    return Timeouts(*(traits.get(field, "") for field in Timeouts._fields))


def _may_have_read(error: PrintedError, timeouts: Timeouts) -> bool:
    """Return whether a transaction may have read before its first write.

    For SQLite's shell, the text of the command shows this: the shell begins no transaction by itself, so only
    a deferred BEGIN in the text lets a transaction read first. For other programs, return True.
    """
    return not (error.shell and timeouts.shells) or bool(timeouts.deferred)


def _short_timeout(timeouts: Timeouts) -> str:
    unit = "seconds: write 5" if timeouts.seconds else "milliseconds: write 5000 for 5 s"
    return (
        f"{timeouts.short} ({timeouts.short_at}) waits for {timeouts.short_ms} ms only. Its unit is {unit}."
    )


def _shell_cause(source: str, timeouts: Timeouts) -> str:
    """Return cause and remedy for a start of SQLite's shell without a busy timeout; else an empty text.

    `source` is ARGUMENT, SCRIPT, or empty for another program.
    """
    if not source or (timeouts.shells and not timeouts.unset_at):
        return ""
    place = f" ({timeouts.unset_at})" if timeouts.unset_at else ""
    cause = f"SQLite's shell{place} waits for no lock unless .timeout is set"
    if source == ARGUMENT or timeouts.bail:
        return f"{cause}: use sqlite3 -cmd '.timeout 5000'."
    return (
        f"{cause}, and goes on after an error unless started with -bail: after a failed BEGIN, each "
        "statement commits by itself. Use sqlite3 -bail -cmd '.timeout 5000'."
    )


def _place_in_usual(rule: Rule) -> int:
    return USUAL.index(rule.name) if rule.name in USUAL else len(USUAL)


(DUPLICATE,) = {code for message, code in MESSAGES if message.startswith("unique")}
"""SQLite's result code for a key that exists already."""
*_, _DUPLICATE_RULE = rules_of(DUPLICATE)
_RACE = (
    "With one process it did not fail: two commands had looked for the row, or read the same max(id), before "
    f"either inserted its row. {_DUPLICATE_RULE.advice}"
)
_REPEATED_KEY = "It also fails with one process, so it is no race: the command inserts a key that exists."


def _is_race(group: Group) -> bool | None:
    """Return whether duplicate keys occurred only in runs with several processes.

    Return None if there is no run with a single process.
    """
    alone = [run for run in group.runs if run.case.concurrency == 1 and run.case.spec.command and run.valid]
    if not alone:
        return None
    seen = (sighting for run in alone for sighting in run_sightings(run))
    return not any(error_code(sighting.example) == DUPLICATE for sighting in seen)


def _printed_errors(group: Group) -> tuple[Counter[PrintedError], dict[PrintedError, str]]:
    """Return two dictionaries by SQLite error: number of messages, and a source line that failed.

    The source line is an example from the user's program, such as `db.execute("COMMIT")`. It is missing if no
    message contains it.
    """
    counts, sources = Counter[PrintedError](), dict[PrintedError, str]()
    for run in group.runs:
        for sighting in run_sightings(run):
            if sighting.topic not in (STDERR, ANSWER) or run.case.server:
                continue
            if code := error_code(sighting.example):
                statement = sighting.traits.get("statement", "")
                column = _UNIQUE.search(sighting.example)
                text = f'"{column[0]}"' if column else name(code)
                shells = (kind for begin, kind in _SHELL.items() if begin.match(sighting.example))
                error = PrintedError(code, statement, run.case.concurrency == 1, text, next(shells, ""))
                counts[error] += sighting.count
                if statement:
                    sources.setdefault(error, sighting.traits["source"])
    return counts, sources


def errors_after(group: Group, kind: str) -> tuple[str, ...]:
    """Return the names of printed errors that a copy or move (`kind`: COPIED or MOVED) explains."""
    counts, _ = _printed_errors(group)
    return tuple(sorted({name(error.code) for error in counts if _touch_before(group, error.code) == kind}))


def _touch_before(group: Group, code: int) -> str:
    """Return MOVED or COPIED if a move or copy of the database in use explains an error; else empty.

    `code` is the result code of the error. The database is in use while commands have it open. Only the kinds
    of observed moves and copies count, not their times.
    """
    seen = {sighting.what for sighting in sightings(group, TOUCHED)}
    kinds = (kind for kind, codes in CONSEQUENCES.items() if kind in seen and code & 0xFF in codes)
    return next(kinds, "")


def run_sightings(run: Run) -> Iterator[Sighting]:
    """Yield the observations (sightings) in all trials of a run."""
    return (sighting for trial in run.trials for sighting in trial.sightings)


def error_code(message: str) -> int | None:
    """Return the SQLite result code in a program's message.

    Return None if the message is not one of SQLite, or if `analysis.causes` has no rule (cause and cure) for
    the code.
    """
    code = code_in(message) if _SQLITE.search(message) else None
    return code if code and rules_of(code) else None
