"""Tests of a fleet: who is compared with whom, what its sentences claim, and what they leave open."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from sqlstress.analysis.fleet import conclude, differing_facts
from sqlstress.analysis.fleet_hosts import host_of
from sqlstress.errors import UsageError
from sqlstress.report import Check, Report, Verdict
from sqlstress.show.phrases import phrase
from tests import several
from tests.crash_report import crash_report
from tests.fleet_reports import EXAMPLE, driven, fleet_of, four_hosts, host_report
from tests.show.variants import with_case


def said(reports: dict[str, Report], code: str = "") -> list[str]:
    return [phrase(one) for one in conclude(fleet_of(reports)) if code in ("", one.code)]


def test_a_row_has_the_hosts_in_order_and_never_a_figure_that_none_of_them_reached() -> None:
    fleet = fleet_of(four_hosts())
    for row in fleet.rows():
        rates = [one.rate for one in row.comparable]
        assert rates == sorted(rates, reverse=True)
        assert [one.host.name for one in row.comparable] == ["bert", "anna", "emil", "carl"]
        assert (row.best.host.name, row.median.host.name, row.worst.host.name) == ("bert", "emil", "carl")
        assert row.median.rate in rates


def test_a_slow_host_is_named_with_what_it_differs_in_and_one_that_waits_for_less_is_not_compared() -> None:
    fleet, texts = fleet_of(four_hosts()), " ".join(said(four_hosts()))
    for text in (
        "the best host, bert, reached 3.4 times",
        "Slower than the median host (emil) at 8 processes on 1 bucket: carl (0.3",
        "carl differs from most hosts in sync cost (4.00 ms; the median host has 0.200 ms)",
        "file system (xfs; most have ext4)",
    ):
        assert text in texts
    assert {one.host.name for row in fleet.rows() for one in row.apart} == {"dora"}
    (text,) = said(four_hosts(), "hosts-not-comparable")
    assert text.startswith("NOT COMPARABLE with the other hosts: dora. Durability is ")
    assert "a sync that does nothing" in text
    facts = list(differing_facts(fleet))
    assert facts == ["File system: ext4 on 3 hosts; xfs on carl; tmpfs on dora."]


def test_hosts_alike_are_about_equal() -> None:
    alike = {name: host_report(1 + step / 1000, minute=step) for step, name in enumerate("abc")}
    assert all("all 3 hosts are about equal" in text for text in said(alike, "hosts-equal"))
    assert not any(said(alike, code) for code in ("hosts-slower", "hosts-faster", "host-unlike"))


@pytest.mark.parametrize("trials", [1, 4])
def test_with_few_trials_nothing_is_claimed_and_it_is_said_how_many_would_do(trials: int) -> None:
    few = {
        name: host_report(factor, trials, minute=trials) for name, factor in (("a", 1), ("b", 2), ("c", 9))
    }
    for text in said(few, "hosts-unclear"):
        assert "cannot tell whether hosts differ" in text and "use --repeat" in text
    assert not said(few, "hosts-slower") and not said(few, "hosts-faster")


def noisy(random: Random, minute: int) -> Report:
    return replace(
        host_report(minute=minute), runs=tuple(several.noisy(run, 0.3, random, 9) for run in EXAMPLE.runs)
    )


@pytest.mark.thorough
def test_hosts_that_differ_by_chance_only_are_hardly_ever_told_apart() -> None:
    random = Random(7)
    wrong = 0
    for _ in range(40):
        fleet = {f"host{number}": noisy(random, number) for number in range(6)}
        found = list(conclude(fleet_of(fleet)))
        wrong += any(one.code in ("hosts-slower", "hosts-faster", "hosts-differ") for one in found)
    # At 5% it is 2 of 40; 8 or more are seen once in a thousand.
    assert wrong < 8


def test_the_same_report_is_counted_once_whatever_its_file_looks_like() -> None:
    one = host_report()
    fleet = fleet_of({"a": one, "copy": replace(one, command=("elsewhere",)), "b": host_report(minute=9)})
    assert [host.name for host in fleet.hosts] == ["a", "b"]
    assert fleet.twice == (("copy", "a"),)


def test_wrong_data_has_no_figure_and_comes_first() -> None:
    wrong = host_report(minute=3)
    verdict = Verdict((Check("last write", "failed", 1, 1, ("key 7 is gone",)),), 0.0)
    run = several.with_trials(wrong.runs[-1], verdict=verdict)
    reports = {
        "a": host_report(),
        "b": host_report(minute=1),
        "c": replace(wrong, runs=(*wrong.runs[:-1], run)),
    }
    fleet = fleet_of(reports)
    assert "FAILED on c: " in said(reports)[0] and "key 7 is gone" in said(reports)[0]
    (without,) = (row.without for row in fleet.rows() if row.without)
    assert [one.host.name for one in without] == ["c"]


def test_a_seed_and_the_length_of_a_window_do_not_keep_hosts_apart() -> None:
    other = with_case(host_report(minute=1), seed=99, duration_s=9.0, repeat=3)
    fleet = fleet_of({"a": host_report(), "b": other})
    assert len([*fleet.rows()]) == len(EXAMPLE.runs) and not fleet.alone()


def test_a_host_without_the_native_loop_stands_in_the_same_row_and_is_not_compared() -> None:
    reports = {"a": driven(host_report(), "native"), "b": driven(host_report(minute=1), "python")}
    fleet = fleet_of(reports)
    assert len([*fleet.rows()]) == len(EXAMPLE.runs) and not fleet.alone()
    (text,) = said(reports, "hosts-not-comparable")
    assert "b. Loop is python; on the other hosts it is native" in text


@pytest.mark.parametrize("report", [crash_report(), replace(EXAMPLE, runs=())])
def test_what_has_no_rates_is_refused_in_a_clause(report: Report) -> None:
    with pytest.raises(UsageError):
        host_of("a", report)
