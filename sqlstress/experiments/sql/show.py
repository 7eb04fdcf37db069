"""How SQL scripts are shown: as all work of the user's, with what the scripts are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, takewhile
from typing import ClassVar

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group, Topic
from sqlstress.analysis.wording import listing, places, whole
from sqlstress.experiment import face_of
from sqlstress.experiments.sql.anomalies import (
    ABORTED_READ,
    KINDS,
    LOST_UPDATE,
    LOST_WRITE,
    PREVENTED,
    STALE_READ,
    TRIED,
)
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.report.results import Sighting
from sqlstress.show.shown import Value
from sqlstress.user_work import ANOMALY
from sqlstress.user_work.show import UserShown, suspected

_ALONE = {LOST_WRITE: "anomaly-twice", STALE_READ: "anomaly-stale", ABORTED_READ: "anomaly-undone"}
"""Of what is no cycle, how its only edge is said."""
_DIGITS = 18
"""Of a number in a report that somebody wrote."""


def histories(group: Group) -> Iterator[Finding]:
    """Yield the anomalies of a group, the gravest first, each with the first that was seen of it."""
    seen: dict[str, list[tuple[Run, Sighting]]] = {}
    for run in group.runs:
        for trial in run.trials:
            for one in trial.sightings:
                if one.topic == ANOMALY:
                    seen.setdefault(one.what, []).append((run, one))
    transactions = sum(one.count for _, one in seen.get(TRIED, []))
    advised = set[Finding]()
    for kind in KINDS:
        if kind in seen:
            traits = seen[kind][0][1].traits
            advice = _advice(kind, traits.get("isolation", ""))
            yield Finding(
                "anomaly",
                name=Finding(f"anomaly-{kind}"),
                where=places(list(dict.fromkeys(run.case for run, _ in seen[kind]))),
                times=sum(one.count for _, one in seen[kind]),
                transactions=transactions,
                steps=tuple(_steps(kind, traits)),
                witnesses=tuple(_witnesses(traits)),
                advice=None if advice in advised else advice,
            )
            advised.add(advice)
    if transactions and len(seen) == 1:
        accesses = sum(_number(one, "accesses") for _, one in seen[TRIED])
        rows = max(_number(one, "rows") for _, one in seen[TRIED])
        yield Finding("no-anomaly", transactions=transactions, accesses=accesses, rows=rows)


def _advice(kind: str, isolation: str) -> Finding:
    """Return what an isolation level says of an anomaly; "": there was not one transaction."""
    if not isolation:
        return Finding("anomaly-outside")
    level = isolation.replace("-", " ")
    if kind in PREVENTED.get(isolation, ()):
        return Finding("anomaly-prevented", level=level)
    by = next(level for level, kinds in PREVENTED.items() if kind in kinds)
    return Finding("anomaly-allowed", level=level, by=by.replace("-", " "))


def _witnesses(traits: Mapping[str, str]) -> Iterator[Finding]:
    names = takewhile(traits.__contains__, (f"T{number}" for number in count(1)))
    return (Finding("anomaly-witness", name=name, run=traits[name]) for name in names)


def _steps(kind: str, traits: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what the witnesses did; of a report that somebody wrote, what can be read of it."""
    edges = list(_edges(traits))
    if kind == LOST_UPDATE and len(edges) == 2:
        yield Finding("anomaly-overwrote", **edges[0].facts, last=edges[1].facts["after"])
        return
    for edge in edges:
        yield Finding(_ALONE.get(kind, edge.code), **edge.facts)


def _edges(traits: Mapping[str, str]) -> Iterator[Finding]:
    for number in count(1):
        words = traits.get(f"step {number}", "").split()
        versions = traits.get(f"versions {number}", "").split()
        if len(words) != 3 or len(versions) != 2 or words[0] not in ("ww", "wr", "rw"):
            return
        (edge, first, second), (version, after) = words, versions
        row = traits.get(f"row {number}", "")
        yield Finding(f"anomaly-{edge}", first=first, second=second, row=row, version=version, after=after)


def _number(one: Sighting, name: str) -> int:
    text = one.traits.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else 0


class SqlShown(UserShown):
    """Scripts with numbers of processes."""

    topics: ClassVar[tuple[Topic, ...]] = (histories, suspected, *UserShown.topics)

    def work(self, case: Case) -> str:
        spec = case.spec
        total = (
            sum(one.weight for one in spec.scripts) or 1
        )  # all of weight 0 in a report that somebody wrote
        shares = [f"{100 * one.weight / total:.3g}% {one.name}" for one in spec.scripts]
        scripts = spec.scripts[0].name if len(spec.scripts) == 1 else listing(shares)
        tries = f", each tried up to {whole(spec.max_tries)} times" if spec.max_tries > 1 else ""
        scale = f", scale {spec.scale}" if spec.builtin_setup or spec.scale > 1 else ""
        return f"{scripts}{scale}{tries}"

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        def column(figure: Callable[[Case], Value]) -> Callable[[Run], Value]:
            return lambda run: figure(run.case) if run.case.workload == "sql" else None

        return {
            "scripts": column(lambda case: face_of(case).words.work_of(case)),
            "scale": column(lambda case: case.spec.scale),
            "max_tries": column(lambda case: case.spec.max_tries),
            "ledger": column(lambda case: int(case.spec.ledger)),
            **super().case_columns(runs),
        }
