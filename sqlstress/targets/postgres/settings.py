"""Settings are set for each session, then read back; what was read back is what is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqlstress.target import AS_SET

if TYPE_CHECKING:
    from sqlstress.report.case import Case

REPORTED = (
    "server_version",
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "wal_sync_method",
    "transaction_isolation",
    "lock_timeout",
    "shared_buffers",
    "max_wal_size",
)
_COMMITS = {"full": "on", "normal": "off", "off": "off"}


def wanted(case: Case) -> Iterator[tuple[str, str]]:
    """Yield (setting, value) of a session; a time-out in ms, of which 0 would be none at all."""
    settings = case.settings
    if settings.synchronous is not None:
        yield "synchronous_commit", _COMMITS[settings.synchronous]
    if case.server and case.server.isolation != AS_SET:
        yield "default_transaction_isolation", case.server.isolation.replace("-", " ")
    yield "lock_timeout", str(max(1, settings.busy_timeout_ms))


def statements(case: Case, schema: str) -> str:
    """Return the SQL that sets a session up."""
    found = [f"SET {name} = '{value}'" for name, value in wanted(case)]
    return "; ".join(
        (*found, f"SET application_name = '{schema}'", f'SET search_path = "{schema}", pg_catalog')
    )


def differences(case: Case, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (setting, value asked for, answer) where an answer is another one."""
    asked = {name.removeprefix("default_"): value for name, value in wanted(case) if name != "lock_timeout"}
    for name, value in asked.items():
        answer = effective.get(name)
        if answer not in (None, value):
            yield name, value, answer
