"""What the connections of the application ran with, and what is unwise about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import listing, plural, whole
from sqlstress.display.clean import shortened
from sqlstress.experiments.app.topics import CONNECTION, DECLARED, HERE, UNSEEN
from sqlstress.statistics.units import format_duration

SHORT_MS = 1000
"""A busy time-out under this gives up while a checkpoint or a larger transaction of others goes on."""

MOST_LINES = 5
"""Kinds of connections that are described; the JSON report has them all."""
_SETTINGS = ("database", "journal_mode", "synchronous", "busy_timeout", "foreign_keys", "python")
_LONGEST = 200

Traits = Mapping[str, str]
Counts = dict[tuple[tuple[str, str], ...], int]


def counted(group: Group) -> tuple[Counts, int]:
    """Return how many connections of each kind all trials saw, and how many were not looked at."""
    kinds: Counts = {}
    unseen = 0
    for run in group.runs:
        for trial in run.trials:
            for one in trial.sightings:
                if one.topic == CONNECTION:
                    key = tuple(one.traits.items())
                    kinds[key] = kinds.get(key, 0) + one.count
                elif one.topic == UNSEEN:
                    unseen += one.count
    return dict(sorted(kinds.items(), key=lambda item: -item[1])), unseen


def described(group: Group) -> Iterator[str]:
    """Yield a line for each kind of connection."""
    kinds, unseen = counted(group)
    # Two that differ in what was seen of their transactions only are told as one.
    counts: dict[tuple[str, ...], int] = {}
    begins: dict[tuple[str, ...], dict[str, None]] = {}
    for traits, count in kinds.items():
        known = dict(traits)
        settings = tuple(known.get(name, "") for name in _SETTINGS)
        counts[settings] = counts.get(settings, 0) + count
        begins.setdefault(settings, {}).update(dict.fromkeys(filter(None, [known.get("writes_begin")])))
    for number, (settings, count) in enumerate(list(counts.items())[:MOST_LINES]):
        lead = "Your connections ran with (as SQLite answers): " if not number else "Others: "
        line = _line(dict(zip(_SETTINGS, settings, strict=True)), list(begins[settings]))
        yield f"{lead}{line} ({plural(count, 'connection')})."
    if len(counts) > MOST_LINES:
        yield f"And {whole(len(counts) - MOST_LINES)} kinds of connections more: see the JSON report."
    if unseen:
        yield (
            f"{plural(unseen, 'connection')} more {'was' if unseen == 1 else 'were'} not looked at: each "
            "process looks at its first 50, once they do anything."
        )


def _line(settings: Traits, begins: list[str]) -> str:
    parts = [
        f"journal_mode={settings['journal_mode']}",
        f"synchronous={settings['synchronous']}",
        f"busy time-out {_time(settings['busy_timeout'])}",
        f"foreign keys {settings['foreign_keys'].partition(',')[0]}",
        settings["python"],
        f"writes begin {listing(begins)}" if begins else "no writes seen",
    ]
    if settings["database"] != HERE:
        parts.append(f"database {settings['database']}")
    return shortened(", ".join(filter(None, parts)), _LONGEST)


def unwise(group: Group) -> Iterator[Finding]:
    """Yield what is unwise about the connections, each thing once."""
    kinds, _ = counted(group)
    own = [dict(key) for key in kinds if dict(key).get("database") == HERE]
    for code, text in _unwise(own):
        yield Finding(code, text)
    others = [name for key in kinds if (name := dict(key).get("database", HERE)) != HERE]
    if others:
        names = [shortened(name, 80) for name in dict.fromkeys(others)][:3]
        yield Finding(
            "other-database",
            f"The app opened other databases too, where no check looks: {listing(names)}.",
        )


def _unwise(own: list[dict[str, str]]) -> Iterator[tuple[str, str]]:
    timeouts = [found for one in own if (found := _whole(one.get("busy_timeout", ""))) is not None]
    if timeouts and min(timeouts) < SHORT_MS:
        yield "busy-timeout", _short(own, min(timeouts))
    if any(one.get("upgrades") == "yes" for one in own):
        yield (
            "deferred-upgrade",
            "Transactions begin DEFERRED, read, and then write: when another process wrote meanwhile, SQLite "
            'answers "database is locked" at once, whatever the time-out is. Begin with BEGIN IMMEDIATE.',
        )
    modes = {one.get("journal_mode") for one in own}
    if modes & {"off", "memory"}:
        yield (
            "journal-mode",
            "There is no journal on disk (journal_mode OFF or MEMORY): a process that dies amid a "
            "transaction can corrupt the database. Use WAL.",
        )
    elif modes & {"delete", "truncate", "persist"}:
        yield (
            "journal-mode",
            "The journal is a rollback journal: who reads keeps others from committing, and who commits "
            "keeps others from reading. PRAGMA journal_mode=WAL, once, lets both go on.",
        )
    if any(one.get("synchronous") == "off" for one in own):
        yield (
            "synchronous-off",
            "synchronous is OFF: a power failure can corrupt the database. With WAL, NORMAL keeps it sound.",
        )
    if any(one.get("foreign_keys") == DECLARED for one in own):
        yield (
            "foreign-keys",
            "Tables declare foreign keys, and they are off: PRAGMA foreign_keys=ON, in each connection.",
        )
    settings = {
        tuple(one.get(name) for name in ("journal_mode", "synchronous", "busy_timeout")) for one in own
    }
    if len(settings) > 1:
        yield (
            "settings-differ",
            f"The connections differ: {whole(len(settings))} kinds of settings were seen.",
        )


def _short(own: list[dict[str, str]], least: int) -> str:
    worst = next(one for one in own if one.get("busy_timeout") == str(least))
    opened = worst.get("opened_with", "")
    changed = f", though it was opened with {_time(opened)}" if opened not in (str(least), "None", "") else ""
    if not least:
        return (
            f"The busy time-out of connections is 0{changed}: SQLite does not wait for a lock, and answers "
            '"database is locked" at once. Give it seconds: timeout=5, or PRAGMA busy_timeout.'
        )
    return (
        f"The busy time-out of connections is {_time(str(least))}{changed}: a checkpoint or a larger "
        "transaction can take longer. Give it seconds."
    )


def _whole(text: str) -> int | None:
    """Return a number of milliseconds that SQLite can have answered; None for anything else."""
    return int(text) if text.isdecimal() and len(text) <= 10 else None


def _time(text: str) -> str:
    found = _whole(text)
    return text if found is None else format_duration(found / 1000)
