"""Tests of totals: what counts as a load of several hosts together, and by how much its total may be off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.analysis.fleet import conclude
from sqlstress.analysis.fleet_hosts import Joint, Share, Total
from sqlstress.report import Check, Report, Verdict
from sqlstress.report.results import Together
from sqlstress.show.phrases import phrase
from sqlstress.statistics.units import NS_PER_S
from tests.drawing import examples
from tests.fleet_reports import driven, fleet_of, host_report
from tests.show.variants import each_trial

BEGIN = 1_700_000_000 * NS_PER_S
ABC = ("anna", "bert", "carl")


def together(
    host: str, step: int, began: tuple[str, ...] = ABC, off_ns: int = 0, error_ns: int = 1000
) -> Together:
    opens = BEGIN + step * 10 * NS_PER_S + off_ns
    return Together("m", step, host, ABC, began, opens, opens + 2 * NS_PER_S, error_ns, off_ns, error_ns)


def report(host: str, factor: float = 1.0, began: tuple[str, ...] = ABC, off_ns: int = 0) -> Report:
    """Return the report of a host with three trials of two cases, together with others."""
    plain = host_report(factor, trials=3, minute=ABC.index(host))
    steps = count()
    return each_trial(
        lambda trial: replace(trial, together=together(host, next(steps), began, off_ns)),
        replace(plain, runs=plain.runs[:2]),
    )


def joint(reports: Mapping[str, Report]) -> Joint:
    """Return the first of what hosts have measured together."""
    return fleet_of(reports).joint()[0]


def told(reports: Mapping[str, Report]) -> str:
    return next(phrase(one) for one in conclude(fleet_of(reports)) if one.code.startswith("joint-"))


def every() -> dict[str, Report]:
    return {name: report(name, factor) for name, factor in zip(ABC, (1.0, 2.0, 0.5), strict=True)}


def test_a_total_is_the_sum_of_the_hosts_trial_by_trial() -> None:
    reports = every()
    found = joint(reports)
    assert found.hosts == 3 and found.asked == ABC and not found.without and len(found.totals) == 3
    for index, total in enumerate(found.totals):
        assert total.hosts == ABC
        assert total.rate == sum(one.runs[0].trials[index].tps for one in reports.values())
    typical = found.typical
    assert typical and typical.rate == sorted(one.rate for one in found.totals)[1]
    assert found.lowest <= typical.rate <= found.highest
    assert told(reports).startswith("TOTAL of 3 hosts on a server")
    # One of which has no native loop is in it.
    mixed = {name: driven(one, "python" if name == ABC[0] else "native") for name, one in reports.items()}
    assert joint(mixed).hosts == 3 and joint(mixed).lowest == found.lowest
    # Hosts that loaded alone have none.
    fleet = fleet_of({name: host_report(minute=number) for number, name in enumerate(ABC)})
    assert fleet.joint() == () and all(not one.code.startswith("joint-") for one in conclude(fleet))


def test_a_lost_host_is_named_and_the_total_says_of_how_many_it_is() -> None:
    reports = every()
    del reports["carl"]
    found = joint(reports)
    assert found.hosts == 2
    assert dict(found.without) == {"carl": "it began with the others, and there is no trial of it"}
    assert "TOTAL of 2 of 3 hosts" in told(reports)
    found = joint({name: report(name, began=ABC[:2]) for name in ABC[:2]})
    assert found.hosts == 2 and dict(found.without) == {"carl": "it was not ready when the others began"}


def test_hosts_that_did_not_meet_are_never_summed() -> None:
    found = joint({"anna": report("anna", began=("anna",)), "bert": report("bert", began=("bert",))})
    assert found.hosts == 1 and all(len(total.hosts) == 1 for total in found.totals)
    assert found.without["bert"] == "it began apart from the others"


def test_a_trial_that_is_not_valid_is_in_no_total() -> None:
    reports = every()
    broken = reports["bert"].runs[0]
    first = replace(broken.trials[0], error="a worker came late to the window.")
    trials = (first, *broken.trials[1:])
    reports["bert"] = replace(reports["bert"], runs=(replace(broken, trials=trials), reports["bert"].runs[1]))
    found = joint(reports)
    # The two trials that all three took part in stand; nobody is missing in them.
    assert found.hosts == 3 and [one.step for one in found.totals] == [1, 2] and not found.without
    # Wrong data keeps all trials of a host out.
    bad = replace(broken.trials[2], verdict=Verdict((Check("last write", "failed"),)))
    trials = (*broken.trials[:2], bad)
    reports["bert"] = replace(reports["bert"], runs=(replace(broken, trials=trials), reports["bert"].runs[1]))
    found = joint(reports)
    assert found.hosts == 2 and dict(found.without) == {"bert": "its data was wrong"}


def test_the_error_is_what_windows_do_not_surely_have_in_common_and_without_any_there_is_no_total() -> None:
    apart = {"anna": report("anna"), "bert": report("bert", off_ns=3 * NS_PER_S)}
    assert joint(apart).typical is None
    assert "No total for 3 hosts" in told(apart)
    reports = {"anna": report("anna"), "bert": report("bert", off_ns=20_000_000)}
    total = joint(reports).typical
    assert total and total.common_s == pytest.approx(1.98)
    assert total.off_share == pytest.approx((0.02 + 2e-6) / 2)


SHIFTS = st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=6)


@settings(max_examples=examples(1.0))
@given(SHIFTS, st.integers(0, 10**8), st.data())
def test_the_error_holds_wherever_within_their_errors_the_windows_truly_were(
    shifts: list[int], error_ns: int, data: st.DataObject
) -> None:
    """Of hosts that work evenly, what was done in the true common window differs from it by no more."""
    names = tuple(f"host{number}" for number in range(len(shifts)))
    rates = [data.draw(st.floats(1, 1e6)) for _ in names]
    total = Total(
        0,
        tuple(
            Share(together(name, 0, names, shift, error_ns), 2.0, rate)
            for name, shift, rate in zip(names, shifts, rates, strict=True)
        ),
    )
    true = [shift + data.draw(st.integers(-error_ns, error_ns)) for shift in shifts]
    common_s = 2.0 - (max(true) - min(true)) / NS_PER_S
    within = sum(rates) * max(0.0, common_s) / 2.0
    assert abs(total.rate - within) <= total.off_share * total.rate * (1 + 1e-9)
