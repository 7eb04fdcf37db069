"""How an application is shown: the usual table, its connections, and what its transactions raised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from sqlstress.analysis.advice import partial_proofs, trust
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Topic
from sqlstress.analysis.scaling import starvation, throughput
from sqlstress.analysis.wording import listing, plural, whole
from sqlstress.experiments.app import show_sessions
from sqlstress.experiments.app.topics import CONNECTION, DECLARED, EXCEPTION, HERE, THREAD, UNSEEN
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show.at_a_rate import at_a_rate
from sqlstress.show.blocks import Block, Paragraph, shortened
from sqlstress.statistics.units import format_duration
from sqlstress.user_work.show import OwnShown, too_weak

# What the connections of the application ran with, and what is unwise about it.


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
    yield from _unwise(own)
    others = [name for key in kinds if (name := dict(key).get("database", HERE)) != HERE]
    if others:
        names = [shortened(name, 80) for name in dict.fromkeys(others)][:3]
        yield Finding("other-database", names=names)


def _unwise(own: list[dict[str, str]]) -> Iterator[Finding]:
    timeouts = [found for one in own if (found := _whole(one.get("busy_timeout", ""))) is not None]
    if timeouts and min(timeouts) < SHORT_MS:
        yield _short(own, min(timeouts))
    if any(one.get("upgrades") == "yes" for one in own):
        yield Finding("deferred-upgrade")
    modes = {one.get("journal_mode") for one in own}
    if modes & {"off", "memory"}:
        yield Finding("journal-mode", on_disk=False)
    elif modes & {"delete", "truncate", "persist"}:
        yield Finding("journal-mode", on_disk=True)
    if any(one.get("synchronous") == "off" for one in own):
        yield Finding("synchronous-off")
    if any(one.get("foreign_keys") == DECLARED for one in own):
        yield Finding("foreign-keys")
    names = ("journal_mode", "synchronous", "busy_timeout")
    settings = {tuple(one.get(name) for name in names) for one in own}
    if len(settings) > 1:
        yield Finding("settings-differ", kinds=len(settings))


def _short(own: list[dict[str, str]], least: int) -> Finding:
    worst = next(one for one in own if one.get("busy_timeout") == str(least))
    opened = worst.get("opened_with", "")
    changed = None if opened in (str(least), "None", "") else _time(opened)
    timeout = _time(str(least)) if least else "0"
    return Finding("busy-timeout", timeout=timeout, waits=least > 0, opened_with=changed)


def _whole(text: str) -> int | None:
    """Return a number of milliseconds that SQLite can have answered; None for anything else."""
    return int(text) if text.isdecimal() and len(text) <= 10 else None


def _time(text: str) -> str:
    found = _whole(text)
    return text if found is None else format_duration(found / 1000)


# What the transactions of the application raised.


SHOWN = 5
"""Kinds of exceptions that are told; the JSON report has them all."""
_MEANINGS = {
    "SQLITE_BUSY": "raised-busy",
    "SQLITE_BUSY_SNAPSHOT": "raised-busy-snapshot",
    "SQLITE_LOCKED": "raised-locked",
    "SQLSTATE 40001": "raised-serialization",
    "SQLSTATE 40P01": "raised-deadlock",
    "SQLSTATE 55P03": "raised-lock-timeout",
}
"""What was raised → what it means, if it can be said in a few words."""


def raised(group: Group) -> Iterator[Finding]:
    """Yield each kind of exception, the most frequent first, with what the first one said."""
    counts: dict[tuple[str, str, str], int] = {}
    examples: dict[tuple[str, str, str], str] = {}
    for run in group.runs:
        for trial in run.trials:
            for one in trial.sightings:
                if one.topic == EXCEPTION:
                    key = (one.what, one.traits.get("raised", ""), one.traits.get("transaction", ""))
                    counts[key] = counts.get(key, 0) + one.count
                    examples.setdefault(key, one.example)
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    for (what, kind, transaction), count in ranked[:SHOWN]:
        yield Finding(
            "raised",
            transaction=transaction,
            what=what,
            kind=None if kind == what else kind,
            count=count,
            example=examples[what, kind, transaction].removesuffix("."),
            meaning=Finding(_MEANINGS[what]) if what in _MEANINGS else None,
        )
    if len(ranked) > SHOWN:
        yield Finding("raised-more", kinds=len(ranked) - SHOWN)


def waits(group: Group) -> Iterator[Finding]:
    """Yield where a process got less than its share, or waited long."""
    return starvation(group, lambda _: Finding("shorter-transactions", can_be_fair=False))


def unending(group: Group) -> Iterator[Finding]:
    """Yield which threads kept the processes of the application from ending."""
    seen = [
        one for run in group.runs for trial in run.trials for one in trial.sightings if one.topic == THREAD
    ]
    if seen:
        names = sorted({one.what for one in seen})
        yield Finding("thread-did-not-end", count=sum(one.count for one in seen), names=names)


class AppShown(OwnShown):
    """The figures of an application."""

    topics: ClassVar[tuple[Topic, ...]] = (
        raised,
        unwise,
        show_sessions.unwise,
        too_weak,
        throughput,
        at_a_rate,
        waits,
        unending,
        partial_proofs,
        trust,
    )
    meanings: ClassVar[Mapping[str, str]] = {"failed %": "failed: transactions that raised, in per cent"}

    def why_failed(self, run: Run) -> str:
        return "they raised, as the report says"

    def work(self, case: Case) -> str:
        """Return what the processes of a case do, as the beginning of a sentence."""
        app = case.spec
        total = sum(one.weight for one in app.transactions)
        parts = (
            f"{one.name} {100 * one.weight / total:.2g}%" if len(app.transactions) > 1 else one.name
            for one in app.transactions
        )
        return f"{app.file}: {', '.join(parts)}"

    def blocks(self, group: Group) -> Iterator[Block]:
        yield from super().blocks(group)
        for text in (*described(group), *show_sessions.described(group)):
            yield Paragraph(text)
