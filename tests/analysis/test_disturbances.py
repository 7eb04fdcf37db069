"""Disturbances of a measurement by other programs, and the findings on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sqlstress.analysis.disturbances import disturbances, disturbed, taken_share
from sqlstress.analysis.finding import texts
from sqlstress.analysis.group import group_runs
from sqlstress.experiment import experiment_of
from sqlstress.report import Environment, Run, Throttling, Warning
from sqlstress.show.case_table import spread_legend
from sqlstress.show.heading import warnings
from sqlstress.show.phrases import facts_of
from sqlstress.show.phrases import sentences as all_sentences
from tests import example_methods as methods
from tests.analysis.hand_made import EXAMPLE, group, run, trial
from tests.example_methods import methods_report
from tests.example_report import assert_golden_texts
from tests.several import with_trials

CALM = replace(EXAMPLE.environment, sync_after=EXAMPLE.environment.sync)


def texts_of(*runs: Run) -> list[str]:
    return list(texts(disturbances(group(*runs), CALM)))


@pytest.mark.parametrize(
    ("foreign", "stolen", "expected"),
    [(None, None, 0.0), (0.3, 0.1, 0.4), (0.9, 0.9, 1.0), (math.inf, 0.1, 0.1), (math.nan, None, 0.0)],
)
def test_foreign_load_is_a_share_for_any_values_of_a_file(
    foreign: float | None, stolen: float | None, expected: float
) -> None:
    assert taken_share(trial(foreign_share=foreign, stolen_share=stolen)) == pytest.approx(expected)


def test_row_is_marked_if_half_of_its_passes_were_disturbed() -> None:
    met, calm = trial(foreign_share=0.4), trial(foreign_share=0.04)
    assert disturbed(run(1, 2, met, met, calm, calm))
    assert not disturbed(run(1, 2, met, calm, calm))
    assert not disturbed(run(1, 2, trial()))
    assert not disturbed(run(1, 2, replace(met, error="worker 1 died"), calm))
    assert disturbed(run(1, 2, trial(disk_share=0.4), calm))
    assert not disturbed(run(1, 2, trial(disk_share=0.4), calm, calm))


def loaded(processes: int, *shares: float, **fields: float) -> Run:
    return run(1, processes, *(trial(foreign_share=share, **fields) for share in shares))


def on_disk(processes: int, share: float, **fields: float) -> Run:
    return run(1, processes, trial(disk_share=share, **fields))


def heated(met: int) -> list[Run]:
    """Return four different cases; in the first `met` of them, heat slowed the processors."""
    runs = [methods.run("insert", "1b1", scale) for scale in (10, 100, 1000, 10_000)]
    return [*(with_trials(heated_run, throttled=3) for heated_run in runs[:met]), *runs[met:]]


def synced(factor: float) -> Environment:
    """Return an environment whose syncs took `factor` times as long afterwards."""
    before = EXAMPLE.environment.sync
    assert before
    after = replace(before, overwrite_p50_ns=int(before.overwrite_p50_ns * factor))
    return replace(EXAMPLE.environment, sync_again=before, sync_after=after, sync_after_again=after)


DISTURBED: dict[str, Sequence[Run]] = {
    "some cases": [loaded(2, 0.2), loaded(4, 0.62), run(1, 8)],
    "all cases": [loaded(1, 0.3), loaded(2, 0.3)],
    "guests": [loaded(2, 0.01, stolen_share=0.3)],
    "the disk": [on_disk(2, 0.2), on_disk(4, 0.62), run(1, 8)],
    "what is much of one thing is not much of another": [
        run(1, 2, trial(disk_share=0.4, foreign_share=0.2), *[trial(disk_share=0.4)] * 2)
    ],
    "what is to be done about both is said once": [on_disk(2, 0.4, foreign_share=0.2)],
    "much in one of several passes": [loaded(2, 0.3, 0.02, 0.02)],
    "too little in one of several passes": [loaded(2, 0.2, 0.02, 0.02)],
    "too little": [loaded(2, 0.05)],
    "heat": [run(1, 2, trial(throttled=3)), run(1, 4, trial(throttled=0))],
    **{f"heat in {met} of 4 cases": heated(met) for met in (2, 3, 4)},
}


def test_disturbances_are_reported_with_maximum_and_place() -> None:
    assert_golden_texts("disturbed.txt", {name: texts_of(*runs) for name, runs in DISTURBED.items()})


def test_changed_disk_is_reported() -> None:
    changed = {
        factor: list(disturbances(group(run(1, 2)), synced(factor))) for factor in (2.5, 0.4, 0.6, 1.9)
    }
    assert [len(results) for results in changed.values()] == [1, 1, 0, 0]
    for factor, slower in ((2.5, True), (0.4, False)):
        (finding,) = changed[factor]
        assert (finding.facts["times"], finding.facts["slower"]) == (pytest.approx(2.5, 0.01), slower)


def test_changed_disk_needs_two_samples_on_each_side() -> None:
    changed = synced(2.5)
    for partial in (replace(changed, sync_again=None), replace(changed, sync_after_again=None)):
        assert not list(disturbances(group(run(1, 2)), partial))
    # The second samples show that the first were noise.
    for noise in (
        replace(changed, sync_again=changed.sync_after),
        replace(changed, sync_after_again=changed.sync),
    ):
        assert not list(disturbances(group(run(1, 2)), noise))


QUOTA = Throttling(cores=0.5, periods=20, throttled=18, stopped_s=0.9)


def test_throttled_trial_names_only_the_quota() -> None:
    limited = replace(synced(0.4), host=replace(EXAMPLE.environment.host, cpu_quota=0.5))
    throttled = run(1, 2, trial(quota=QUOTA, foreign_share=0.6, stolen_share=0.2))
    (finding,) = disturbances(group(throttled), limited)
    assert finding.code == "quota-throttled"
    assert finding.text.startswith("The CPU quota of 0.5 cores stopped the processes in up to 90% of")
    assert disturbed(throttled)
    (legend,) = (line for line in spread_legend(group(throttled)) if line.startswith("~"))
    assert legend == "~: a CPU quota stopped the processes"


def test_throttled_run_suppresses_findings_on_other_load() -> None:
    throttled, crowded = run(1, 2, trial(quota=QUOTA)), run(1, 4, trial(foreign_share=0.9, disk_share=0.9))
    elsewhere = replace(crowded, case=replace(crowded.case, seed=5), arm="B")
    groups = group_runs((throttled, crowded, elsewhere))
    codes = [finding.code for part in groups for finding in disturbances(part, CALM)]
    assert codes == ["quota-throttled"]
    assert [disturbed(part) for each_group in groups for part in each_group.runs] == [True, False, False]
    legends = [line for part in groups for line in spread_legend(part) if line.startswith("~")]
    assert legends == ["~: a CPU quota stopped the processes"]


def test_longest_stop_is_reported_unless_its_length_is_unknown() -> None:
    stops = [trial(quota=replace(QUOTA, stopped_s=seconds)) for seconds in (0.0, 0.4, 0.1)]
    (longest,) = disturbances(group(run(1, 2, *stops)), CALM)
    assert "(for 400 ms in all)" in longest.text
    (unknown,) = disturbances(group(run(1, 2, stops[0])), CALM)
    assert "in all" not in unknown.text


def test_throttling_is_not_reported_twice() -> None:
    warning = Warning("cpu-quota", "A CPU quota limits this container to 0.5 cores.", True)
    limited = replace(CALM, warnings=(warning,))
    (text,) = warnings(group(run(1, 2, trial(quota=QUOTA))), limited, ())
    assert "stopped the processes" in text
    assert warnings(group(run(1, 2)), limited, ()) == (f"Warning: {warning.text}",)


def test_only_foreign_load_advises_a_quieter_machine() -> None:
    assert [
        code for code, sentence in all_sentences().items() if "quieter" in sentence(**facts_of(sentence))
    ] == ["other-load"]


def test_unused_quota_leaves_other_causes() -> None:
    calm = run(1, 2, trial(quota=replace(QUOTA, throttled=0, stopped_s=0.0), foreign_share=0.6))
    assert [finding.code for finding in disturbances(group(calm), CALM)] == ["other-load"]


def test_disturbed_cases_are_named_as_in_tables() -> None:
    report = methods_report()
    tsc = report.runs[1]
    met = with_trials(tsc, foreign_share=0.5)
    groups = group_runs((report.runs[0], met, *report.runs[2:]))
    places = [finding.facts["processors"].where for part in groups for finding in disturbances(part, CALM)]
    assert any(experiment_of(met.case).work_label(met.case) in where for where in places), places
