"""Tests of what is said of power cuts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.analysis.finding import PROVED, UNPROVED, WRONG, interruption
from sqlstress.experiments.power_loss.result import PowerLoss
from sqlstress.experiments.power_loss.shown.findings import advice, power_findings, power_verdict
from tests.power_report import CONTROL, power_cuts, power_loss, power_report

GOOD = power_loss(power_cuts())


def told(loss: PowerLoss) -> str:
    return " ".join(finding.text for finding in advice(loss))


def test_a_configuration_that_lost_nothing_is_proved_by_the_control_that_did() -> None:
    found = power_verdict(GOOD)
    assert found.code == PROVED
    assert "MEMORY with FULL, which must fail, did so in 1,300 of 2,000 images" in found.text


@pytest.mark.parametrize("kind", ["lost", "torn", "corrupt"])
def test_a_control_that_does_not_fail_in_every_way_fails_the_whole_test(kind: str) -> None:
    found = power_verdict(replace(GOOD, control=replace(CONTROL, **{kind: 0})))  # type: ignore[arg-type]
    assert found.code == WRONG
    assert f"none was {kind}" in found.text


def test_without_images_nothing_is_proved() -> None:
    assert power_verdict(replace(GOOD, configurations=())).code == UNPROVED
    assert power_verdict(replace(GOOD, control=None)).code == UNPROVED


@pytest.mark.parametrize(
    ("mode", "level", "cure"),
    [("wal", "normal", "use FULL"), ("delete", "full", "use EXTRA"), ("wal", "off", "21 in an image")],
)
def test_one_that_lost_something_fails_and_is_told_what_helps(mode: str, level: str, cure: str) -> None:
    found = power_verdict(power_loss(power_cuts(mode, level)))
    assert found.code == WRONG
    assert cure in found.text


def test_a_matrix_in_which_each_does_what_it_may_is_proved_and_says_what_to_use() -> None:
    loss = power_loss()
    assert power_verdict(loss).code == PROVED
    assert told(loss).startswith(
        "Use WAL with FULL: nothing was lost, and of what lost nothing it syncs least, 2.4 times"
    )
    assert "WAL with NORMAL and DELETE with FULL lost acknowledged transactions, 5 at once at most" in told(
        loss
    )
    assert "The 15 others can tear or corrupt a file, and 15 did" in told(loss)


def test_a_matrix_in_which_one_does_worse_than_it_may_fails_and_shows_the_image() -> None:
    torn = replace(power_cuts("wal", "normal"), torn=1)
    loss = replace(power_loss(), configurations=(power_cuts(), torn))
    assert power_verdict(loss).code == WRONG
    assert "WAL with NORMAL (torn)" in power_verdict(loss).text
    assert any("cut after operation 119" in finding.text for finding in power_findings(loss))


def test_a_disk_that_is_not_as_sqlite_was_told_may_break_a_wal() -> None:
    loss = replace(power_loss(), configurations=(replace(power_cuts(), lost=3),))
    assert power_verdict(loss).code == WRONG
    assert power_verdict(replace(loss, spoils=True)).code == PROVED


def test_what_is_known_to_tear_is_not_recommended_though_it_did_not() -> None:
    clean = replace(power_cuts("persist", "normal"), good=2000, lost=0, torn=0, corrupt=0)
    loss = replace(power_loss(), configurations=(power_cuts(), clean))
    assert "PERSIST" not in told(loss)
    assert "The other one can tear or corrupt a file" in told(loss)


def test_an_interruption_says_how_many_images_there_were() -> None:
    text = interruption(power_report(replace(GOOD, planned=2))).text
    assert text == "Interrupted after 2,000 of 4,000 images: what was found by then is reported."
