"""Paths too long for a Windows without long paths; its answers are simulated here.

Windows reports that such a file does not exist, even if it does; Wine accepts it.
"""

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
def limit_paths(monkeypatch: pytest.MonkeyPatch) -> Limit:
    """Return a function that makes paths with more than `most` characters too long."""

    def limit(most: int) -> None:
        monkeypatch.setattr(files, "MAX_PATH_LENGTH", most)
        for module, name in ((os, "mkdir"), (os, "open"), (os, "stat"), (io, "open")):
            monkeypatch.setattr(module, name, refusing(getattr(module, name), most))
        monkeypatch.setattr(os, "replace", refusing_to(os.replace, most))

    return limit


def refusing(call: Callable[..., Any], most: int) -> Callable[..., Any]:
    """Return a call that does not find files with longer paths."""

    def refuse(path: Any, *arguments: Any, **named: Any) -> Any:
        if isinstance(path, (str, Path)) and len(str(path)) > most:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        return call(path, *arguments, **named)

    return refuse


def refusing_to(call: Callable[..., Any], most: int) -> Callable[..., Any]:
    """Return a call that fails to move files to longer paths."""

    def refuse(path: Any, to: Any) -> Any:
        if len(str(to)) > most:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path), None, str(to))
        return call(path, to)

    return refuse


def test_message_on_a_long_path_keeps_its_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.short_path(Path("d" * 200)) == "d" * 200
    assert files.short_path(Path("d" * 201)) == f"{'d' * 198}.."
    monkeypatch.setattr(files, "MAX_PATH_LENGTH", 259)
    missing = tmp_path.joinpath(*["d" * 50] * 10)
    with pytest.raises(UsageError, match="Choose another --dir") as dir_error:
        RunFolder(missing, keep=False).__enter__()
    with pytest.raises(UsageError, match="Create it first") as report_error:
        parse_output(str(missing / "r.json"))
    with pytest.raises(EnvironmentFailure, match="Choose another file with -o") as write_error:
        write_atomically(missing / "r.json", "text")
    for caught in (dir_error, report_error, write_error):
        assert "characters" in str(caught.value) and len(str(caught.value)) < LONGEST


def folder_of(tmp_path: Path, length: int) -> Path:
    """Make a folder whose path is `length` characters longer than `tmp_path`."""
    folder = tmp_path / ("d" * (length - 1))
    folder.mkdir()
    return folder


@pytest.mark.parametrize("fits", ["the folder", "nothing"])
def test_too_deep_dir_is_reported_and_nothing_is_left(tmp_path: Path, limit_paths: Limit, fits: str) -> None:
    parent = folder_of(tmp_path, 20)
    ours = len(str(RunFolder(parent, keep=False).path))
    limit_paths(ours if fits == "the folder" else ours - 1)
    longer = ours + 1 + len(MARKER) if fits == "the folder" else ours
    message = TOLD.format(longer, files.MAX_PATH_LENGTH)
    with pytest.raises(EnvironmentFailure, match=f"{message}.* Choose another --dir"):
        RunFolder(parent, keep=False).__enter__()
    assert list(parent.iterdir()) == []


def test_too_deep_sync_file_is_reported(tmp_path: Path, limit_paths: Limit) -> None:
    limit_paths(len(str(tmp_path)) + 10)
    with pytest.raises(EnvironmentFailure, match=r"sync a file in .*\(a path of .* Choose another --dir"):
        measure(tmp_path, ["fsync"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "most"), [("r.json", 15), (f"{'r' * 30}.json", 34)], ids=["what lies beside it", "its own"]
)
def test_too_long_report_path_is_refused_before_measuring(
    tmp_path: Path, limit_paths: Limit, name: str, most: int
) -> None:
    limit_paths(len(str(tmp_path)) + most)
    with pytest.raises(UsageError, match=r"^-o .*\(a path of .* Choose another file"):
        parse_output(str(tmp_path / name))
    with pytest.raises(
        EnvironmentFailure, match=r"^cannot write .*\(a path of .* Choose another file with -o"
    ):
        write_atomically(tmp_path / name, "text")
    assert list(tmp_path.iterdir()) == []


def test_long_path_is_accepted_where_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_PATH_LENGTH", len(str(tmp_path)))
    parse_output(str(tmp_path / "r.json"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "r.json").write_text("old", encoding="utf-8")
    parse_output(str(tmp_path / "r.json"))
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["old"]
    with RunFolder(tmp_path, keep=False) as folder:
        assert folder.path.is_dir()


def test_long_path_with_another_error_is_left_to_the_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "MAX_PATH_LENGTH", len(str(tmp_path)))
    monkeypatch.setattr(io, "open", full)
    parse_output(str(tmp_path / "r.json"))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(2, "Nothing there", "x" * 300), "Nothing there (a path of "),
        (FileNotFoundError(2, "Nothing there", "short"), "Nothing there"),
        (FileNotFoundError(2, "Nothing there", "\\\\?\\" + "x" * 300), "Nothing there"),
        (PermissionError(13, "Denied", "x" * 300), "Denied"),
        (OSError("text"), "OSError"),
    ],
)
def test_length_is_reported_only_for_a_missing_long_path(
    error: OSError, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = files.MAX_PATH_LENGTH
    monkeypatch.setattr(files, "MAX_PATH_LENGTH", 259)
    assert files.reason(error).startswith(message)
    assert ("(" in files.reason(error)) == ("(" in message)
    assert (original == 259) == (sys.platform == "win32")
