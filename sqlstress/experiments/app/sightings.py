"""What a worker tells of the connections to files that it has seen, as plain data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from sqlstress.experiments.app.errors import Plain
from sqlstress.experiments.app.topics import CONNECTION, DECLARED, HERE, UNSEEN
from sqlstress.experiments.app.watch import Seen, Watch

_SYNCHRONOUS = ("off", "normal", "full", "extra")
MOST = 20
"""Kinds of connections that are kept apart."""


class FileWatch(Watch):
    """The connections of this process, of which those to one file are the trial's."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def sightings(self) -> list[Plain]:
        """Return what was seen, each kind once with how often it was."""
        return sightings(self, self._file)

    def effective(self) -> dict[str, str]:
        """Return the settings of the connections to the file; where they differ, all answers."""
        return effective(self, self._file)


def sightings(watch: Watch, file: str) -> list[Plain]:
    """Return what was seen of connections, each kind once with how often it was."""
    kinds = Counter(tuple(traits_of(one, file).items()) for one in watch.seen if one.answers)
    unseen = watch.others + sum(not one.answers for one in watch.seen)
    found: list[Plain] = [
        (CONNECTION, "sqlite3", count, "", dict(traits)) for traits, count in kinds.most_common(MOST)
    ]
    return found + [(UNSEEN, "sqlite3", unseen, "", {})] * bool(unseen)


def traits_of(seen: Seen, file: str) -> dict[str, str]:
    """Return what one connection ran with, in words."""
    keys = "on" if seen.answers["foreign_keys"] == "1" else "off"
    return {
        "database": database_of(seen.file, file),
        "journal_mode": seen.answers["journal_mode"],
        "synchronous": _level(seen.answers["synchronous"]),
        "busy_timeout": seen.answers["busy_timeout"],
        "opened_with": str(seen.opened_timeout_ms),
        "foreign_keys": DECLARED if seen.has_keys else keys,
        "python": seen.isolation or "",
        "writes_begin": ", ".join(seen.begins.ways),
        "upgrades": "yes" if seen.begins.upgrades else "no",
    }


def database_of(name: str, file: str) -> str:
    """Return which database a connection has: this one, one in memory, or the path of another."""
    if not name:
        return ":memory:"
    try:
        return HERE if Path(name).samefile(file) else name
    except OSError:
        return name


def effective(watch: Watch, file: str) -> dict[str, str]:
    """Return the settings of the connections to the database; where they differ, all answers."""
    own = [traits_of(one, file) for one in watch.seen if one.answers]
    own = [traits for traits in own if traits["database"] == HERE]
    # A commit is a writer's: what those run with that only read says nothing of it.
    own = [traits for traits in own if traits["writes_begin"]] or own
    names = ("journal_mode", "synchronous", "busy_timeout") if own else ()
    return {name: " / ".join(dict.fromkeys(traits[name] for traits in own)) for name in names}


def _level(answer: Any) -> str:
    return _SYNCHRONOUS[int(answer)] if answer.isdecimal() and int(answer) < 4 else answer
