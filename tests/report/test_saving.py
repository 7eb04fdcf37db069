"""write_atomically: replaced files, links, devices and pipes, and failures."""

import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.report import write_atomically
from sqlstress.report.document import is_stream, remove_unfinished
from sqlstress.system.files import lock

LONGEST_ON_WINDOWS = 260
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX devices, pipes or descriptors")


def failure(path: Path) -> str:
    with pytest.raises(EnvironmentFailure) as caught:
        write_atomically(path, "new\n")
    assert str(path)[:150] in str(caught.value) and "Choose another file with -o" in str(caught.value)
    return str(caught.value)


def files_in(folder: Path) -> dict[str, str]:
    """Return the content of each file in a folder, by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.is_file()}


def harmless_device(name: str, folder: Path) -> Path:
    """Return a device like `name`; a copy if a faulty save could replace the machine's own."""
    if not os.access("/dev", os.W_OK):
        return Path(name)
    device = folder / "device"
    if sys.platform != "win32":
        try:
            os.mknod(device, stat.S_IFCHR | 0o666, Path(name).stat().st_rdev)
            device.write_bytes(b"")
        except OSError:
            pytest.skip("devices cannot be made here")
    return device


def save_in_a_process(path: str, *, redirected_to: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sqlstress.report import write_atomically\n"
        "print('before', flush=True)\n"
        f"write_atomically(Path({path!r}), 'saved\\n')\n"
        "print('after', flush=True)\n"
    )
    with redirected_to.open("wb") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True, timeout=60)


def test_new_file_has_plain_newlines_and_no_temporary_file_stays(tmp_path: Path) -> None:
    write_atomically(tmp_path / "report.json", "first\nsecond é, caf\udce9\n")
    assert (tmp_path / "report.json").read_bytes() == "first\nsecond é, caf\\udce9\n".encode()
    assert len(files_in(tmp_path)) == 1


def test_existing_file_is_replaced_and_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old", encoding="utf-8")
    with target.open(encoding="utf-8") as reader:
        if os.name == "posix":
            write_atomically(target, "new")
            assert reader.read() == "old"
    write_atomically(target, "new")
    assert files_in(tmp_path) == {"report.json": "new"}


def test_file_open_for_a_moment_is_replaced_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, denied = Path.replace, [True, True]

    def replace_later(self: Path, target: Path) -> Path:
        if denied:
            denied.pop()
            raise PermissionError(13, "used by another process")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", replace_later)
    monkeypatch.setattr("time.sleep", lambda _: None)
    write_atomically(tmp_path / "report.json", "new")
    assert files_in(tmp_path) == {"report.json": "new"}


UNFINISHED = ".sqlstress-0123abcd.tmp"


def test_unfinished_file_is_removed_unless_it_is_locked(tmp_path: Path) -> None:
    (tmp_path / UNFINISHED).write_text("half a rep", encoding="utf-8")
    remove_unfinished(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with (tmp_path / UNFINISHED).open("xb") as file:
        lock(file)
        remove_unfinished(tmp_path)
        assert (tmp_path / UNFINISHED).exists()
    remove_unfinished(tmp_path / "missing")


@pytest.mark.parametrize(
    "name", ["report.json", ".sqlstress-0123abcd.tmp.json", ".sqlstress-notes.tmp", "sqlstress-0123abcd.tmp"]
)
def test_files_of_other_names_are_never_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    (tmp_path / UNFINISHED).mkdir()
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, UNFINISHED])


@pytest.mark.parametrize("times", [1, 2])
def test_removed_unfinished_file_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    replace, removed = Path.replace, list[Path]()

    def replaced(self: Path, target: Path) -> Path:
        if len(removed) < times:
            removed.append(self)
            remove_unfinished(tmp_path)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", replaced)
    write_atomically(tmp_path / "report.json", "new")
    assert files_in(tmp_path) == {"report.json": "new"}


@posix
def test_private_file_stays_private_during_the_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.json"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o600)
    copied: list[int] = []
    copymode = shutil.copymode

    def watched(source: Path, copy: Path) -> None:
        copied.append(copy.stat().st_size)
        copymode(source, copy)

    monkeypatch.setattr(shutil, "copymode", watched)
    write_atomically(target, "new")
    assert copied == [0]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize("length", [200, 201, 250])
def test_report_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path, length: int) -> None:
    target = tmp_path / ("x" * length)
    if sys.platform == "win32" and len(str(target)) >= LONGEST_ON_WINDOWS:
        pytest.skip("paths there are shorter, unless its owner allows long ones")
    for text in ("old", "new"):
        write_atomically(target, text)
    assert files_in(tmp_path) == {target.name: "new"}


@posix
def test_link_with_a_name_of_ours_is_neither_followed_nor_removed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    (tmp_path / UNFINISHED).symlink_to(victim)
    remove_unfinished(tmp_path)
    assert victim.read_text(encoding="utf-8") == "precious"
    assert (tmp_path / UNFINISHED).is_symlink()


def test_interruption_leaves_the_old_text_and_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.json"
    target.write_text("old", encoding="utf-8")

    def interrupt(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(target, "new")
    assert files_in(tmp_path) == {"report.json": "old"}


@posix
def test_symbolic_link_is_kept_and_its_target_written(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "real.json"
    target.write_text("old", encoding="utf-8")
    link = tmp_path / "report.json"
    link.symlink_to(Path("elsewhere") / "real.json")
    write_atomically(link, "new")
    assert link.is_symlink() and not target.is_symlink()
    assert files_in(target.parent) == {"real.json": "new"}
    dangling = tmp_path / "dangling"
    dangling.symlink_to("made.json")
    write_atomically(dangling, "new")
    assert dangling.is_symlink() and files_in(tmp_path)["made.json"] == "new"


@posix
def test_circle_of_links_is_a_failure_and_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    failure(tmp_path / "a")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "b"]
    assert (tmp_path / "a").is_symlink()


@posix
def test_device_is_written_also_through_a_link_and_stays_a_device(tmp_path: Path) -> None:
    device = harmless_device("/dev/null", tmp_path)
    link = tmp_path / "link"
    link.symlink_to(device)
    for path in (device, device, link):
        write_atomically(path, "new")
    assert link.is_symlink() and device.is_char_device()
    assert not list(device.parent.glob(".sqlstress-*"))


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
def test_full_device_is_a_failure_and_stays_a_device(tmp_path: Path) -> None:
    device = harmless_device("/dev/full", tmp_path)
    assert "No space left" in failure(device)
    assert device.is_char_device()


@posix
def test_named_pipe_gets_the_text_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    if sys.platform != "win32":
        os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    write_atomically(pipe, "through\n" * 10_000)
    reader.join(timeout=30)
    assert received == ["through\n" * 10_000]
    assert pipe.is_fifo()
    assert [entry.name for entry in tmp_path.iterdir()] == ["pipe"]


@posix
@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1"])
def test_redirected_standard_output_keeps_the_text_around_the_report(path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    save_in_a_process(path, redirected_to=out)
    assert out.read_text(encoding="utf-8") == "before\nsaved\nafter\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]


@posix
def test_closed_descriptor_is_a_failure() -> None:
    failure(Path("/dev/fd/9999"))


@posix
def test_streams_are_distinguished_from_files(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    if sys.platform != "win32":
        os.mkfifo(pipe)
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert all(is_stream(path) for path in (pipe, Path("/dev/null"), Path("/dev/stdout"), Path("/dev/fd/1")))
    assert not any(is_stream(path) for path in (tmp_path, tmp_path / "file", tmp_path / "missing"))


def test_folder_or_missing_parent_is_a_failure_and_is_kept(tmp_path: Path) -> None:
    failure(tmp_path / "missing" / "report.json")
    assert not (tmp_path / "missing").exists()
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    failure(tmp_path / "file" / "report.json")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "kept"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").write_text("kept", encoding="utf-8")
    failure(tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "inside"]
    failure(tmp_path / ("n" * 300))


def test_unwritable_folder_is_a_failure_and_keeps_the_old_report(restricted_folder: Path) -> None:
    target = restricted_folder / "report.json"
    target.write_text("old", encoding="utf-8")
    restricted_folder.chmod(0o555)
    failure(target)
    restricted_folder.chmod(0o755)
    assert target.read_text(encoding="utf-8") == "old"
