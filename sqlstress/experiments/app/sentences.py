"""Sentences of app, a function each; its parameters are the facts of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.analysis.finding import Finding, grave
from sqlstress.analysis.wording import listing, percent
from sqlstress.statistics.units import plural, whole


def busy_timeout(*, timeout: str, opened_with: str | None = None, waits: bool = False) -> str:
    opened_with_part = f", although they were opened with {opened_with}" if opened_with else ""
    waits_text = (
        "A checkpoint or a larger transaction can take longer. Use several seconds."
        if waits
        else (
            'SQLite does not wait for a lock but returns "database is locked" at once. Use several '
            "seconds: timeout=5 or PRAGMA busy_timeout."
        )
    )
    return f"The busy timeout of connections is {timeout}{opened_with_part}. {waits_text}"


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


def synchronous_off() -> str:
    return (
        "synchronous is OFF: a power failure can corrupt the database. Use WAL with NORMAL to keep it sound."
    )


def foreign_keys() -> str:
    return (
        "Tables declare foreign keys, but foreign keys are off. Run PRAGMA foreign_keys=ON in each "
        "connection."
    )


def settings_differ(*, kinds: int) -> str:
    return f"The connections differ: {whole(kinds)} combinations of settings were seen."


@grave
def other_database(*, names: Sequence[str]) -> str:
    return f"The app also opened databases that no check reads: {listing(names)}."


@grave
def raised(
    *,
    what: str,
    count: int,
    transaction: str | None = None,
    kind: str | None = None,
    share: float | None = None,
    example: str | None = None,
    meaning: Finding | None = None,
    how: Finding | None = None,
    cure: Finding | None = None,
) -> str:
    transaction_part = f"{transaction} raised " if transaction else ""
    kind_part = f" (as {kind})" if kind else ""
    share_part = f" ({percent(share)} of its calls)" if share is not None else ""
    example_part = f": {example}" if example else ""
    meaning_part = f" ({meaning.text})" if meaning else ""
    how_part = f" It failed {how.text}." if how else ""
    cure_part = f" {cure.text}" if cure else ""
    return (
        f"{'' if transaction else 'Raised: '}{transaction_part}{what}{kind_part}, "
        f"{plural(count, 'time')}{share_part}{example_part}{meaning_part}.{how_part}{cure_part}"
    )


def raised_more(*, kinds: int) -> str:
    return f"The JSON report has {plural(kinds, 'more kind')} of exceptions."


def thread_raised(*, what: str, count: int, of: str | None = None, example: str | None = None) -> str:
    of_part = f" (as {of})" if of else ""
    example_part = f": {example}" if example else ""
    return (
        f"Threads ended by {what}{of_part}, {plural(count, 'time')}{example_part}. No transaction failed "
        "because of it."
    )


def logged_error(*, of: str, count: int, example: str | None = None) -> str:
    example_part = f": {example}" if example else ""
    return f"Logged at ERROR by {of}, {plural(count, 'time')}{example_part}."


def raised_busy() -> str:
    return "a lock was not available"


def raised_busy_snapshot() -> str:
    return "its snapshot was out of date when it wrote; no timeout helps"


def raised_busy_recovery() -> str:
    return "another process recovers the WAL; a timeout helps"


def raised_shared_cache() -> str:
    return (
        "another connection with cache=shared in the same process uses the table; no timeout helps: "
        "leave out cache=shared"
    )


def cure_open_select(*, seen: bool = False) -> str:
    seen_text = "No transaction was seen to read before it writes. " if seen else ""
    return (
        f"{seen_text}Check for a SELECT of the same connection that was not read to its end: fetch all "
        "rows, or close the cursor. A longer timeout does not help."
    )


def raised_locked() -> str:
    return "another connection of the same process holds a lock"


def raised_serialization() -> str:
    return "others changed what it had read; retry the whole transaction"


def raised_deadlock() -> str:
    return "each waited for a lock of another; retry the whole transaction"


def raised_lock_timeout() -> str:
    return "a lock was not available, at once or after lock_timeout"


def synchronous_commit_off() -> str:
    return "synchronous_commit is off on connections: a power failure can lose the last commits."


@grave
def other_places(*, names: Sequence[str]) -> str:
    return f"The app also used places that no check reads: {listing(names)}."


def sessions_differ(*, kinds: int) -> str:
    return f"The connections to PostgreSQL differ: {whole(kinds)} combinations of settings were seen."


def thread_did_not_end(*, count: int, names: Sequence[str]) -> str:
    return (
        f"Your application's processes did not exit by themselves. {plural(count, 'thread')} "
        f"({listing(names)}) still ran 2 s after the last transaction and ended with their process. Use "
        "daemon=True to let a process exit."
    )
