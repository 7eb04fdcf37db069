"""Examination of the rows that real processes have left in a round."""

from pathlib import Path

from sqlstress.experiments.hunt.rounds import draw_round
from sqlstress.plan import cases_of
from tests.damage.trial import measure

GIVEN = {"duration": "200ms", "writers": "2", "keys": "16", "filler": "100"}


def test_wrong_filler_and_foreign_row_are_reported(tmp_path: Path) -> None:
    (base,) = cases_of(GIVEN, "hunt")
    trial = measure(draw_round(base, 1, as_given=True), tmp_path, 1, 1)
    assert trial.verdict("quick").status == "ok"
    written = trial.rows("SELECT min(id) FROM part WHERE n > 0")[0][0]
    for change, told in (
        (f"UPDATE part SET filler = zeroblob(100) WHERE id = {written}", f"row {written}: it is of"),
        ("INSERT INTO part VALUES (32, 2, 0, zeroblob(100))", "row 32 is there, and nobody wrote it"),
    ):
        trial.execute(change)
        verdict = trial.verdict("quick")
        (failed,) = [check for check in verdict.checks if check.status == "failed"]
        assert [text[: len(told)] for text in failed.counterexamples] == [told]
        trial.restore()
