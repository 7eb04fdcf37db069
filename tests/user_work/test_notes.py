"""Notes are read back completely, also after a kill; a note that cannot be stored is an error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import EnvironmentFailure
from sqlstress.user_work import notes
from sqlstress.user_work.notes import NoteRejected, Notes, conserved, counter, exactly_once, note


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Path]:
    notes.begin(tmp_path)
    yield tmp_path
    notes._notebooks.clear()
    notes._trial_folders.clear()
    notes.end(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_each_process_has_a_list_and_setup_the_first(trial: Path) -> None:
    notes.take(trial, 0, 1)
    note("put", 1)
    notes.take(trial, 2, 2)
    note("put", {"id": 2})
    note("taken", 1, "late")
    note("hit")
    found = notes.read(trial, 2)
    assert found == [[("put", 1)], [], [("put", {"id": 2}), ("taken", 1, "late"), "hit"]]
    assert (found.of("put"), found.of("hit"), found.of("nothing")) == ([1, {"id": 2}], [None], [])


def test_note_outside_of_a_measurement_has_no_effect() -> None:
    note("put", lambda: 1)


NOTING = """
import os, sys
from pathlib import Path
from sqlstress.user_work import notes
notes.take(Path(sys.argv[1]), 1, 1)
for number in range(1000):
    notes.note(number)
os.write(1, b"x")
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_notes_survive_a_kill_and_half_a_note_is_ignored(trial: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", NOTING, str(trial)], stdout=subprocess.PIPE)
    assert ended.returncode == -9
    file = notes.folder_of(trial) / "1"
    with file.open("ab") as stream:
        stream.write(b"\x10\0\0\0cut")
    assert notes.read(trial, 1) == [[], list(range(1000))]


@pytest.mark.parametrize(
    ("most", "room", "value", "said"),
    [
        (2, 1000, 7, r"^note\(\) was called too often: at most 2 notes and 0 MB fit in a trial\. Note less"),
        (99, 20, "x" * 30, "was called too often"),
        (99, 1000, lambda: 1, r"^note\(\) cannot keep what was given: "),
    ],
)
def test_refused_note_ends_the_worker_whatever_the_users_code_does(
    trial: Path, monkeypatch: pytest.MonkeyPatch, most: int, room: int, value: object, said: str
) -> None:
    monkeypatch.setattr(notes, "MOST", most)
    monkeypatch.setattr(notes, "MAX_BYTES", room)
    book = notes.take(trial, 1, 1)
    book.check()
    with pytest.raises(NoteRejected, match=said):
        for _ in range(3):
            note(value)
    with pytest.raises(EnvironmentFailure, match=said.rstrip(".")):
        book.check()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has such a device")
def test_full_disk_is_an_error(trial: Path) -> None:
    (notes.folder_of(trial) / "1").symlink_to("/dev/full")
    notes.take(trial, 1, 1)
    with pytest.raises(NoteRejected, match="cannot write: No space left on device"):
        note(1)


# The ready-made checks: each with accepted and rejected notes.


@given(st.lists(st.integers(0, 9), unique=True), st.data())
def test_values_taken_once_in_any_order_pass(put: list[int], data: st.DataObject) -> None:
    taken = data.draw(st.permutations(put))
    exactly_once(put, taken)
    exactly_once([[value] for value in put], [[value] for value in taken])  # of what can't be hashed, too


def test_equal_values_are_taken_as_often_as_they_were_put() -> None:
    exactly_once([1, 1, 2], [1, 2, 1])
    for taken, said in (([1, 2], "^lost: 1$"), ([1, 1, 1, 2], "^taken too often: 1$")):
        with pytest.raises(AssertionError, match=said):
            exactly_once([1, 1, 2], taken)


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        ([1], r"^lost: 2, 3$"),
        ([1, 2, 2, 3], r"^taken too often: 2$"),
        ([1, 2, 3, 4], r"^taken and never put: 4$"),
        ([2, 2, 3, "x"], r"^lost: 1; taken too often: 2; taken and never put: 'x'$"),
    ],
)
def test_lost_duplicate_or_invented_value_is_named(taken: list[object], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        exactly_once([1, 2, 3], taken)


def test_counter_equals_the_number_of_notes() -> None:
    counter(3, Notes([[], ["hit", "hit"], ["hit"]]))
    counter(2, [None, None])
    with pytest.raises(AssertionError, match="the counter holds 1, and 2 were counted"):
        counter(1, [None, None])


def test_conserved_query_must_return_its_first_result_of_the_trial(trial: Path) -> None:
    money, others = conserved("SELECT sum(balance)"), conserved("SELECT 1")
    notes.remember_in(trial)
    for _ in range(2):
        money(lambda _: [(10,)])
        others(lambda _: [(1, 2)])
    with pytest.raises(AssertionError, match=r"^it was 10 and is 9$"):
        money(lambda _: [(9,)])
    notes.begin(trial)
    money(lambda _: [(9,)])
    assert os.listdir(notes.folder_of(trial))  # noqa: PTH208
