"""Paths that are too long for a Windows that allows no long ones: what it answers is put in its place here.

It says of them that there is no such file, whatever is there; Wine takes them.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstress.cli.commands import LONGEST
from sqlstress.cli.outputs import parse_output
from sqlstress.engine.folder import MARKER, RunFolder
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.machine.sync_cost import measure
from sqlstress.report.document import write_atomically
from sqlstress.system import files

Limit = Callable[[int], None]
TOLD = r"No such file or directory \(a path of {} characters: Windows takes {} unless long ones are allowed"


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Limit:
    """Return what makes a path of more characters than given too long."""

    def limit(most: int) -> None:
        monkeypatch.setattr(files, "LONGEST", most)
        for module, name in ((os, "mkdir"), (os, "open"), (os, "stat"), (io, "open")):
            monkeypatch.setattr(module, name, refusing(getattr(module, name), most))
        monkeypatch.setattr(os, "replace", refusing_to(os.replace, most))

    return limit


def refusing(call: Callable[..., Any], most: int) -> Callable[..., Any]:
    """Return a call that knows nothing of files whose paths are longer."""

    def refuse(path: Any, *arguments: Any, **named: Any) -> Any:
        if isinstance(path, (str, Path)) and len(str(path)) > most:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        return call(path, *arguments, **named)

    return refuse


def refusing_to(call: Callable[..., Any], most: int) -> Callable[..., Any]:
    """Return a call that moves nothing to a file whose path is longer."""

    def refuse(path: Any, to: Any) -> Any:
        if len(str(to)) > most:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path), None, str(to))
        return call(path, to)

    return refuse


def test_whatever_the_length_the_line_holds_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files.for_message(Path("d" * 200)) == "d" * 200
    assert files.for_message(Path("d" * 201)) == f"{'d' * 198}.."
    monkeypatch.setattr(files, "LONGEST", 259)
    missing = tmp_path.joinpath(*["d" * 50] * 10)
    with pytest.raises(UsageError, match="Choose another --dir") as of_dir:
        RunFolder(missing, keep=False).__enter__()
    with pytest.raises(UsageError, match="Create it first") as of_report:
        parse_output(str(missing / "r.json"))
    with pytest.raises(EnvironmentFailure, match="Choose another file with -o") as of_writing:
        write_atomically(missing / "r.json", "text")
    for caught in (of_dir, of_report, of_writing):
        assert "characters" in str(caught.value) and len(str(caught.value)) < LONGEST


def folder_of(tmp_path: Path, length: int) -> Path:
    """Make a folder whose path is so much longer than that of the test's own."""
    made = tmp_path / ("d" * (length - 1))
    made.mkdir()
    return made


@pytest.mark.parametrize("fits", ["the folder", "nothing"])
def test_a_dir_too_deep_for_our_files_says_so_and_nothing_is_left(
    tmp_path: Path, limited: Limit, fits: str
) -> None:
    parent = folder_of(tmp_path, 20)
    ours = len(str(RunFolder(parent, keep=False).path))
    limited(ours if fits == "the folder" else ours - 1)
    longer = ours + 1 + len(MARKER) if fits == "the folder" else ours
    told = TOLD.format(longer, files.LONGEST)
    with pytest.raises(EnvironmentFailure, match=f"{told}.* Choose another --dir"):
        RunFolder(parent, keep=False).__enter__()
    assert list(parent.iterdir()) == []


def test_a_file_for_syncs_that_is_too_deep_says_so(tmp_path: Path, limited: Limit) -> None:
    limited(len(str(tmp_path)) + 10)
    with pytest.raises(EnvironmentFailure, match=r"sync a file in .*\(a path of .* Choose another --dir"):
        measure(tmp_path, ["fsync"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "most"), [("r.json", 15), (f"{'r' * 30}.json", 34)], ids=["what lies beside it", "its own"]
)
def test_a_report_whose_path_is_too_long_is_refused_before_anything_is_measured(
    tmp_path: Path, limited: Limit, name: str, most: int
) -> None:
    limited(len(str(tmp_path)) + most)
    with pytest.raises(UsageError, match=r"^-o .*\(a path of .* Choose another file"):
        parse_output(str(tmp_path / name))
    with pytest.raises(
        EnvironmentFailure, match=r"^cannot write .*\(a path of .* Choose another file with -o"
    ):
        write_atomically(tmp_path / name, "text")
    assert list(tmp_path.iterdir()) == []


def test_where_long_paths_are_allowed_one_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST", len(str(tmp_path)))
    parse_output(str(tmp_path / "r.json"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "r.json").write_text("old", encoding="utf-8")
    parse_output(str(tmp_path / "r.json"))
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["old"]
    with RunFolder(tmp_path, keep=False) as folder:
        assert folder.path.is_dir()


def test_what_else_keeps_a_long_path_from_being_tried_is_told_when_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "LONGEST", len(str(tmp_path)))
    monkeypatch.setattr(io, "open", full)
    parse_output(str(tmp_path / "r.json"))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileNotFoundError(2, "Nothing there", "x" * 300), "Nothing there (a path of "),
        (FileNotFoundError(2, "Nothing there", "short"), "Nothing there"),
        (FileNotFoundError(2, "Nothing there", "\\\\?\\" + "x" * 300), "Nothing there"),
        (PermissionError(13, "Denied", "x" * 300), "Denied"),
        (OSError("text"), "OSError"),
    ],
)
def test_only_of_a_long_path_that_is_not_found_its_length_is_told(
    error: OSError, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = files.LONGEST
    monkeypatch.setattr(files, "LONGEST", 259)
    assert files.reason(error).startswith(told)
    assert ("(" in files.reason(error)) == ("(" in told)
    assert (original == 259) == (sys.platform == "win32")
