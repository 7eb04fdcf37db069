"""Presets through the command line: listed, and measured in turns."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.engine.trial import TrialRunner
from sqlstress.errors import UsageError
from sqlstress.experiments.tune.experiment import catalogue
from sqlstress.report import Trial
from sqlstress.report.case import Case
from tests.cli.conftest import Cli, saved
from tests.example_report import example_report

COMPARE = ("presets", "--compare", "rails,kine", "-o", "presets.json", "--no-progress", "--dir", ".")
TRIAL = example_report().runs[0].trials[0]
Rate = Callable[[Case, int], float]


def slices(monkeypatch: pytest.MonkeyPatch, rate: Rate) -> list[Case]:
    """Make slices up; return the cases of those that were asked for."""
    asked: list[Case] = []

    def run(runner: TrialRunner, case: Case, index: int) -> Trial:
        asked.append(case)
        return replace(TRIAL, index=index, tps=rate(case, index))

    monkeypatch.setattr(TrialRunner, "run", run)
    return asked


def is_rails(case: Case) -> bool:
    return bool(case.settings.mmap_size)


def test_without_names_all_are_listed_and_nothing_is_measured(cli: Cli, tmp_path: Path) -> None:
    said = cli("presets")
    assert (said.code, said.err) == (0, "")
    assert all(f"{name}: " in said.out for name in catalogue())
    assert list(tmp_path.iterdir()) == []


def test_every_preset_is_measured_once_a_round_against_the_load_as_it_was_given(
    monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    asked = slices(monkeypatch, lambda case, index: (1.0 + index % 3 / 100) * (1 + is_rails(case)))
    load = ("-c", "3", "--synchronous", "full", "--pragma", "secure_delete=on")
    said = cli(*COMPARE, "--rounds", "6", "--", *load)
    assert said.code == 0
    assert "rails: 2.0 times your own settings (" in said.out
    assert "kine: about equal to your own settings (" in " ".join(said.out.split())
    report = saved("presets.json")
    assert [(run.arm, len(run.trials)) for run in report.runs] == [("yours", 6), ("rails", 6), ("kine", 6)]
    assert {(case.concurrency, case.duration_s, case.repeat) for case in asked} == {(3, 1.0, 1)}
    assert all(("secure_delete", "on") in case.settings.pragmas for case in asked)
    own, rails, kine = (run.case.settings for run in report.runs)
    assert (own.synchronous, rails.synchronous, kine.synchronous) == ("full", "normal", "normal")
    assert [asked[place : place + 3] for place in range(0, 18, 3)] != [asked[:3]] * 6  # the order is drawn


def test_a_load_without_settings_is_set_against_what_sqlite_does_by_itself(
    monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    slices(monkeypatch, lambda case, index: (1.0 + index % 3 / 100) * (1 + is_rails(case)))
    said = cli(*COMPARE, "--rounds", "6", "--", "-c", "3")
    assert "rails: 2.0 times SQLite's defaults (" in said.out
    base = saved("presets.json").runs[0]
    assert (base.arm, base.case.settings.journal_mode, base.case.settings.synchronous) == (
        "sqlite",
        "delete",
        "full",
    )
    assert cli(*COMPARE, "--against", "yours", "--rounds", "3").code == 0
    assert saved("presets.json").runs[0].arm == "yours"


def test_noise_is_not_taken_for_a_gain_and_exits_3_if_strict(
    monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    slices(monkeypatch, lambda case, index: 1.0 + (index * (7 if is_rails(case) else 5)) % 4)
    said = cli(*COMPARE, "--rounds", "5", "--strict")
    assert said.code == 3
    assert "rails: cannot tell (" in said.out


def test_a_preset_that_sqlite_refuses_is_said_and_the_others_are_measured(
    monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    def rate(case: Case, index: int) -> float:
        if is_rails(case):
            raise UsageError("PRAGMA mmap_size: asked for 134217728, SQLite answers 0.")
        return 1.0 + index / 100

    slices(monkeypatch, rate)
    said = cli(*COMPARE, "--rounds", "4")
    assert said.code == 0
    assert "rails was only partly measured: PRAGMA mmap_size" in " ".join(said.out.split())
    assert [(run.arm, len(run.trials)) for run in saved("presets.json").runs] == [
        ("sqlite", 4),
        ("rails", 0),
        ("kine", 4),
    ]


def test_ctrl_c_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    def run(runner: TrialRunner, case: Case, index: int) -> Trial:
        if index == 4:
            runner.signals.caught = 2
            runner.signals.check()
        return replace(TRIAL, index=index)

    monkeypatch.setattr(TrialRunner, "run", run)
    said = cli(*COMPARE)
    assert said.code == 130
    assert said.lines == ["Stopped after 4 of 10 rounds; what was measured is in presets.json."]
    assert saved("presets.json").interrupted
    assert cli("report", "presets.json").out.count("over") > 0


@pytest.mark.thorough
def test_real_slices_are_proved_saved_in_every_format_and_leave_no_file(cli: Cli, tmp_path: Path) -> None:
    options = ("-c", "2", "--duration", "400ms", "--warmup", "50ms", "--key-space", "200")
    outputs = ("-o", "p.csv", "-o", "p.md", "-o", "p.html", "-o", "p.xml", "-o", "bmf:p.bmf")
    said = cli(*COMPARE, *outputs, "--rounds", "3", "--", *options)
    assert said.code == 0, said.err
    report = saved("presets.json")
    assert all(run.verdict.status == "ok" for run in report.runs)
    assert report.runs[1].trials[0].effective["synchronous"] == "normal"
    rows = list(csv.DictReader(io.StringIO((tmp_path / "p.csv").read_text(encoding="utf-8"))))
    assert {row["arm"] for row in rows} == {"sqlite", "rails", "kine"}
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"presets.json", "p.csv", "p.md", "p.html", "p.xml", "p.bmf"}


@pytest.mark.thorough
def test_a_load_may_be_sql_of_the_users_own(cli: Cli) -> None:
    load = ("sql", "-b", "bank", "-c", "2", "--duration", "400ms")
    assert cli(*COMPARE, "--against", "kine", "--rounds", "3", "--", *load).code == 0
    report = saved("presets.json")
    assert [run.arm for run in report.runs] == ["kine", "rails"]
    assert {run.case.workload for run in report.runs} == {"sql"}
