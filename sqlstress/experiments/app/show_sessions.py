"""What the connections of the application to a server ran with, and what is unwise about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import plural, whole
from sqlstress.experiments.app.topics import BEGINS, HERE, SESSION
from sqlstress.show.blocks import shortened

MOST_LINES = 5
"""Kinds of connections that are described; the JSON report has them all."""
_LONGEST = 200
_TIME_OUTS = ("lock_timeout", "statement_timeout")

Traits = Mapping[str, str]


def counted(group: Group, topic: str = SESSION) -> Counter[tuple[tuple[str, str], ...]]:
    """Return how many connections of each kind all trials saw."""
    kinds = Counter[tuple[tuple[str, str], ...]]()
    for run in group.runs:
        for trial in run.trials:
            for one in trial.sightings:
                if one.topic == topic:
                    kinds[tuple(one.traits.items())] += one.count
    return kinds


def described(group: Group) -> Iterator[str]:
    """Yield a line for each kind of connection; where none was seen, what one begins with."""
    kinds = counted(group).most_common()
    for number, (traits, count) in enumerate(kinds[:MOST_LINES]):
        lead = "Others: " if number else "Your connections ran with (as PostgreSQL answers at the end): "
        yield f"{lead}{_line(dict(traits))} ({plural(count, 'connection')})."
    if len(kinds) > MOST_LINES:
        yield f"And {whole(len(kinds) - MOST_LINES)} kinds of connections more: see the JSON report."
    begins = counted(group, BEGINS)
    if begins and not kinds:
        (traits, _), *_ = begins.most_common(1)
        yield (
            "What your connections to PostgreSQL ran with is not known: none of psycopg's was open and idle "
            f"at the end. A session begins with {_line(dict(traits))}."
        )


def _line(traits: Traits) -> str:
    parts = [
        f"synchronous_commit={traits.get('synchronous_commit', '')}",
        traits.get("isolation", ""),
        *(f"{name} {_time(traits[name])}" for name in _TIME_OUTS if name in traits),
        f"autocommit {traits['autocommit']}" if "autocommit" in traits else "",
    ]
    if traits.get("database") != HERE:
        parts.append(f"in {traits.get('database', '')}")
    return shortened(", ".join(filter(None, parts)), _LONGEST)


def _time(answer: str) -> str:
    return "none" if answer == "0" else answer


def unwise(group: Group) -> Iterator[Finding]:
    """Yield what is unwise about the connections, each thing once."""
    kinds = [dict(traits) for traits in counted(group)]
    own = [one for one in kinds if one.get("database") == HERE]
    if any(one.get("synchronous_commit") == "off" for one in own):
        yield Finding("synchronous-commit-off")
    others = list(dict.fromkeys(one.get("database", "") for one in kinds if one not in own))
    if others:
        yield Finding("other-places", names=[shortened(name, 80) for name in others][:3])
    settings = {tuple(one.get(name) for name in ("synchronous_commit", "isolation")) for one in own}
    if len(settings) > 1:
        yield Finding("sessions-differ", kinds=len(settings))
