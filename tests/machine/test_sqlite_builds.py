"""The SQLite in a library and in a running process is recognised."""

import mmap
import os
import sqlite3
import sys
from pathlib import Path

import apsw
import pytest

from sqlstress.errors import UsageError
from sqlstress.machine.sqlite_builds import builds_of_process, builds_of_program


@pytest.mark.skipif(sys.platform == "darwin", reason="psutil lists no mapped files there")
def test_builds_of_this_process() -> None:
    versions = {build.version for build in builds_of_process(os.getpid())}
    assert {sqlite3.sqlite_version, apsw.sqlite_lib_version()} <= versions


def test_build_of_a_library() -> None:
    (build,) = builds_of_program(Path(apsw.__file__))
    assert build.version == apsw.sqlite_lib_version()
    assert build.source_date == apsw.sqlite3_sourceid()[:10]


def test_file_without_sqlite_has_no_build(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_bytes(b"\x003.45.1\x00" * 9)
    assert builds_of_program(file) == []


def test_missing_program_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        builds_of_program(tmp_path / "gone")
    with pytest.raises(UsageError, match="cannot examine process"):
        builds_of_process(2**22 + 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports which mappings contain code")
def test_mapped_data_is_not_searched(tmp_path: Path) -> None:
    file = tmp_path / "app.db"
    file.write_bytes(Path(apsw.__file__).read_bytes())
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ):
        assert str(file) not in {build.file for build in builds_of_process(os.getpid())}
