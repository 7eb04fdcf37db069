"""Changes of files that others have open, and the limit on the size of text files."""

import os
import sys
import threading
from pathlib import Path

import pytest

from sqlstress.system.files import read_text, remove, retry_while_denied


class Held:
    """A change that is denied `times` times."""

    def __init__(self, times: int) -> None:
        self.times, self.tries = times, 0

    def __call__(self) -> None:
        self.tries += 1
        if self.tries <= self.times:
            raise PermissionError(13, "used by another process")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The lengths of pauses, which take no time here."""
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    return pauses


@pytest.mark.parametrize("times", [0, 1, 19])
def test_change_denied_for_a_moment_is_retried(slept: list[float], times: int) -> None:
    change = Held(times)
    retry_while_denied(change)
    assert (change.tries, len(slept)) == (times + 1, times)


def test_change_that_stays_denied_fails_after_a_second(slept: list[float]) -> None:
    with pytest.raises(PermissionError, match="used by another process"):
        retry_while_denied(Held(1000))
    assert sum(slept) == pytest.approx(1, abs=0.1)


def test_error_that_waiting_cannot_cure_is_raised_at_once(slept: list[float], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        retry_while_denied(lambda: (tmp_path / "missing").rename(tmp_path / "there"))
    assert slept == []
    remove(tmp_path / "nothing")
    assert slept == []


def test_file_of_the_limit_is_read_and_undecodable_bytes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("é" * 50, encoding="utf-8")
    assert read_text(tmp_path / "file", 100) == "é" * 50
    (tmp_path / "file").write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match=r"^it is not text$"):
        read_text(tmp_path / "file", 100)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_mark_is_removed_from_the_text(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "file").write_text("[[case]] # é", encoding=encoding)
    assert read_text(tmp_path / "file", 100) == "[[case]] # é"


@pytest.mark.parametrize(
    ("most", "limit"),
    [(100, "100 bytes"), (64 << 10, "64 KiB"), (3 << 20, "3 MiB"), ((1 << 20) - 1, "1023 KiB")],
)
def test_larger_file_is_refused_with_the_limit(tmp_path: Path, most: int, limit: str) -> None:
    (tmp_path / "file").write_bytes(b" " * (most + 1))
    with pytest.raises(ValueError, match=rf"^it is larger than {limit}$"):
        read_text(tmp_path / "file", most)


if sys.platform != "win32":

    def test_endless_device_is_read_only_to_the_limit() -> None:
        with pytest.raises(ValueError, match="larger than 1 MiB"):
            read_text(Path("/dev/zero"), 1 << 20)

    def test_pipe_is_read_while_it_is_written(tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=("{" * 100_000,))
        writer.start()
        assert read_text(pipe, 1 << 20) == "{" * 100_000
        writer.join()
