"""Tests of reading text files from anywhere."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from sqlstress.system.files import read_text


def test_a_file_of_the_limit_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("é" * 50, encoding="utf-8")
    assert read_text(tmp_path / "file", 100) == "é" * 50


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


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match=r"^it is not text$"):
        read_text(tmp_path / "file", 100)


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
