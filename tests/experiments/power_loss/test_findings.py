"""Tests of what is said of power cuts."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from sqlstress.analysis.finding import interruption
from sqlstress.experiments.power_loss.experiment import PowerLoss
from sqlstress.experiments.power_loss.show import advice, power_findings, power_verdict
from sqlstress.report.case import JOURNAL_MODES, SYNCHRONOUS
from sqlstress.show.phrases import phrase
from tests.example_report import assert_golden_texts
from tests.power_report import CONTROL, power_cuts, power_loss, power_report

GOOD = power_loss(power_cuts())


MODES = (("wal", "normal"), ("delete", "full"), ("truncate", "off"), ("memory", "full"))
CLEAN = replace(power_cuts("persist", "normal"), good=2000, lost=0, torn=0, corrupt=0)
TORN = replace(power_cuts("wal", "normal"), torn=1)
LOST = replace(power_loss(), configurations=(replace(power_cuts(), lost=3),))
JUDGED: dict[str, PowerLoss] = {
    "nothing lost, and the control failed": GOOD,
    **{
        f"a control of which nothing was {kind}": replace(GOOD, control=replace(CONTROL, **{kind: 0}))  # type: ignore[arg-type]
        for kind in ("lost", "torn", "corrupt")
    },
    "no images": replace(GOOD, configurations=()),
    "no control": replace(GOOD, control=None),
    **{f"{mode} with {level}": power_loss(power_cuts(mode, level)) for mode, level in MODES},
    "persist with normal, which did not tear": power_loss(CLEAN),
    "a matrix": power_loss(),
    "a matrix with one that is known to tear, and did not": replace(
        power_loss(), configurations=(power_cuts(), CLEAN)
    ),
    "a matrix with one that does worse than it may": replace(
        power_loss(), configurations=(power_cuts(), TORN)
    ),
    "lost": LOST,
    "lost on a disk that is not as SQLite was told": replace(LOST, spoils=True),
}


def test_power_cuts_are_judged_by_what_sqlite_documents_and_by_the_control() -> None:
    found = {}
    for name, loss in JUDGED.items():
        verdict = power_verdict(loss)
        texts = [phrase(one) for one in (verdict.finding, *power_findings(loss), *advice(loss))]
        found[name] = [verdict.status, *dict.fromkeys(texts)]
    assert_golden_texts("power-cuts.txt", found)


@pytest.mark.parametrize("harm", ["lost", "torn", "corrupt"])
def test_a_configuration_has_the_same_verdict_alone_and_in_a_matrix(harm: str) -> None:
    for mode, level in product(JOURNAL_MODES, SYNCHRONOUS):
        alone = power_loss(replace(power_cuts(mode, level), **{harm: 7}))  # type: ignore[arg-type]
        assert power_verdict(alone).status == power_verdict(replace(alone, matrix=True)).status


def test_an_interruption_says_how_many_images_there_were() -> None:
    text = phrase(interruption(power_report(replace(GOOD, planned=2))))
    assert text == "Interrupted after 2,000 of 4,000 images. The results so far are shown."
