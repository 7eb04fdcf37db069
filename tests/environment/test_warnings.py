"""Each warning where it applies, and where it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstress.machine.warnings import Facts, has_wal_reset_bug, warn
from sqlstress.report import FileSystem
from sqlstress.report.case import KEPT, Settings
from tests.environment.hand_made import (
    APPLE,
    BUILD,
    DISK,
    EXT4,
    LINUX,
    MAC_DISK,
    MACOS,
    SOUND,
    SOUND_MAC,
    codes,
    on_mac,
    text,
    with_settings,
)

DELETE = Settings(journal_mode="delete", synchronous="extra")


def on(file_system: FileSystem, *settings: Settings) -> Facts:
    return replace(SOUND, file_system=file_system, settings=settings or SOUND.settings)


def test_a_sound_machine_with_the_default_settings_needs_no_warning() -> None:
    assert warn(SOUND) == ()
    assert warn(SOUND_MAC) == ()


@pytest.mark.parametrize(
    "file_system",
    [
        FileSystem("tmpfs", "tmpfs", "rw"),
        FileSystem("ramfs", "", "rw"),
        FileSystem("NTFS", "R:\\", "rw,ramdisk"),
        FileSystem("overlay", "overlay", "rw,lowerdir=/l,volatile,xino=off"),
    ],
)
def test_a_file_system_that_does_not_sync_is_serious(file_system: FileSystem) -> None:
    assert codes(on(file_system)) == {"sync-does-nothing": True}


@pytest.mark.parametrize("options", ["rw,lowerdir=/l", "rw,lowerdir=/volatile"])
def test_an_overlay_that_is_not_volatile_syncs(options: str) -> None:
    assert codes(on(FileSystem("overlay", "overlay", options))) == {}


@pytest.mark.parametrize(("p50_ns", "expected"), [(19_999, {"sync-does-nothing": True}), (20_000, {})])
def test_a_sync_faster_than_any_disk_is_serious(p50_ns: int, expected: dict[str, bool]) -> None:
    assert codes(replace(SOUND, sync=replace(DISK, overwrite_p50_ns=p50_ns))) == expected


def test_the_text_about_a_fast_sync_says_how_fast_it_is() -> None:
    fast = replace(SOUND, sync=replace(DISK, overwrite_p50_ns=540))
    assert text(fast, "sync-does-nothing").startswith("A sync takes 0.5 µs here")


def test_a_plain_fsync_on_macos_is_not_taken_for_a_sync_that_does_nothing() -> None:
    assert "sync-does-nothing" not in codes(on_mac(Settings()))
    full = replace(SOUND_MAC, sync=replace(MAC_DISK, primitive="F_FULLFSYNC"))
    assert codes(full) == {"sync-does-nothing": True}


@pytest.mark.parametrize(
    "kind",
    [
        *("virtiofs", "virtiofs.virtiofs0", "9p", "nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs"),
        *("fuseblk", "vboxsf", "prl_fs", "fakeowner", "macfuse", "afpfs"),
    ],
)
def test_wal_on_a_shared_file_system_is_serious_and_other_journals_there_are_a_note(kind: str) -> None:
    mounted = FileSystem(kind, "host", "rw")
    assert codes(on(mounted)) == {"shared-file-system": True}
    assert "WAL" in text(on(mounted), "shared-file-system")
    assert codes(on(mounted, DELETE)) == {"shared-file-system": False}
    assert "locks" in text(on(mounted, DELETE), "shared-file-system")


def test_a_windows_share_is_a_shared_file_system_whatever_its_type() -> None:
    assert codes(on(FileSystem("NTFS", "Z:\\", "rw,remote"))) == {"shared-file-system": True}
    assert codes(on(FileSystem("", "\\\\server\\share", "remote"))) == {"shared-file-system": True}
    assert codes(on(FileSystem("NTFS", "C:\\", "rw,fixed"))) == {}


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "apfs", "NTFS", "overlay", ""])
def test_a_local_file_system_needs_no_warning(kind: str) -> None:
    assert codes(on(FileSystem(kind, "disk", "rw"))) == {}


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ("3.6.23", False),
        ("3.7.0", True),
        ("3.40.1", True),
        ("3.44.5", True),
        ("3.44.6", False),
        ("3.45.0", True),
        ("3.50.4", True),
        ("3.50.6", True),
        ("3.50.7", False),
        ("3.51.0", True),
        ("3.51.2", True),
        ("3.51.3", False),
        ("3.52.0", False),
        ("3.53.1", False),
        ("4.0.0", False),
        ("", False),
        ("unknown", False),
    ],
)
def test_the_versions_with_the_wal_reset_bug_are_known(version: str, affected: bool) -> None:
    assert has_wal_reset_bug(version) is affected
    found = codes(replace(SOUND, builds=(BUILD, replace(BUILD, driver="apsw", version=version))))
    assert ("sqlite-wal-reset-bug" in found) is affected


def test_the_wal_reset_bug_is_serious_only_where_a_case_uses_wal() -> None:
    old = replace(SOUND, builds=(replace(BUILD, version="3.40.1"),))
    assert codes(old) == {"sqlite-wal-reset-bug": True}
    assert codes(replace(old, settings=(DELETE,))) == {"sqlite-wal-reset-bug": False}
    assert codes(replace(old, settings=(DELETE, Settings()))) == {"sqlite-wal-reset-bug": True}
    assert codes(replace(old, settings=(Settings(journal_mode=KEPT),))) == {"sqlite-wal-reset-bug": True}
    said = text(old, "sqlite-wal-reset-bug")
    assert "3.40.1" in said and "3.51.3" in said and "distribution" in said


@pytest.mark.parametrize(
    ("slept_ns", "expected"), [(5_000_001, {"tick-rounded-sleep": False}), (5_000_000, {})]
)
def test_a_sleep_that_is_rounded_to_ticks_is_noted(slept_ns: int, expected: dict[str, bool]) -> None:
    assert codes(replace(SOUND, host=replace(LINUX, sleep_1ms_ns=slept_ns))) == expected


@pytest.mark.parametrize("settings", [Settings(fullfsync=True), Settings(pragmas=(("FullFsync", "ON"),))])
def test_fullfsync_is_serious_where_it_has_no_effect(settings: Settings) -> None:
    assert codes(with_settings(settings)) == {"fullfsync-without-effect": True}
    assert codes(replace(SOUND_MAC, settings=(settings,))) == {}


@pytest.mark.parametrize(
    "settings",
    [Settings(fullfsync=False), Settings(fullfsync=True, pragmas=(("fullfsync", "0"),))],
)
def test_fullfsync_that_is_off_needs_no_warning(settings: Settings) -> None:
    assert codes(with_settings(settings)) == {}


@pytest.mark.parametrize(("workers", "expected"), [(4, {}), (5, {"few-cores": False})])
def test_more_workers_than_cores_are_noted(workers: int, expected: dict[str, bool]) -> None:
    assert codes(replace(SOUND, most_workers=workers)) == expected


def test_more_workers_than_cores_make_the_figures_those_of_the_scheduler_too() -> None:
    (note,) = warn(replace(SOUND, most_workers=8))
    assert note.text == (
        "Up to 8 processes on 4 cores: beyond 4 they take turns at the processor, and the figures say as "
        "much of the system's scheduler as of SQLite."
    )


def test_without_a_database_only_the_host_counts() -> None:
    nothing = replace(
        SOUND, builds=(), file_system=FileSystem("tmpfs", "", ""), settings=(Settings(journal_mode="off"),)
    )
    assert codes(nothing) == {}
    assert codes(replace(nothing, most_workers=5)) == {"few-cores": False}


WORST = (
    replace(
        SOUND,
        host=replace(LINUX, cores=128, sleep_1ms_ns=15_600_000),
        file_system=FileSystem("virtiofs.virtiofs0", "host", "rw"),
        builds=(replace(BUILD, version="3.40.1"), replace(BUILD, version="3.50.4")),
        sync=replace(DISK, overwrite_p50_ns=500),
        settings=tuple(
            Settings(journal_mode=journal, synchronous=level, fullfsync=True)
            for journal in ("wal", "delete", "memory", "off")
            for level in ("off", "normal", "full")
        ),
        most_workers=1024,
    ),
    replace(
        on_mac(Settings(), Settings(synchronous=None), Settings(fullfsync=True)),
        host=MACOS,
        file_system=EXT4,
        builds=(APPLE,),
    ),
)


@pytest.mark.parametrize("facts", WORST)
def test_every_text_is_one_short_sentence(facts: Facts) -> None:
    found = warn(facts)
    assert len(found) >= 4
    for warning in found:
        assert len(warning.text) <= 150, warning
        assert warning.text.endswith(".") and ". " not in warning.text, warning


def test_serious_warnings_come_first() -> None:
    serious = [warning.serious for warning in warn(WORST[0])]
    assert serious == sorted(serious, reverse=True) and len(set(serious)) == 2


def test_the_two_worst_surroundings_raise_every_warning_there_is() -> None:
    found: set[str] = {warning.code for facts in WORST for warning in warn(facts)}
    assert found == {
        "apple-build",
        "apple-fullfsync",
        "durability",
        "few-cores",
        "fullfsync-without-effect",
        "macos-fsync-not-durable",
        "no-journal-on-disk",
        "shared-file-system",
        "sqlite-wal-reset-bug",
        "sync-does-nothing",
        "tick-rounded-sleep",
    }


def test_a_load_that_the_slower_loop_drives_for_want_of_the_other_one_is_serious() -> None:
    assert codes(replace(SOUND, not_native=("nothing was built",))) == {"python-loop": True}
    assert "nothing was built" in text(replace(SOUND, not_native=("nothing was built",)), "python-loop")
