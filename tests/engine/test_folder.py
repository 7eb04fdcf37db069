"""The folder of a measurement, and the removal of folders whose owner is dead."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from sqlstress.engine import folder as folders
from sqlstress.engine.folder import MARKER, RunFolder, add_subfolder, remove_abandoned, remove_our_files
from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.system.files import lock
from tests.held_open import held_open
from tests.rows import fault

OURS = ("kv.db", "kv.db-wal", "kv.db-shm", "kv.db-journal", "kv_0.db", "kv_17.db-wal", "sync-0a1b.tmp")
FOREIGN = ("notes.txt", "kv.db.bak", "my-kv.db", "kv_x.db", "sync-me.tmp", "kv.sqlite")

HOLDER = """
import sys
from pathlib import Path
from typing import IO
from sqlstress.engine.folder import RunFolder
with RunFolder(Path(sys.argv[1]), keep=False) as folder:
    print(folder.path, flush=True)
    sys.stdin.readline()
"""


def abandoned(parent: Path, name: str = "sqlstress-0badcafe", **fields: object) -> Path:
    """Make a folder as a killed run leaves it: with a marker, and the lock released."""
    path = parent / name
    path.mkdir()
    marker = {"made_by": "sqlstress", "pid": 1, "keep": False, **fields}
    (path / MARKER).write_text(json.dumps(marker), encoding="utf-8")
    fill(path, OURS)
    return path


def fill(path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (path / name).write_bytes(b"x")


@contextmanager
def living_owner(parent: Path) -> Iterator[Path]:
    """Let another process own a folder below `parent`; yield that folder."""
    command = [sys.executable, "-c", HOLDER, str(parent)]
    root = Path(folders.__file__).parents[2]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as other:
        assert other.stdout is not None
        yield Path(other.stdout.readline().strip())
        other.communicate("done\n")


def test_fresh_marked_folder_is_made_and_removed(folders_in: Path) -> None:
    with RunFolder(folders_in, keep=False) as folder:
        assert folder.path.parent == folders_in
        marker = json.loads((folder.path / MARKER).read_text(encoding="utf-8"))
        assert marker == {"made_by": "sqlstress", "pid": os.getpid(), "keep": False}
        fill(folder.path, OURS)
    assert list(folders_in.iterdir()) == []
    with pytest.raises(ZeroDivisionError), RunFolder(folders_in, keep=False):
        _ = 1 / 0
    assert list(folders_in.iterdir()) == []
    with RunFolder(folders_in, keep=False) as first, RunFolder(folders_in, keep=False) as second:
        assert first.path != second.path
        assert first.path.is_dir()


def test_kept_folder_stays_without_its_marker(folders_in: Path) -> None:
    with RunFolder(folders_in, keep=True) as folder:
        fill(folder.path, OURS)
    assert {path.name for path in folder.path.iterdir()} == set(OURS)
    assert remove_abandoned(folders_in) == []
    assert folder.path.is_dir()


@fault("parent", "SIGKILL with `--keep`", "the databases stay")
def test_kept_folder_of_a_killed_run_stays(folders_in: Path) -> None:
    path = abandoned(folders_in, keep=True)
    assert remove_abandoned(folders_in) == []
    assert (path / "kv.db").exists()


@fault("resources", "files of somebody else in our folder", "they stay; ours are removed")
def test_foreign_files_stay_when_a_folder_is_removed(folders_in: Path) -> None:
    with RunFolder(folders_in, keep=False) as folder:
        fill(folder.path, OURS + FOREIGN)
    assert {path.name for path in folder.path.iterdir()} == set(FOREIGN)


@fault("parent", "a folder whose run was killed", "the next start removes it")
def test_next_start_removes_an_abandoned_folder(folders_in: Path) -> None:
    path = abandoned(folders_in)
    with RunFolder(folders_in, keep=False) as folder:
        assert list(folders_in.iterdir()) == [folder.path]
    assert not path.exists()


@fault("parent", "files of somebody else in a folder of ours", "they stay")
def test_foreign_files_in_an_abandoned_folder_are_never_touched(folders_in: Path) -> None:
    path = abandoned(folders_in)
    fill(path, FOREIGN)
    (path / "kv_3.db").mkdir()
    assert remove_abandoned(folders_in) == []
    assert {entry.name for entry in path.iterdir()} == {*FOREIGN, "kv_3.db"}


@fault("parent", "the folder of a run that is alive", "it is left alone")
def test_folder_with_a_living_owner_is_left_alone(folders_in: Path) -> None:
    with living_owner(folders_in) as path:
        fill(path, OURS)
        assert remove_abandoned(folders_in) == []
        assert {entry.name for entry in path.iterdir()} == {MARKER, *OURS}
    assert not path.exists()


def test_owner_in_this_process_counts_as_living(folders_in: Path) -> None:
    with RunFolder(folders_in, keep=False) as folder:
        assert remove_abandoned(folders_in) == []
        assert (folder.path / MARKER).exists()


@pytest.mark.parametrize(
    "marker",
    [
        None,
        "",
        "not JSON",
        "[]",
        '{"made_by": "somebody else", "keep": false}',
        '{"made_by": "sqlstress"}',
        '{"made_by": "sqlstress", "keep": "no"}',
        "\ud800",
    ],
)
def test_foreign_folder_with_our_name_is_never_touched(folders_in: Path, marker: str | None) -> None:
    path = folders_in / "sqlstress-12345678"
    path.mkdir()
    fill(path, OURS)
    if marker is not None:
        (path / MARKER).write_bytes(marker.encode("utf-8", "surrogatepass"))
    before = sorted(path.iterdir())
    assert remove_abandoned(folders_in) == []
    assert sorted(path.iterdir()) == before


def test_files_of_programs_in_a_trial_folder_are_removed(folders_in: Path) -> None:
    path = abandoned(folders_in)
    (path / "trial" / "cache").mkdir(parents=True)
    (path / "trial" / "cache" / "cache.db").write_bytes(b"x")
    assert remove_abandoned(folders_in) == [path] and not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="who may make a link there is a setting")
def test_link_in_place_of_a_trial_folder_is_not_followed(folders_in: Path) -> None:
    path, strangers = abandoned(folders_in), folders_in / "strangers"
    strangers.mkdir()
    (strangers / "data").write_bytes(b"x")
    (path / "trial").symlink_to(strangers)
    remove_abandoned(folders_in)
    assert (strangers / "data").exists()


def test_folders_and_files_with_other_names_are_never_touched(folders_in: Path) -> None:
    path = abandoned(folders_in, name="databases")
    assert remove_abandoned(folders_in) == []
    assert (path / "kv.db").exists()
    (path / MARKER).unlink()
    (folders_in / "sqlstress-12345678").write_bytes(b"x")
    assert remove_abandoned(folders_in) == []
    assert (folders_in / "sqlstress-12345678").read_bytes() == b"x"
    assert remove_our_files(folders_in / "sqlstress-12345678") is False


link_in_place = "a symbolic link in place of our folder, marker or database"
linked = fault("resources", link_in_place, "not followed; its target stays")


def link(path: Path, target: Path) -> None:
    try:
        path.symlink_to(target)
    except OSError:
        pytest.skip("symbolic links can't be made here")


@linked
def test_symbolic_link_with_our_name_is_never_followed(folders_in: Path) -> None:
    elsewhere = folders_in / "elsewhere"
    elsewhere.mkdir()
    path = abandoned(elsewhere)
    link(folders_in / "sqlstress-12345678", path)
    assert remove_abandoned(folders_in) == []
    assert (path / "kv.db").exists()


@linked
def test_symbolic_link_as_marker_is_ignored(folders_in: Path) -> None:
    path = abandoned(folders_in)
    (path / MARKER).rename(folders_in / "marker")
    link(path / MARKER, folders_in / "marker")
    assert remove_abandoned(folders_in) == []
    assert (path / "kv.db").exists()


@linked
def test_linked_database_loses_only_the_link(folders_in: Path) -> None:
    path = abandoned(folders_in)
    (folders_in / "precious.db").write_bytes(b"precious")
    (path / "kv.db").unlink()
    link(path / "kv.db", folders_in / "precious.db")
    assert remove_abandoned(folders_in) == [path]
    assert (folders_in / "precious.db").read_bytes() == b"precious"


@fault("resources", "an abandoned folder of ours that may not be read", "it is left alone; no message")
def test_folder_without_permission_is_left_alone(restricted_folder: Path) -> None:
    path = abandoned(restricted_folder)
    path.chmod(0)
    removed = remove_abandoned(restricted_folder)
    path.chmod(0o700)
    assert removed == []
    assert remove_abandoned(restricted_folder) == [path]


@pytest.mark.parametrize("name", ["is_symlink", "is_file", "open"])
def test_unreadable_folder_is_left_alone(
    folders_in: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, look = abandoned(folders_in), getattr(Path, name)

    def closed(self: Path, *arguments: object, **named: object) -> object:
        if self.name == MARKER:
            raise PermissionError(13, "Permission denied")
        return look(self, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Path, name, closed)
        assert remove_abandoned(folders_in) == []
    assert (path / "kv.db").exists()


@fault("resources", "a `--dir` that is missing or can't be written", "a message that names it")
def test_missing_parent_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot make a folder .* Choose another --dir"):
        RunFolder(tmp_path / "missing", keep=False).__enter__()


@fault("resources", "a `--dir` that is missing or can't be written", "a message that names it")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_parent_without_subfolders_says_what_to_do() -> None:
    with pytest.raises(EnvironmentFailure, match=r"cannot make a folder .* /proc: .* Choose another --dir"):
        RunFolder(Path("/proc"), keep=False).__enter__()


@fault("resources", "a `--dir` that is missing or can't be written", "a message that names it")
def test_unwritable_parent_says_what_to_do(restricted_folder: Path) -> None:
    restricted_folder.chmod(0o500)
    with pytest.raises(EnvironmentFailure, match=r"Permission denied.* Choose another --dir"):
        RunFolder(restricted_folder, keep=False).__enter__()
    restricted_folder.chmod(0o700)


@pytest.mark.parametrize(
    ("step", "error"),
    [("json.dump", OSError(28, "No space left on device")), ("lock", OSError(37, "No locks available"))],
)
def test_failure_to_mark_a_folder_leaves_no_folder(
    folders_in: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: OSError
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(f"sqlstress.engine.folder.{step}", fail)
    monkeypatch.setattr("sqlstress.engine.folder.time.sleep", lambda _: None)
    with pytest.raises(EnvironmentFailure, match=str(error.strerror)):
        RunFolder(folders_in, keep=True).__enter__()
    assert list(folders_in.iterdir()) == []


def test_marker_lock_is_retried_while_another_run_reads_it(
    folders_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [BlockingIOError(), BlockingIOError()]

    def taken_twice(stream: IO[str]) -> None:
        if answers:
            raise answers.pop()
        lock(stream)

    slept: list[float] = []
    monkeypatch.setattr(folders, "lock", taken_twice)
    monkeypatch.setattr("sqlstress.engine.folder.time.sleep", slept.append)
    with RunFolder(folders_in, keep=False) as folder:
        assert (folder.path / MARKER).stat().st_size > 0
    assert len(slept) == 2


@fault(
    "resources",
    "a database still open in another program (Windows)",
    "the file is named; the next start removes it",
)
def test_unremovable_file_is_named_and_removed_at_the_next_start(folders_in: Path) -> None:
    with held_open("kv_0.db"):
        with RunFolder(folders_in, keep=False) as folder:
            fill(folder.path, OURS)
        assert folder.stayed == (folder.path / "kv_0.db",)
        assert {path.name for path in folder.path.iterdir()} == {"kv_0.db", MARKER}
        assert remove_abandoned(folders_in) == []
    assert remove_abandoned(folders_in) == [folder.path]
    assert list(folders_in.iterdir()) == []


def test_subfolders_are_removed_except_foreign_files(folders_in: Path) -> None:
    with RunFolder(folders_in, keep=False) as folder:
        first = add_subfolder(folder.path)
        second = add_subfolder(first)
        assert first != second and second.parent == folder.path
        fill(folder.path, OURS)
        fill(second, OURS)
    assert folder.stayed == ()
    assert list(folders_in.iterdir()) == []
    with RunFolder(folders_in, keep=False) as folder:
        fill(add_subfolder(folder.path), OURS + FOREIGN)
        (folder.path / "further-x").mkdir()
        fill(folder.path / "further-x", OURS)
    assert {path.name for path in (folder.path / "further-1").iterdir()} == set(FOREIGN)
    assert {path.name for path in (folder.path / "further-x").iterdir()} == set(OURS)
