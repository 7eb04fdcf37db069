"""Settings of a case as SQLite's PRAGMAs: set them, read them back, and compare the values.
A case is one combination of options, such as journal_mode=wal and page_size=8192.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.targets.sqlite.drivers import Connection

if TYPE_CHECKING:
    from sqlstress.report.case import Settings

REPORTED = (
    *("journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync", "wal_autocheckpoint"),
    *("page_size", "cache_size", "mmap_size", "locking_mode", "busy_timeout"),
)
# This value equals KEEP_JOURNAL_MODE in sqlstress.report.case, which workers do not import.
KEPT = "kept"
"""Value of `Settings.journal_mode` for a user program that chooses the journal mode itself."""

# Names of the values that SQLite returns as numbers. For example, the value 2 of synchronous is "full".
_NAMED_LEVELS = {
    # These names equal SYNCHRONOUS in sqlstress.report.case, which workers do not import.
    "synchronous": ("off", "normal", "full", "extra"),
    "temp_store": ("default", "file", "memory"),
    "auto_vacuum": ("none", "full", "incremental"),
    "secure_delete": ("off", "on", "fast"),
}
_FILE_FORMAT = ("auto_vacuum",)
_SWITCH = {"on": "1", "yes": "1", "true": "1", "off": "0", "no": "0", "false": "0"}


def requested_pragmas(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield (pragma, value), such as ("journal_mode", "wal"), in the order in which to set the pragmas."""
    # page_size cannot change after auto_vacuum was set, and neither can change in WAL mode.
    if settings.page_size is not None:
        yield "page_size", str(settings.page_size)
    yield from (pragma for pragma in settings.pragmas if pragma[0] in _FILE_FORMAT)
    values = {
        # The journal mode is before `synchronous`, because the meaning of `synchronous` depends on it.
        "journal_mode": None if settings.journal_mode == KEPT else settings.journal_mode,
        "synchronous": settings.synchronous,
        "fullfsync": None if settings.fullfsync is None else int(settings.fullfsync),
        "wal_autocheckpoint": settings.wal_autocheckpoint,
        "cache_size": settings.cache_size,
        "mmap_size": settings.mmap_size,
    }
    yield from ((name, str(value)) for name, value in values.items() if value is not None)
    yield from (pragma for pragma in settings.pragmas if pragma[0] not in _FILE_FORMAT)


def apply(connection: Connection, settings: Settings) -> None:
    for name, value in requested_pragmas(settings):
        connection.rows(f"PRAGMA {name}={value}")


def read_back(connection: Connection, settings: Settings) -> dict[str, str]:
    """Return the value in effect of each reported or requested pragma, such as {"synchronous": "full"}.

    Values are in lower case. A number for which SQLite has a name is replaced by the name, such as 2 of
    synchronous by "full". A value is "" if SQLite returns no row.
    """
    names = dict.fromkeys((*REPORTED, *(name for name, _ in settings.pragmas)))
    rows = {name: connection.rows(f"PRAGMA {name}") for name in names}
    return {name: _canonical(name, str(values[0][0])) if values else "" for name, values in rows.items()}


def _canonical(name: str, value: str) -> str:
    value = value.lower()
    if name == "journal_mode":  # The journal mode "off" is not 0, unlike "off" of other pragmas.
        return value
    value = _SWITCH.get(value, value)
    levels = _NAMED_LEVELS.get(name, ())
    return levels[int(value)] if value.isdecimal() and int(value) < len(levels) else value


def differences(settings: Settings, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, value in requested_pragmas(settings):
        if effective.get(name) not in (None, _canonical(name, value)):
            yield name, value, effective[name]


def check(settings: Settings, effective: dict[str, str]) -> None:
    """Raise EnvironmentFailure if journal_mode is not in effect, UsageError if another setting is not."""
    for name, value, answer in differences(settings, effective):
        if name == "journal_mode":
            raise EnvironmentFailure(
                f"journal_mode={value} is not available here: SQLite answers {answer!r}. Choose another "
                "--dir (a local disk) or another --journal-mode."
            )
        if answer == "":
            raise UsageError(f"SQLite does not know PRAGMA {name}. Check its spelling, or leave it out.")
        raise UsageError(
            f"PRAGMA {name}={value} was not accepted: SQLite answers {answer}. Choose another value."
        )
