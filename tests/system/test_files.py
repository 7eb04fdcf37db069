"""Files that others have open, and how much of one is read."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from sqlstress.system.files import read_text, remove, tried_again


class Held:
    """A change that is denied so many times."""

    def __init__(self, times: int) -> None:
        self.times, self.tries = times, 0

    def __call__(self) -> None:
        self.tries += 1
        if self.tries <= self.times:
            raise PermissionError(13, "used by another process")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that are made, which take no time here."""
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    return pauses


@pytest.mark.parametrize("times", [0, 1, 19])
def test_a_change_that_is_denied_for_a_moment_is_made_after_it(slept: list[float], times: int) -> None:
    change = Held(times)
    tried_again(change)
    assert (change.tries, len(slept)) == (times + 1, times)


def test_one_that_stays_denied_is_given_up_after_a_second(slept: list[float]) -> None:
    with pytest.raises(PermissionError, match="used by another process"):
        tried_again(Held(1000))
    assert sum(slept) == pytest.approx(1, abs=0.1)


def test_what_waiting_does_not_change_is_raised_at_once(slept: list[float], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tried_again(lambda: (tmp_path / "missing").rename(tmp_path / "there"))
    assert slept == []
    remove(tmp_path / "nothing")
    assert slept == []


def test_a_file_of_the_limit_is_read_whole_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("é" * 50, encoding="utf-8")
    assert read_text(tmp_path / "file", 100) == "é" * 50
    (tmp_path / "file").write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match=r"^it is not text$"):
        read_text(tmp_path / "file", 100)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "file").write_text("[[case]] # é", encoding=encoding)
    assert read_text(tmp_path / "file", 100) == "[[case]] # é"


@pytest.mark.parametrize(
    ("most", "said"),
    [(100, "100 bytes"), (64 << 10, "64 KiB"), (3 << 20, "3 MiB"), ((1 << 20) - 1, "1023 KiB")],
)
def test_a_larger_file_is_refused_with_the_limit(tmp_path: Path, most: int, said: str) -> None:
    (tmp_path / "file").write_bytes(b" " * (most + 1))
    with pytest.raises(ValueError, match=rf"^it is larger than {said}$"):
        read_text(tmp_path / "file", most)


if sys.platform != "win32":

    def test_a_device_without_an_end_is_read_to_the_limit_only() -> None:
        with pytest.raises(ValueError, match="larger than 1 MiB"):
            read_text(Path("/dev/zero"), 1 << 20)

    def test_a_pipe_is_read_as_it_is_written(tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=("{" * 100_000,))
        writer.start()
        assert read_text(pipe, 1 << 20) == "{" * 100_000
        writer.join()
