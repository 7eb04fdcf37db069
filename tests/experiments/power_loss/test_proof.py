"""What a file holds after a power cut is judged: every way of being wrong has its name."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.power_loss.images import (
    Finding,
    History,
    Remains,
    Span,
    contents_after,
    transactions,
    worst,
)
from sqlstress.report.power_failure import CORRUPT, GOOD, LOST, TORN

COUNT = 12
CHANGES = list(transactions(Random(1), COUNT, 4096))
STAGES = contents_after(CHANGES)


def history() -> History:
    """Return a file whose transaction n begins at 10 n and is acknowledged at 10 n + 5."""
    made = History("kv.db", CHANGES)
    made.spans = [Span(10 * number, 10 * number + 5) for number in range(1, COUNT + 1)]
    return made


def judge(stage: int, cut: int) -> Finding:
    return history().judge(Remains(STAGES[stage]), cut)


@pytest.mark.parametrize(
    ("cut", "stages"), [(10, {0}), (14, {0, 1}), (15, {1}), (31, {2, 3}), (999, {COUNT})]
)
def test_what_was_acknowledged_must_be_there_and_what_is_under_way_may_be(cut: int, stages: set[int]) -> None:
    good = {stage for stage in range(COUNT + 1) if judge(stage, cut).kind == GOOD}
    assert good == stages


def test_an_earlier_moment_has_lost_what_came_since_and_what_had_not_begun_cannot_be_there() -> None:
    assert judge(3, 55) == Finding(
        LOST, 2, "kv.db: each of the transactions 4 to 5 was acknowledged and is gone"
    )
    assert judge(0, 15).text == "kv.db: transaction 1 was acknowledged and is gone"
    assert judge(5, 45) == Finding(TORN, 0, "kv.db: transaction 5 is there, which had not begun")
    row = STAGES[4][0]
    changed = (row._replace(filler=b"?" + row.filler[1:]), *STAGES[4][1:])
    assert history().judge(Remains(changed), 45).kind == TORN
    assert History("kv.db", []).begun(1) == 0


@given(st.integers(2, COUNT), st.data())
def test_a_transaction_of_which_a_row_is_missing_is_torn(number: int, data: st.DataObject) -> None:
    put = CHANGES[number - 1].put
    if len(put) < 2:
        return
    back = data.draw(st.sampled_from([row.id for row in put]))
    before = {row.id: row for row in STAGES[number - 1]}
    rows = {row.id: row for row in STAGES[number]}
    rows.pop(back)
    if back in before:
        rows[back] = before[back]
    remains = Remains(tuple(rows[key] for key in sorted(rows)))
    found = history().judge(remains, 10 * number + 5)
    assert found.kind == TORN
    assert f"transaction {number} is there, but not all that it left: row {back} is " in found.text


def renumbered(stage: int, version: object) -> Finding:
    """Judge a file in which the first row is of another transaction than it was."""
    first, *others = STAGES[stage]
    return history().judge(Remains((first._replace(version=version), *others)), 45)


def test_a_row_of_nobody_or_of_what_is_no_number_is_torn() -> None:
    for version in (COUNT + 1, 99):
        said = f"kv.db: there is a row of transaction {version}, which nobody made"
        assert renumbered(4, version) == Finding(TORN, 0, said)
    for strange in ("text", None, b"x", 1.5):
        wrong = f"row {STAGES[4][0].id} is of transaction {strange!r}"
        said = f"kv.db: transaction 4 is there, but not all that it left: {wrong}"
        assert renumbered(4, strange) == Finding(TORN, 0, said)
    remains = Remains((STAGES[1][0]._replace(version="x"),))
    said = "kv.db: transaction 0 is there, but not all that it left: row 0 is of transaction 'x'"
    assert history().judge(remains, 45) == Finding(TORN, 0, said)


def test_all_that_sqlite_complains_of_is_corrupt() -> None:
    assert history().judge(Remains(STAGES[4], ("page 3",)), 45) == Finding(CORRUPT, 0, "kv.db: page 3")
    assert history().judge(Remains(None, ("page 2", "page 3")), 45).text == "kv.db: page 2; page 3"


def test_of_several_files_the_worst_counts_and_the_losses_add_up() -> None:
    lost, torn = Finding(LOST, 2, "lost"), Finding(TORN, 0, "torn")
    assert worst([lost, Finding(GOOD), lost]) == Finding(LOST, 4, "lost")
    assert worst([torn, lost]) == Finding(TORN, 2, "torn")
    assert worst([Finding(CORRUPT, 0, "corrupt"), torn, lost]) == Finding(CORRUPT, 2, "corrupt")
    assert worst([torn]) == torn


def test_most_transactions_change_several_rows_and_some_insert_and_remove() -> None:
    assert all(len(change.put) + len(change.removed) >= 2 for change in CHANGES)
    assert any(change.removed for change in CHANGES)
    assert len({len(contents) for contents in STAGES}) > 2
    assert len(set(STAGES)) == len(STAGES)
