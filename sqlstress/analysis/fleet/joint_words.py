"""What is said of joint loads, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlstress.analysis.finding import Finding
from sqlstress.analysis.wording import duration, listing, percent, place, plural, rounded
from sqlstress.experiment import face_of
from sqlstress.report.together import Together
from sqlstress.statistics.units import format_duration

if TYPE_CHECKING:
    from sqlstress.analysis.fleet.gather import Fleet
    from sqlstress.analysis.fleet.joint import Joint, Total

_LONGEST = 40


def totals_told(fleet: Fleet) -> Iterator[Finding]:
    """Yield the highest total of each common measurement, marked as such."""
    every = fleet.joint()
    for meeting in dict.fromkeys(one.meeting for one in every):
        own = [one for one in every if one.meeting == meeting]
        best = max(own, key=lambda one: one.typical.rate if one.typical else 0.0)
        yield Finding("total", _told(best, best.typical))


def _told(joint: Joint, total: Total | None) -> str:
    if total is None:
        return f"There is no total of {plural(len(joint.asked), 'host')}: no windows of theirs were the same."
    asked = len(joint.asked)
    of = plural(asked, "host") if joint.hosts == asked else f"{joint.hosts} of {plural(asked, 'host')}"
    return (
        f"TOTAL of {of} on {joint.server}, with {place(joint.case)} each: {rounded(total.rate)} "
        f"{face_of(joint.case).rate_counts} a second{_range(joint)}, ±{percent(total.off_share)} by windows "
        f"and clocks. Their windows were open together for {total.common_s:.4f} s of "
        f"{format_duration(total.seconds)}, and the clocks are known within {known_within(total)}."
    )


def _range(joint: Joint) -> str:
    if len(joint.totals) < 2:
        return ""
    return f" ({rounded(joint.lowest)} to {rounded(joint.highest)} in {len(joint.totals)} trials)"


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
