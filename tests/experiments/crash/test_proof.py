"""The proof after a crash accepts every state that a crash may leave, and rejects others with an example."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiments.crash.proof import AcknowledgedRecords, Contents, check_acknowledged
from sqlstress.experiments.crash.spec import ACKNOWLEDGED, WHOLE
from sqlstress.experiments.crash.worker import MOST_WRITERS, RECORDS, Entry
from tests.experiments.crash.histories import History, history_of, writes


@given(writes, st.sets(st.integers(1, 3)))
def test_acknowledged_transactions_and_those_under_way_are_accepted(
    written: list[tuple[int, int]], under_way: set[int]
) -> None:
    history = history_of(written)
    for writer in under_way:
        history.commit(writer, writer, acknowledged=False)
    for writer, (least, most) in history.told.items():
        if writer not in under_way:  # a transaction under way that left nothing
            history.told[writer] = AcknowledgedRecords(least, most + 1)
    assert history.problems() == []
    acknowledged, whole = history.checks()
    assert (acknowledged.checked, whole.checked) == (len(written), history.records.count)


@given(writes, st.data())
def test_acknowledged_transaction_missing_from_the_log_is_reported(
    written: list[tuple[int, int]], data: st.DataObject
) -> None:
    history = history_of(written)
    log = data.draw(st.sampled_from([log for log in history.logs if log]))
    gone = log.pop(data.draw(st.integers(0, len(log) - 1)))
    assert (
        f"transaction {gone.number} of writer {gone.writer} was acknowledged and is gone"
        in history.problems()
    )


@given(writes, st.data())
def test_row_that_contradicts_the_log_is_reported(
    written: list[tuple[int, int]], data: st.DataObject
) -> None:
    history = history_of(written)
    file = data.draw(st.integers(0, 1))
    key = data.draw(st.sampled_from(sorted(history.rows[file])))
    others = [value for value in history.rows[file].values() if value != history.rows[file][key]]
    history.rows[file][key] = data.draw(st.sampled_from([*others, None, 5, "text", b"", b"\0" * 16]))
    acknowledged, whole = history.checks()
    assert (acknowledged.status, whole.status, whole.problems) == ("ok", "failed", 1)
    assert whole.counterexamples[0].startswith(f"record {file * RECORDS + key % RECORDS}: 1 of its 3 rows ")


@given(writes, st.data())
def test_missing_row_is_reported(written: list[tuple[int, int]], data: st.DataObject) -> None:
    history = history_of(written)
    del history.rows[1][data.draw(st.sampled_from(sorted(history.rows[1])))]
    assert [check.problems for check in history.checks()] == [0, 1]
    assert history.problems()[0].endswith(" is gone")


def tear(history: History) -> None:
    key, value = history.records.rows(Entry(1, 1, 0))[0]
    history.rows[0][key] = value


def tear_one_under_way(history: History) -> None:
    history.told[1] = AcknowledgedRecords(2, 3)
    key, value = history.records.rows(Entry(1, 3, 9))[1]
    history.rows[0][key] = value


def put_without_logging(history: History) -> None:
    history.told[1] = AcknowledgedRecords(2, 3)
    history.put(Entry(1, 3, 9))


def log_without_putting(history: History) -> None:
    history.told[1] = AcknowledgedRecords(2, 3)
    history.logs[0].append(Entry(1, 3, 9))


def swap(history: History) -> None:
    rows = history.rows[0]
    rows[0], rows[RECORDS] = rows[RECORDS], rows[0]


def commit_what_was_not_begun(history: History) -> None:
    told = dict(history.told)
    history.commit(2, 7)
    history.told = told


def log(*entry: Any) -> Callable[[History], None]:
    return lambda history: history.logs[0].append(Entry(*entry))


@pytest.mark.parametrize(
    ("change", "check", "told"),
    [
        (tear, WHOLE, "record 0: 1 of its 3 rows are not as transaction 1 of writer 2, the last one in the "
         "log, left them: row 1 holds what transaction 1 of writer 1 wrote"),
        (lambda history: history.put(Entry(1, 1, 0)), WHOLE,
         "record 0: 3 of its 3 rows are not as transaction 1 of writer 2"),
        (lambda history: history.put(history.records.created(5)), WHOLE,
         "left them: row 1 is as it was created"),
        (tear_one_under_way, WHOLE, "record 9: 1 of its 3 rows are not as its creation left them: row 2 "
         "holds what transaction 3 of writer 1 wrote"),
        (put_without_logging, WHOLE, "record 9: 3 of its 3 rows are not as its creation left them"),
        (log_without_putting, WHOLE, "record 9: 3 of its 3 rows are not as transaction 3 of writer 1"),
        (swap, WHOLE, "record 0: 2 of its 3 rows"),
        (lambda history: history.rows[0].update({5: b"?" * 16}), WHOLE,
         "row 1 holds a value that nobody wrote"),
        (lambda history: history.rows[0].update({10_000: history.rows[0][0]}), WHOLE,
         "there is a row with the key 10000 that nobody wrote"),
        (commit_what_was_not_begun, ACKNOWLEDGED, "transaction 3 of writer 2 is there, and was never begun"),
        (log(2, 2, 5), ACKNOWLEDGED, "transaction 2 of writer 2 is there twice"),
        (log(9, 1, 5), ACKNOWLEDGED, "the log names writer 9, who does not exist"),
        (lambda history: history.logs[1].append(history.logs[0].pop(0)), WHOLE,
         "the log of file 1 has a transaction that nobody made"),
        (log(MOST_WRITERS + 1, 1 << 60, 5), WHOLE, "the log of file 0 has a transaction that nobody made"),
        (log("a", None, 5), WHOLE, "the log of file 0 has a transaction that nobody made"),
    ],
    ids=[
        "tear", "restore", "restore creation", "tear one under way", "put without logging",
        "log without putting", "swap", "what nobody wrote", "a row that nobody wrote", "what was not begun",
        "twice", "a stranger", "in another file", "an impossible number", "nonsense",
    ],
)  # fmt: skip
def test_impossible_state_after_a_crash_is_rejected_with_an_example(
    change: Callable[[History], None], check: str, told: str
) -> None:
    history = history_of([(1, 0), (2, 0), (1, RECORDS), (2, 5)])
    assert history.problems() == []
    change(history)
    failed = {failure.name: failure for failure in history.checks() if failure.status == "failed"}
    assert check in failed
    assert any(told in text for text in failed[check].counterexamples)


def test_invalid_numbers_of_transactions_are_named() -> None:
    log: list[Any] = [Entry(1, 0, 0), (1, "x", 0), Entry(1, 1, 0)]
    check = check_acknowledged({1: AcknowledgedRecords(1, 1)}, [Contents(log, {})])
    assert check.counterexamples == (
        "transaction 'x' of writer 1 is there, and was never begun",
        "transaction 0 of writer 1 is there, and was never begun",
    )
