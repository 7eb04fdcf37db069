"""Settings are set, then read back after the first write; what was read back is what is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.targets.sqlite.drivers import Connection

if TYPE_CHECKING:
    from sqlstress.report.case import Settings

REPORTED = (
    "journal_mode",
    "synchronous",
    "fullfsync",
    "checkpoint_fullfsync",
    "wal_autocheckpoint",
    "page_size",
    "cache_size",
    "mmap_size",
    "locking_mode",
    "busy_timeout",
)
KEPT = "kept"  # as in sqlstress.report.case

_NUMBERED = {
    "synchronous": ("off", "normal", "full", "extra"),  # as in SYNCHRONOUS, whose module workers do without
    "temp_store": ("default", "file", "memory"),
    "auto_vacuum": ("none", "full", "incremental"),
    "secure_delete": ("off", "on", "fast"),
}
_SHAPE_THE_FILE = ("auto_vacuum",)
_SWITCH = {"on": "1", "yes": "1", "true": "1", "off": "0", "no": "0", "false": "0"}


def wanted(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield (pragma, value) in the order in which they must be set.

    What shapes the file can't change once the database is in WAL mode, the page size not even after
    auto_vacuum; and `synchronous` has its meaning only in the journal mode that is already set.
    """
    if settings.page_size is not None:
        yield "page_size", str(settings.page_size)
    yield from (pragma for pragma in settings.pragmas if pragma[0] in _SHAPE_THE_FILE)
    values = {
        "journal_mode": None if settings.journal_mode == KEPT else settings.journal_mode,
        "synchronous": settings.synchronous,
        "fullfsync": None if settings.fullfsync is None else int(settings.fullfsync),
        "wal_autocheckpoint": settings.wal_autocheckpoint,
        "cache_size": settings.cache_size,
        "mmap_size": settings.mmap_size,
    }
    yield from ((name, str(value)) for name, value in values.items() if value is not None)
    yield from (pragma for pragma in settings.pragmas if pragma[0] not in _SHAPE_THE_FILE)


def apply(connection: Connection, settings: Settings) -> None:
    for name, value in wanted(settings):
        connection.rows(f"PRAGMA {name}={value}")


def read_back(connection: Connection, settings: Settings) -> dict[str, str]:
    """Return what SQLite answers for every reported and every wanted setting, lower case, in words.

    "" where it answers nothing.
    """
    names = dict.fromkeys((*REPORTED, *(name for name, _ in settings.pragmas)))
    rows = {name: connection.rows(f"PRAGMA {name}") for name in names}
    return {name: _canonical(name, str(found[0][0])) if found else "" for name, found in rows.items()}


def _canonical(name: str, value: str) -> str:
    value = value.lower()
    if name == "journal_mode":  # whose "off" is a mode, not a switch
        return value
    value = _SWITCH.get(value, value)
    words = _NUMBERED.get(name, ())
    return words[int(value)] if value.isdecimal() and int(value) < len(words) else value


def differences(settings: Settings, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, value in wanted(settings):
        if effective.get(name) not in (None, _canonical(name, value)):
            yield name, value, effective[name]


def check(settings: Settings, effective: dict[str, str]) -> None:
    """Raise when SQLite did not take a setting: UsageError, or EnvironmentFailure for WAL mode."""
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
