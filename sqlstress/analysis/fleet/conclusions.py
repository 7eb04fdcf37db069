"""Conclusions: what the reports of a fleet say, in plain sentences, each against the noise of its trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlstress.analysis.comparison.estimates import DIFFERENT, EQUAL, TOO_FEW, Estimate
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.fleet.gather import Fleet
from sqlstress.analysis.fleet.host import Host
from sqlstress.analysis.fleet.joint_words import totals_told
from sqlstress.analysis.fleet.monotone import Trend, trend
from sqlstress.analysis.fleet.tables import Figure, Row, compared
from sqlstress.analysis.fleet.unlike import Spread, spreads, unlike
from sqlstress.analysis.group import EQUAL as NEAR
from sqlstress.analysis.wording import listing, plural, rounded, times
from sqlstress.experiment import face_of
from sqlstress.statistics.unpaired import needed

_LONGEST = 40


def conclude(fleet: Fleet) -> Iterator[Finding]:
    """Yield what can be said of the hosts: wrong data first."""
    yield from _wrong(fleet)
    yield from totals_told(fleet)
    found = spreads(fleet.hosts)
    slow: dict[str, Host] = {}
    for row in fleet.told():
        yield _range(fleet, row)
        yield from _from_the_median(fleet, row, slow)
    yield from _explained(fleet, slow.values(), found)
    yield from _apart(fleet)
    # A server's disk is not its hosts'.
    own_disk = [row for row in fleet.told()[:1] if not row.case.server]
    yield from (one for row in own_disk if (one := _with_sync(row)))


def name(host: Host) -> str:
    """Return what a host is called in a sentence."""
    return host.name if len(host.name) <= _LONGEST else f"{host.name[: _LONGEST - 1]}…"


def names(hosts: Sequence[Host]) -> str:
    """Return several hosts' names; of many the first ones."""
    return listing([name(host) for host in hosts])


def _wrong(fleet: Fleet) -> Iterator[Finding]:
    for host in fleet.hosts:
        wrong = [one for one in host.cases if one.wrong]
        if wrong:
            yield Finding(
                "wrong-data",
                f"FAILED on {name(host)}: the data is not what its workers were told it is, in "
                f"{plural(len(wrong), 'case')}: {wrong[0].wrong}. It has no figure there.",
            )


def _range(fleet: Fleet, row: Row) -> Finding:
    """Return how the best host compares with the worst."""
    best, worst = row.best, row.worst
    found = compared(worst, best, fleet.alpha)
    shown = f"{rounded(best.rate)} and {rounded(worst.rate)} {_unit(row)}"
    where = f"At {row.place}"
    if found is None:
        return Finding("range", f"{where} {_pair(best, worst)} show {shown}; {_UNTOLD}.")
    if found.verdict == DIFFERENT:
        text = (
            f"{where} the best host, {name(best.host)}, reached {times(found.ratio)}{_ends(found)} what the "
            f"worst, {name(worst.host)}, did: {shown}."
        )
    elif found.verdict == EQUAL:
        text = f"{where} all {len(row.comparable)} hosts are about equal{_ends(found)}: {shown} at the ends."
    elif found.verdict == TOO_FEW:
        text = (
            f"{where} {_pair(best, worst)} showed {shown}, but whether hosts differ {_UNTOLD} from so few "
            f"trials: measure each with --repeat {needed(fleet.alpha / 2)}."
        )
    else:
        text = (
            f"{where} {_pair(best, worst)} showed {shown}, but whether hosts differ {_UNTOLD}"
            f"{_ends(found)}: measure longer, or more trials."
        )
    return Finding("range", text)


_UNTOLD = "can't be told"


def _pair(best: Figure, worst: Figure) -> str:
    return f"the best host, {name(best.host)}, and the worst, {name(worst.host)},"


def _ends(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return ""
    return f" (95% interval {rounded(found.low, 2)} to {times(found.high)})"


def _unit(row: Row) -> str:
    return f"{face_of(row.case).rate_counts} a second"


def _from_the_median(fleet: Fleet, row: Row, unlike_hosts: dict[str, Host]) -> Iterator[Finding]:
    """Yield which hosts are beyond doubt unlike the one in the middle, and remember the hosts."""
    if len(row.comparable) < 3:
        return
    median = row.median
    sides: dict[str, list[str]] = {"slower": [], "faster": []}
    for figure in row.comparable:
        found = compared(median, figure, fleet.alpha) if figure is not median else None
        if found and found.verdict == DIFFERENT and not 1 - NEAR < found.ratio < 1 / (1 - NEAR):
            sides["slower" if found.ratio < 1 else "faster"].append(
                f"{name(figure.host)} ({times(found.ratio)})"
            )
            unlike_hosts[figure.host.digest] = figure.host
    for side, told in sides.items():
        if told:
            yield Finding(
                side, f"{side.capitalize()} than the median host, {name(median.host)}, at {row.place}: "
                f"{listing(told)}.",
            )  # fmt: skip


_MOST_EXPLAINED = 8


def _explained(fleet: Fleet, hosts: Iterable[Host], found: Sequence[Spread]) -> Iterator[Finding]:
    """Yield in what hosts differ from most whose figures do; that is no proof of what it comes from."""
    for host in list(hosts)[:_MOST_EXPLAINED]:
        own = list(unlike(host, fleet.hosts, found))
        if own:
            yield Finding("unlike", f"{name(host)} differs from most hosts in {'; '.join(own)}.")
        else:
            yield Finding(
                "unlike", f"{name(host)} differs from most in its figures, and in nothing that reports tell."
            )


def _apart(fleet: Fleet) -> Iterator[Finding]:
    """Yield which hosts can't be compared with the others, and why; the same of several cases once."""
    told: dict[tuple[str, ...], dict[str, Host]] = {}
    for table in fleet.tables:
        for row in table.rows:
            for figure in row.apart:
                told.setdefault(row.why_apart(figure), {})[figure.host.digest] = figure.host
    for reasons, hosts in told.items():
        text = f"NOT COMPARABLE with the others: {names([*hosts.values()])}: {listing(reasons)}."
        yield Finding("not-comparable", text)


def _with_sync(row: Row) -> Finding | None:
    """Return whether hosts whose sync costs less reached more; None of too few hosts to ask."""
    points = [(one.host.sync_ns[0], one.rate) for one in row.comparable if one.host.sync_ns]
    if len(points) < 3:
        return None
    found: Trend = trend(points)
    told = f"over {len(points)} hosts, at {row.place}"
    if found.is_shown and found.falls:
        text = (
            f"Hosts whose sync costs less reached more, {told} (Kendall's tau {found.tau:.2f}). That "
            "it is why is not shown."
        )
    elif found.is_shown:
        text = (
            f"Hosts whose sync costs more reached more, {told} (Kendall's tau {found.tau:.2f}): "
            "something else tells them apart."
        )
    else:
        text = (
            f"Whether hosts with a cheaper sync reached more {_UNTOLD} {told} (Kendall's tau "
            f"{found.tau:.2f})."
        )
    return Finding("with-sync", text)


def differing_facts(fleet: Fleet) -> Iterator[str]:
    """Yield in what the hosts differ, a sentence for each subject."""
    for spread in spreads(fleet.hosts):
        told = [f"{value} on {_where(own, len(fleet.hosts))}" for value, own in spread.values[:8]]
        more = len(spread.values) - 8
        others = [f"{plural(more, 'other value')}"] if more > 0 else []
        yield f"{spread.subject[:1].upper()}{spread.subject[1:]}: {'; '.join([*told, *others])}."


def _where(hosts: Sequence[Host], every: int) -> str:
    return f"{len(hosts)} hosts" if 2 * len(hosts) > every and len(hosts) > 1 else names(hosts)
