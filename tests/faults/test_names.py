"""Folders and files with unusual names."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.engine.processes import saved_report, sqlstress
from tests.faults.commands import EXPERIMENTS, SHORT, Held, last_option_wins, left, stopped
from tests.faults.surroundings import posix
from tests.rows import fault, mostly_thorough

ODD_NAMES = fault(
    "resources",
    "`--dir` and `-o` with spaces, quotes, line breaks, %, ?, #, a leading dash, 200 characters",
    "the files are there and nowhere else",
)

KV = ("kv", "-c", "1", *SHORT, "--quiet")
ODD = (
    "with space",
    "quo'te\"s`",
    "new\nline",
    "100%41",
    "what?mode=ro",
    "ha#sh",
    "-dash",
    "esc\x1b[31m",
    "é",
)
NAME = "-o " + "x" * 200 + ".json"


def odd_folder(parent: Path) -> Path:
    place = parent.joinpath(*ODD)
    place.mkdir(parents=True)
    return place


@ODD_NAMES
@posix
@pytest.mark.parametrize(
    "experiment", mostly_thorough(("sqlite3", "apsw", "methods", "keys", "cycles"), ("sqlite3",))
)
def test_unusual_names_work(tmp_path: Path, experiment: str) -> None:
    place = odd_folder(tmp_path)
    arguments = EXPERIMENTS.get(experiment, (*KV, "--driver", experiment))
    code, _, errors = sqlstress(place, *arguments, "-o", NAME)
    assert (code, errors) == (0, "")
    assert [path.name for path in place.iterdir()] == [NAME]
    assert [path.name for path in tmp_path.iterdir()] == [ODD[0]]


@pytest.mark.thorough
@ODD_NAMES
@posix
def test_comparison_works_with_unusual_names(tmp_path: Path) -> None:
    place = odd_folder(tmp_path)
    names = (NAME, "quo'te\"s\nand line.md")
    arguments = (*EXPERIMENTS["ab"], "--quiet", "-o", names[0], "-o", names[1])
    with Held(place, "measuring", *arguments, count=3) as command:
        code, output, errors = stopped(command)
    assert (code, output) == (130, "")
    # A slice is measured again if one of its workers came late.
    assert re.match("Stopped after (1 slice|2 slices); what was measured is in -o xxx", errors)
    assert left(place) == sorted(names)
    assert [path.name for path in tmp_path.iterdir()] == [ODD[0]]


@ODD_NAMES
@posix
@pytest.mark.thorough
def test_comparison_of_two_pythons_works_with_unusual_names(tmp_path: Path) -> None:
    place = odd_folder(tmp_path)
    pythons = ("--python-a", sys.executable, "--python-b", sys.executable, "--max-time", "2s")
    load = ("-c1", "--key-space=500", "--ops=5000", "--driver=dry", "--quiet")
    code, output, errors = sqlstress(place, "ab", *pythons, *load, "-o", NAME)
    assert (code, output, errors) == (0, "", "")
    assert [path.name for path in place.iterdir()] == [NAME]
    assert [path.name for path in tmp_path.iterdir()] == [ODD[0]]


@pytest.mark.thorough
@fault("resources", "a relative `--dir` that looks like a URI of SQLite", "exit 0; it is a folder")
@posix
@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_folder_named_like_a_uri_is_used_as_a_folder(tmp_path: Path, driver: str) -> None:
    (tmp_path / "file:x?mode=ro").mkdir()
    arguments = (*KV, "--driver", driver, "--dir", "file:x?mode=ro")
    code, output, errors = sqlstress(tmp_path, *arguments, program=last_option_wins())
    assert (code, output, errors) == (0, "", "")
    assert list(tmp_path.rglob("*")) == [tmp_path / "file:x?mode=ro"]


@pytest.mark.thorough
@fault("resources", "a `--dir` whose name is no text", "exit 0; with apsw exit 2")
@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes are Linux's")
@pytest.mark.parametrize(("driver", "expected"), [("sqlite3", 0), ("apsw", 2)])
def test_name_of_any_bytes_works_or_is_refused(tmp_path: Path, driver: str, expected: int) -> None:
    place = tmp_path / os.fsdecode(b"\xff\xfe")
    place.mkdir()
    code, output, errors = sqlstress(place, *KV, "--driver", driver)
    assert (code, output) == (expected, "")
    assert expected == 0 or "apsw needs a UTF-8 path" in errors
    assert list(place.iterdir()) == []


@pytest.mark.thorough
@fault("resources", "symbolic links as `--dir` and as the report", "exit 0; they are followed and stay")
@posix
def test_symbolic_links_are_followed_and_stay(tmp_path: Path) -> None:
    for name in ("real", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    report = tmp_path / "real" / "report.json"
    report.symlink_to(tmp_path / "elsewhere" / "kept.json")
    code, _, errors = sqlstress(tmp_path / "link", *KV, "-o", "report.json")
    assert (code, errors) == (0, "")
    assert report.is_symlink()
    report.rename(tmp_path / "elsewhere" / "link")
    (tmp_path / "elsewhere" / "kept.json").rename(tmp_path / "report.json")
    assert len(saved_report(tmp_path).runs) == 1
    assert list((tmp_path / "real").iterdir()) == []
