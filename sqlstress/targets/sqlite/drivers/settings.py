"""Settings are set, then read back after the first write; what was read back is what is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

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

_NUMBERED = {
    "synchronous": ("off", "normal", "full", "extra"),  # as in SYNCHRONOUS, whose module workers do without
    "temp_store": ("default", "file", "memory"),
    "auto_vacuum": ("none", "full", "incremental"),
    "secure_delete": ("off", "on", "fast"),
}
KEPT = "kept"  # as in sqlstress.report.case
_SHAPE_THE_FILE = ("auto_vacuum",)
_SWITCH = {"on": "1", "yes": "1", "true": "1", "off": "0", "no": "0", "false": "0"}


class Answers(Protocol):
    """A connection, as far as it is asked here."""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""


def wanted(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield (pragma, value) in the order in which they must be set.

    What shapes the file can't change once the database is in WAL mode, and `synchronous` has its
    meaning only in the journal mode that is already set.
    """
    yield from (pragma for pragma in settings.pragmas if pragma[0] in _SHAPE_THE_FILE)
    if settings.page_size is not None:
        yield "page_size", str(settings.page_size)
    if settings.journal_mode != KEPT:
        yield "journal_mode", settings.journal_mode
    if settings.synchronous is not None:
        yield "synchronous", settings.synchronous
    if settings.fullfsync is not None:
        yield "fullfsync", str(int(settings.fullfsync))
    for name in ("wal_autocheckpoint", "cache_size", "mmap_size"):
        value = getattr(settings, name)
        if value is not None:
            yield name, str(value)
    yield from (pragma for pragma in settings.pragmas if pragma[0] not in _SHAPE_THE_FILE)


def apply(connection: Connection, settings: Settings) -> None:
    """Set every PRAGMA that was asked for."""
    for name, value in wanted(settings):
        connection.rows(f"PRAGMA {name}={value}")


def read_back(connection: Connection, settings: Settings) -> dict[str, str]:
    """Return what SQLite answers for every reported and every asked setting, lower case, in words."""
    names = dict.fromkeys((*REPORTED, *(name for name, _ in settings.pragmas)))
    return {name: answer(connection, name) for name in names}


def answer(connection: Answers, name: str) -> str:
    """Return what is answered for a setting, lower case, in words; "" where nothing is."""
    rows = connection.rows(f"PRAGMA {name}")
    return _canonical(name, str(rows[0][0])) if rows else ""


def _canonical(name: str, value: str) -> str:
    value = value.lower()
    if name == "journal_mode":  # whose "off" is a mode, not a switch
        return value
    value = _SWITCH.get(value, value)
    words = _NUMBERED.get(name, ())
    return words[int(value)] if value.isdecimal() and int(value) < len(words) else value


def differences(settings: Settings, effective: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (pragma, value asked for, answer) where an answer is another one."""
    for name, asked in wanted(settings):
        answer = effective.get(name)
        if answer not in (None, _canonical(name, asked)):
            yield name, asked, answer


def check(settings: Settings, effective: dict[str, str]) -> None:
    """Raise when SQLite did not take a setting: UsageError, or EnvironmentFailure for WAL mode."""
    for name, asked, answer in differences(settings, effective):
        if name == "journal_mode":
            raise EnvironmentFailure(
                f"journal_mode={asked} is not to be had here: SQLite answers {answer!r}. "
                "Choose another --dir (a local disk) or another --journal-mode."
            )
        if answer == "":
            raise UsageError(
                f"PRAGMA {name} has nothing to read back in this SQLite: it can't be vouched for."
            )
        raise UsageError(
            f"PRAGMA {name}: asked for {asked}, SQLite answers {answer}. Choose a value that it takes."
        )
