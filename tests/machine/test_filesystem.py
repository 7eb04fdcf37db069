"""The mount of a folder."""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple, NoReturn

import pytest

from sqlstress.machine.host import UNKNOWN, file_system_of, find_file_system
from sqlstress.report import FileSystem


class Mount(NamedTuple):
    mountpoint: str
    fstype: str
    device: str
    opts: str


def mounted(point: str, kind: str, device: str = "dev", options: str = "rw") -> Mount:
    return Mount(point, kind, device, options)


CONTAINER = (
    mounted("/", "overlay", "overlay", "rw,lowerdir=/a:/b,upperdir=/u"),
    mounted("/proc", "proc"),
    mounted("/dev/shm", "tmpfs"),
    mounted("/data", "ext4", "/dev/vda1"),
    mounted("/data/share", "virtiofs", "share"),
)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "overlay"),
        ("/srv/run", "overlay"),
        ("/data/share/x", "virtiofs"),
        ("/data/shared/x", "ext4"),
        ("/dev/shm/x", "tmpfs"),
    ],
)
def test_longest_mount_point_above_a_folder_wins(folder: str, kind: str) -> None:
    assert find_file_system(PurePosixPath(folder), CONTAINER).kind == kind


def test_later_mount_hides_an_earlier_one_of_the_same_path() -> None:
    expected = FileSystem("overlay", "overlay", "rw,lowerdir=/a:/b,upperdir=/u")
    assert find_file_system(PurePosixPath("/srv"), CONTAINER) == expected
    mounts = (mounted("/m", "autofs"), mounted("/m", "nfs4"), mounted("/", "ext4"))
    assert find_file_system(PurePosixPath("/m/x"), mounts).kind == "nfs4"
    assert find_file_system(PurePosixPath("/m/x"), mounts[::-1]).kind == "autofs"


DRIVES = (
    mounted("C:\\", "NTFS", "C:\\", "rw,fixed"),
    mounted("C:\\mnt\\fast\\", "ReFS", "D:\\", "rw,fixed"),
    mounted("Z:\\", "NTFS", "Z:\\", "rw,remote"),
)


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("c:\\Users\\me", FileSystem("NTFS", "C:\\", "rw,fixed")),
        ("C:\\MNT\\fast\\run", FileSystem("ReFS", "D:\\", "rw,fixed")),
        ("Z:\\run", FileSystem("NTFS", "Z:\\", "rw,remote")),
        ("\\\\server\\share\\run", FileSystem("", "\\\\server\\share", "remote")),
        ("E:\\run", UNKNOWN),
    ],
)
def test_drives_of_windows_are_found_by_their_letter(folder: str, expected: FileSystem) -> None:
    assert find_file_system(PureWindowsPath(folder), DRIVES) == expected


def test_file_system_is_unknown_without_a_list_of_mounts(tmp_path: Path) -> None:
    assert file_system_of(tmp_path, lambda: ()) == UNKNOWN

    def refuse() -> NoReturn:
        raise PermissionError("no /proc here")

    assert file_system_of(tmp_path, refuse) == UNKNOWN


def test_symbolic_links_are_resolved(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    try:
        link.symlink_to(real, target_is_directory=True)
    except OSError:
        pytest.skip("no right to make symbolic links here")
    root = tmp_path.resolve()
    mounts = (mounted(str(root / "link"), "wrong"), mounted(str(root / "real"), "right"))
    assert file_system_of(link / "run", lambda: mounts).kind == "right"


def test_folder_on_the_data_volume_of_macos_is_found_there(tmp_path: Path) -> None:
    # On macOS a folder has two paths; here a symbolic link to the root plays the role of the volume.
    volume = tmp_path / "Data"
    try:
        volume.symlink_to(Path(tmp_path.anchor), target_is_directory=True)
    except OSError:
        pytest.skip("no right to make symbolic links here")
    mounts: Iterable[Mount] = (mounted(tmp_path.anchor, "sealed"), mounted(str(volume), "data"))
    run = tmp_path / "run"
    run.mkdir()
    assert file_system_of(run, lambda: mounts, volume).kind == "data"
    assert file_system_of(run, lambda: mounts, tmp_path / "absent").kind == "sealed"
