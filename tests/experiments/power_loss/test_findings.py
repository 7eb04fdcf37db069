"""Tests of what is said of power cuts."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from sqlstress.analysis.finding import PROVED, UNPROVED, WRONG, interruption
from sqlstress.experiments.power_loss.experiment import PowerLoss
from sqlstress.experiments.power_loss.show import advice, power_findings, power_verdict
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS
from sqlstress.show.phrases import phrase
from tests.power_report import CONTROL, power_cuts, power_loss, power_report

GOOD = power_loss(power_cuts())


def told(loss: PowerLoss) -> str:
    return " ".join(phrase(finding) for finding in advice(loss))


def test_a_configuration_that_lost_nothing_is_proved_by_the_control_that_did() -> None:
    found = power_verdict(GOOD)
    assert found.status == PROVED
    assert "MEMORY with FULL, which must fail, failed in 1,300 of 2,000 images" in phrase(found.finding)


@pytest.mark.parametrize("kind", ["lost", "torn", "corrupt"])
def test_a_control_that_does_not_fail_in_every_way_fails_the_whole_test(kind: str) -> None:
    found = power_verdict(replace(GOOD, control=replace(CONTROL, **{kind: 0})))  # type: ignore[arg-type]
    assert found.status == WRONG
    assert f"none of its 2,000 images was {kind}" in phrase(found.finding)


def test_without_images_nothing_is_proved() -> None:
    assert power_verdict(replace(GOOD, configurations=())).status == UNPROVED
    assert power_verdict(replace(GOOD, control=None)).status == UNPROVED


@pytest.mark.parametrize(
    ("mode", "level", "told"),
    [
        ("wal", "normal", "a power failure can lose what was committed since the last checkpoint. "),
        ("wal", "normal", "use FULL."),
        ("delete", "full", "a journal that is back undoes its transaction"),
        ("delete", "full", "use EXTRA."),
        ("truncate", "off", "OFF syncs nothing: a power failure can lose commits or corrupt the database."),
        ("memory", "full", "use WAL with FULL."),
    ],
)
def test_one_that_lost_what_sqlite_documents_is_told_what_may_go_and_what_helps(
    mode: str, level: str, told: str
) -> None:
    found = power_verdict(power_loss(power_cuts(mode, level)))
    assert found.status == PROVED
    assert phrase(found.finding).startswith("As SQLite documents: of 2,000 images, ")
    assert told in phrase(found.finding)


@pytest.mark.parametrize("harm", ["lost", "torn", "corrupt"])
def test_a_configuration_has_the_same_verdict_alone_and_in_a_matrix(harm: str) -> None:
    for mode, level in product(JOURNAL_MODES, SYNCHRONOUS):
        alone = power_loss(replace(power_cuts(mode, level), **{harm: 7}))  # type: ignore[arg-type]
        assert power_verdict(alone).status == power_verdict(replace(alone, matrix=True)).status


def test_what_is_known_to_tear_is_told_so_though_it_did_not() -> None:
    clean = replace(power_cuts("persist", "normal"), good=2000, lost=0, torn=0, corrupt=0)
    text = phrase(power_verdict(power_loss(clean)).finding)
    assert "SQLite's documentation allows more: a power failure can rarely corrupt the database." in text
    clean = replace(power_cuts("persist", "normal"), good=2000, lost=0, torn=0, corrupt=0)
    loss = replace(power_loss(), configurations=(power_cuts(), clean))
    assert "PERSIST" not in told(loss)
    assert "The other one can tear or corrupt a file" in told(loss)


def test_a_matrix_in_which_each_does_what_it_may_is_proved_and_says_what_to_use() -> None:
    loss = power_loss()
    assert power_verdict(loss).status == PROVED
    safe, losing, breaking = advice(loss)
    assert (safe.code, safe.facts["name"]) == ("power-safe", "WAL with FULL")
    assert (losing.code, breaking.code, breaking.facts["count"]) == ("power-losing", "power-breaking", 15)


def test_a_matrix_in_which_one_does_worse_than_it_may_fails_and_shows_the_image() -> None:
    torn = replace(power_cuts("wal", "normal"), torn=1)
    loss = replace(power_loss(), configurations=(power_cuts(), torn))
    assert power_verdict(loss).status == WRONG
    assert "WAL with NORMAL: of 2,000 images, 500 lost acknowledged transactions and 1 held" in phrase(
        power_verdict(loss).finding
    )
    assert any("cut after operation 119" in phrase(finding) for finding in power_findings(loss))


def test_a_disk_that_is_not_as_sqlite_was_told_may_break_a_wal() -> None:
    loss = replace(power_loss(), configurations=(replace(power_cuts(), lost=3),))
    assert power_verdict(loss).status == WRONG
    assert power_verdict(replace(loss, spoils=True)).status == PROVED


def test_an_interruption_says_how_many_images_there_were() -> None:
    text = phrase(interruption(power_report(replace(GOOD, planned=2))))
    assert text == "Interrupted after 2,000 of 4,000 images. The results so far are shown."
