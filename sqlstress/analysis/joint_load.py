"""Joint loads: what several hosts did together to one server, as a total over their common window.

All figures of a fleet but these are hosts' own. The windows of all hosts open at one agreed instant of the
server's clock. What the total is off by is what their windows may not have in common: the stretches that are
not in all of them, and twice the error of the clocks, in which each host counts as at its own rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.fleet_hosts import Share
from sqlstress.analysis.wording import duration, listing, place
from sqlstress.experiment import face_of
from sqlstress.report.case import Case
from sqlstress.report.results import Together
from sqlstress.statistics.units import NS_PER_S

if TYPE_CHECKING:
    from sqlstress.analysis.fleet import Fleet
    from sqlstress.analysis.fleet_hosts import Host


@dataclass(frozen=True, slots=True)
class Total:
    """One trial of all hosts that took part in it to its end."""

    step: int
    """Which trial of the common measurement it was."""
    shares: tuple[Share, ...]
    """Those that count, one of each host, by the hosts' names."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Who is in it."""
        return tuple(one.together.host for one in self.shares)

    @property
    def rate(self) -> float:
        """Transactions a second of all of them together."""
        return sum(one.rate for one in self.shares)

    @property
    def seconds(self) -> float:
        """How long a host's window is."""
        return max(one.seconds for one in self.shares)

    @property
    def common_s(self) -> float:
        """For how long all their windows were open, by the server's clock; 0: never at once."""
        opens = max(one.together.opens_ns for one in self.shares)
        closes = min(one.together.closes_ns for one in self.shares)
        return max(0, closes - opens) / NS_PER_S

    @property
    def error_ns(self) -> int:
        """How exactly the clocks are known: the largest error of any host's window."""
        return max(one.together.error_ns for one in self.shares)

    @property
    def off_share(self) -> float:
        """By which share the total may be off, since the windows are not quite the same; 1: it is none."""
        surely_s = self.common_s - 2 * self.error_ns / NS_PER_S
        return min(1.0, max(0.0, 1 - surely_s / self.seconds)) if surely_s > 0 < self.seconds else 1.0


@dataclass(frozen=True, slots=True)
class Joint:
    """One case that several hosts measured together."""

    meeting: str
    """Which common measurement."""
    case: Case
    work: str
    """What the processes of each host did, in a line."""
    asked: tuple[str, ...]
    """Who was to take part."""
    totals: tuple[Total, ...]
    """Of the trials that the most hosts took part in to the end, with windows that were open at once."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Who was to take part and is in no such total, and why, in a clause."""

    @property
    def hosts(self) -> int:
        """How many hosts are in a total."""
        return len(self.totals[0].hosts) if self.totals else 0

    @property
    def typical(self) -> Total | None:
        """The trial whose total is the (lower) median; None where there is no total."""
        ranked = sorted(self.totals, key=lambda one: one.rate)
        return ranked[(len(ranked) - 1) // 2] if ranked else None

    @property
    def lowest(self) -> float:
        """The lowest of the totals; 0 where there is none."""
        return min((one.rate for one in self.totals), default=0.0)

    @property
    def highest(self) -> float:
        """The highest of the totals; 0 where there is none."""
        return max((one.rate for one in self.totals), default=0.0)

    @property
    def server(self) -> str:
        """Where the server is, as it may be shown."""
        return str(self.case.server.address) if self.case.server and self.case.server.address else "a server"


def joint_loads(hosts: Iterable[Host]) -> tuple[Joint, ...]:
    """Return what hosts measured together, by the measurement, the layout and the number of processes."""
    found: dict[tuple[str, Case], dict[int, dict[str, Share]]] = {}
    works: dict[Case, str] = {}
    for host in hosts:
        for measured in host.cases:
            for share in measured.shares:
                key = share.together.meeting, measured.case
                works.setdefault(measured.case, measured.work)
                by_host = found.setdefault(key, {}).setdefault(share.together.step, {})
                by_host.setdefault(share.together.host, share)
    return tuple(
        _joint(meeting, case, works[case], trials)
        for (meeting, case), trials in sorted(found.items(), key=lambda one: _order(*one[0]))
    )


def _order(meeting: str, case: Case) -> tuple[str, int, int]:
    return meeting, case.buckets, case.concurrency


def _joint(meeting: str, case: Case, work: str, trials: Mapping[int, Mapping[str, Share]]) -> Joint:
    every = [share for by_host in trials.values() for share in by_host.values()]
    asked = tuple(sorted({name for share in every for name in share.together.asked}))
    totals = [
        total
        for step, by_host in sorted(trials.items())
        if (own := _that_met(by_host)) and (total := Total(step, own)).off_share < 1
    ]
    most = max((len(total.hosts) for total in totals), default=0)
    fullest = tuple(total for total in totals if len(total.hosts) == most)
    within = {name for total in fullest for name in total.hosts}
    return Joint(
        meeting, case, work, asked, fullest, {name: _why(name, every) for name in asked if name not in within}
    )


def _that_met(by_host: Mapping[str, Share]) -> tuple[Share, ...]:
    """Return the shares that count of one trial: where some began apart from others, of the most hosts."""
    met: dict[tuple[str, ...], list[Share]] = {}
    for name in sorted(by_host):
        share = by_host[name]
        if not share.why_not and name in share.together.began:
            met.setdefault(share.together.began, []).append(share)
    most: list[Share] = max(met.values(), key=len, default=[])
    return tuple(most)


def _why(name: str, every: Iterable[Share]) -> str:
    """Return why a host that was asked is in no total."""
    own = [share for share in every if share.together.host == name]
    if own:
        return next((share.why_not for share in own if share.why_not), "it began apart from the others")
    if any(name in share.together.began for share in every):
        return "it began with the others, and there is no trial of it"
    return "it was not ready when the others began"


# What there is to say of joint loads.


_LONGEST = 40


def totals_told(fleet: Fleet) -> Iterator[Finding]:
    """Yield the highest total of each common measurement, marked as such."""
    every = fleet.joint()
    for meeting in dict.fromkeys(one.meeting for one in every):
        own = [one for one in every if one.meeting == meeting]
        best = max(own, key=lambda one: one.typical.rate if one.typical else 0.0)
        yield _total(best, best.typical)


def _total(joint: Joint, total: Total | None) -> Finding:
    hosts = len(joint.asked)
    if total is None:
        return Finding("joint-none", hosts=hosts)
    several = len(joint.totals) > 1
    return Finding(
        "joint-total",
        took_part=joint.hosts if joint.hosts != hosts else None,
        hosts=hosts,
        server=joint.server,
        where=place(joint.case),
        rate=total.rate,
        unit=f"{face_of(joint.case).rate_counts} a second",
        lowest=joint.lowest if several else None,
        highest=joint.highest if several else None,
        trials=len(joint.totals) if several else None,
        off=total.off_share,
        common_s=total.common_s,
        window_s=total.seconds,
        clocks_ns=total.error_ns,
    )


def known_within(total: Total) -> str:
    """Write how exactly the clocks are known."""
    return duration(total.error_ns)


def clocks_told(fleet: Fleet, meeting: str) -> Iterator[str]:
    """Yield how far the hosts' clocks are from the server's: of many hosts the two ends."""
    found: dict[str, Together] = {}
    for host in fleet.hosts:
        for share in (share for case in host.cases for share in case.shares):
            if share.together.meeting == meeting:
                found.setdefault(share.together.host, share.together)
    ordered = sorted(found.values(), key=lambda one: one.clock_ns)
    if not ordered:
        return
    shown = ordered if len(ordered) <= 4 else [ordered[0], ordered[-1]]
    which = "" if len(shown) == len(ordered) else f", at the ends of {len(ordered)} hosts"
    yield f"Clocks, beside the server's{which}: {listing([_clock(one) for one in shown])}."


def _clock(one: Together) -> str:
    name = one.host if len(one.host) <= _LONGEST else f"{one.host[: _LONGEST - 1]}…"
    side = "ahead" if one.clock_ns >= 0 else "behind"
    return f"{name} {duration(abs(one.clock_ns))} {side} (±{duration(one.clock_error_ns)})"
