"""Sentences in the reports of app. Their parameters are the facts of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.analysis.finding import causal, grave
from sqlstress.analysis.wording import FailureTime, failure_time, listing, percent
from sqlstress.statistics.units import digits, plural

MIN_SEVERAL = 1.5
"""Least average of connections per call that a sentence gives as a number."""


def busy_timeout(*, timeout: str, opened_with: str | None = None, waits: bool = False) -> str:
    contrast = f", although they were opened with {opened_with}" if opened_with else ""
    waits_text = (
        "A checkpoint or a larger transaction can take longer. Use several seconds, or repeat each refused "
        "transaction."
        if waits
        else (
            'SQLite does not wait for a lock but returns "database is locked" at once. Use several '
            "seconds: timeout=5 or PRAGMA busy_timeout."
        )
    )
    return f"The busy timeout of connections is {timeout}{contrast}. {waits_text}"


def journal_mode(*, on_disk: bool = False) -> str:
    on_disk_text = (
        (
            "The database uses a rollback journal: readers block commits, and commits block readers. Run "
            "PRAGMA journal_mode=WAL once to let both proceed."
        )
        if on_disk
        else (
            "There is no journal on disk (journal_mode OFF or MEMORY): a process that dies during a "
            "transaction can corrupt the database. Use WAL."
        )
    )
    return f"{on_disk_text}"


def synchronous_off(*, server: bool = False) -> str:
    if server:
        return "synchronous_commit is off on connections: a power failure can lose the last commits."
    return (
        "synchronous is OFF: a power failure can corrupt the database and lose acknowledged commits. FULL "
        "prevents both; WAL with NORMAL only keeps the database sound."
    )


def call_cost(
    *,
    call: str,
    connections: float | None = None,
    share: float | None = None,
    objects: int | None = None,
    commits: float | None = None,
) -> str:
    parts = []
    if connections is not None and share is not None:
        parsed = f" ({plural(objects, 'schema object')} parsed each time)" if objects else ""
        each = "a connection" if connections < MIN_SEVERAL else f"{connections:.3g} connections"
        parts.append(
            f"Each call of {call} opens {each}. Opening and the first statement took {percent(share)} of its "
            f"time{parsed}. Keep connections open."
        )
    if commits is not None:
        parts.append(
            f"A call of {call} makes {digits(round(commits))} commits, and each is written to the disk. Use "
            "one transaction."
        )
    return " ".join(parts)


@causal
def foreign_keys() -> str:
    return (
        "Rows refer to rows that do not exist, because foreign keys are off: REFERENCES and ON DELETE do "
        "nothing. Run PRAGMA foreign_keys=ON in each connection."
    )


def settings_differ(*, kinds: int, server: bool = False) -> str:
    connections = "connections to PostgreSQL" if server else "connections"
    return f"The {connections} differ: {digits(kinds)} combinations of settings were seen."


@grave
def other_databases(*, names: Sequence[str], server: bool = False) -> str:
    used = "used places" if server else "opened databases"
    return f"The app also {used} that no check reads: {listing(names)}."


@grave
def raised(
    *,
    what: str,
    count: int,
    transaction: str | None = None,
    kind: str | None = None,
    share: float | None = None,
    example: str | None = None,
    time: FailureTime | None = None,
    explanation: str | None = None,
) -> str:
    text = f"{f'{transaction} raised' if transaction else 'Raised:'} {what}"
    if kind:
        text += f" (as {kind})"
    text += f", {plural(count, 'time')}"
    if share is not None:
        text += f" ({percent(share)} of its calls)"
    if example:
        text += f": {example}"
    failed = f" It failed {failure_time(time)}." if time else ""
    return f"{text}.{failed}{f' {explanation}' if explanation else ''}"


def unraised(
    *, what: str, count: int, logged: bool, of: str | None = None, example: str | None = None
) -> str:
    times = f"{plural(count, 'time')}{f': {example}' if example else ''}"
    if logged:
        return f"Logged at ERROR by {of or what}, {times}."
    return (
        f"Threads ended by {what}{f' (as {of})' if of else ''}, {times}. No transaction failed because of it."
    )


def thread_did_not_end(*, count: int, names: Sequence[str]) -> str:
    return (
        f"Your application's processes did not exit by themselves. {plural(count, 'thread')} "
        f"({listing(names)}) still ran 2 s after the last transaction and ended with their process. Use "
        "daemon=True to let a process exit."
    )
