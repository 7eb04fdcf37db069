"""Which mount holds a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple, NoReturn

import pytest

from sqlstress.machine.host import UNKNOWN, file_system_of, find
from sqlstress.report import FileSystem


class Mounted(NamedTuple):
    mountpoint: str
    fstype: str
    device: str = "dev"
    opts: str = "rw"


CONTAINER = (
    Mounted("/", "overlay", "overlay", "rw,lowerdir=/a:/b,upperdir=/u"),
    Mounted("/proc", "proc"),
    Mounted("/dev/shm", "tmpfs"),
    Mounted("/data", "ext4", "/dev/vda1"),
    Mounted("/data/share", "virtiofs", "share"),
)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "overlay"),
        ("/srv/run", "overlay"),
        ("/data", "ext4"),
        ("/data/share/x", "virtiofs"),
        ("/data/shared/x", "ext4"),
        ("/database", "overlay"),
        ("/dev/shm/x", "tmpfs"),
    ],
)
def test_the_longest_mount_point_above_a_folder_holds_it(folder: str, kind: str) -> None:
    assert find(PurePosixPath(folder), CONTAINER).kind == kind


def test_device_and_options_come_with_it() -> None:
    expected = FileSystem("overlay", "overlay", "rw,lowerdir=/a:/b,upperdir=/u")
    assert find(PurePosixPath("/srv"), CONTAINER) == expected


def test_a_later_mount_hides_an_earlier_one_on_the_same_place() -> None:
    mounts = (Mounted("/m", "autofs"), Mounted("/m", "nfs4"), Mounted("/", "ext4"))
    assert find(PurePosixPath("/m/x"), mounts).kind == "nfs4"
    assert find(PurePosixPath("/m/x"), mounts[::-1]).kind == "autofs"


DRIVES = (
    Mounted("C:\\", "NTFS", "C:\\", "rw,fixed"),
    Mounted("C:\\mnt\\fast\\", "ReFS", "D:\\", "rw,fixed"),
    Mounted("Z:\\", "NTFS", "Z:\\", "rw,remote"),
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
    assert find(PureWindowsPath(folder), DRIVES) == expected


def test_nothing_mounted_means_unknown(tmp_path: Path) -> None:
    assert file_system_of(tmp_path, lambda: ()) == UNKNOWN


def test_mounts_that_cannot_be_listed_mean_unknown(tmp_path: Path) -> None:
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
    mounts = (Mounted(str(root / "link"), "wrong"), Mounted(str(root / "real"), "right"))
    assert file_system_of(link / "run", lambda: mounts).kind == "right"


def test_a_folder_of_the_data_volume_of_macos_is_found_on_it(tmp_path: Path) -> None:
    # There a folder is to be had by two paths; here a symbolic link to the root stands for the volume.
    volume = tmp_path / "Data"
    try:
        volume.symlink_to(Path(tmp_path.anchor), target_is_directory=True)
    except OSError:
        pytest.skip("no right to make symbolic links here")
    mounts: Iterable[Mounted] = (Mounted(tmp_path.anchor, "sealed"), Mounted(str(volume), "data"))
    run = tmp_path / "run"
    run.mkdir()
    assert file_system_of(run, lambda: mounts, volume).kind == "data"
    assert file_system_of(run, lambda: mounts, tmp_path / "absent").kind == "sealed"
