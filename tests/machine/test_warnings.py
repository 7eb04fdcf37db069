"""Warnings on the environment: host, file system, library, and effects of a power failure."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sqlstress.machine.warnings import MachineFacts, warn
from sqlstress.report import FileSystem, Host, SqliteBuild, SyncCost
from sqlstress.report.case import KEEP_JOURNAL_MODE, Settings
from sqlstress.sqlite_codes import has_wal_reset_bug

LINUX = Host("Linux", "6.8.0", "x86_64", "Example CPU", 4, 16 << 30, "CPython 3.12.7", 1_060_000)
MACOS = replace(LINUX, system="Darwin", release="24.1.0", machine="arm64")
BUILD = SqliteBuild("sqlite3", "3.12.7", "3.51.3", "", ("DEFAULT_SYNCHRONOUS=2", "THREADSAFE=1"))
APPLE = replace(BUILD, compile_options=("DEFAULT_CKPTFULLFSYNC", "DEFAULT_WAL_SYNCHRONOUS=1"))
DISK = SyncCost("fdatasync", 96_000, 410_000, 81_000, 350_000, 200)
PLAIN = replace(DISK, primitive="fsync", overwrite_p50_ns=15_000)
SOUND = MachineFacts(LINUX, FileSystem("ext4", "/dev/sda1", "rw,relatime"), (BUILD,), DISK, (Settings(),), 4)
"""A Linux machine with a sound disk."""
SOUND_MAC = replace(
    SOUND,
    host=MACOS,
    sync=replace(PLAIN, primitive="F_FULLFSYNC", overwrite_p50_ns=4_000_000),
    settings=(Settings(fullfsync=True),),
)
DELETE = Settings(journal_mode="delete", synchronous="extra")


def at(kind: str, device: str = "disk", options: str = "rw", *settings: Settings) -> MachineFacts:
    """Return facts of the sound machine with another file system."""
    return replace(SOUND, file_system=FileSystem(kind, device, options), settings=settings or SOUND.settings)


def with_settings(*settings: Settings, **fields: Any) -> MachineFacts:
    return replace(SOUND, settings=settings, **fields)


def on_mac(*settings: Settings, **fields: Any) -> MachineFacts:
    """Return facts of the sound Mac with other settings, and plain fsync, as without fullfsync."""
    return replace(SOUND_MAC, sync=PLAIN, settings=settings, **fields)


def synced(ns: int) -> MachineFacts:
    return replace(SOUND, sync=replace(DISK, overwrite_p50_ns=ns))


def built(*options: str) -> MachineFacts:
    """Return facts of the sound machine if a library with these options sets the level."""
    return with_settings(Settings(synchronous=None), builds=(replace(BUILD, compile_options=options),))


OLD = replace(SOUND, builds=(replace(BUILD, version="3.40.1"),))
LEFT = on_mac(Settings(synchronous=None), builds=(APPLE,))
NOTHING_STORED = replace(at("tmpfs"), builds=(), settings=(Settings(journal_mode="off"),))
FULL = Settings(fullfsync=True)
NORMAL = Settings(synchronous="normal")


def rows() -> Iterator[tuple[MachineFacts, dict[str, bool]]]:
    """Yield facts with the expected codes: {code: whether it is serious}."""
    yield from ((facts, {}) for facts in (SOUND, SOUND_MAC, NOTHING_STORED))
    for facts in (at("tmpfs"), at("ramfs"), at("NTFS", "R:\\", "rw,ramdisk"), at("overlay", "", "volatile")):
        yield facts, {"sync-does-nothing": True}
    yield synced(19_999), {"sync-does-nothing": True}
    yield synced(20_000), {}
    yield replace(SOUND_MAC, sync=replace(PLAIN, primitive="F_FULLFSYNC")), {"sync-does-nothing": True}
    for kind in ("virtiofs.virtiofs0", "9p", "nfs4", "cifs", "smb3", "fuse.sshfs", "fuseblk", "fakeowner"):
        yield at(kind), {"shared-file-system": True}
        yield at(kind, "host", "rw", DELETE), {"shared-file-system": False}
    yield at("NTFS", "Z:\\", "rw,remote"), {"shared-file-system": True}
    yield at("", "\\\\server\\share", "remote"), {"shared-file-system": True}
    yield from ((at(kind, "", "lowerdir=/volatile"), {}) for kind in ("xfs", "apfs", "NTFS", "overlay", ""))
    yield OLD, {"sqlite-wal-reset-bug": True}
    yield replace(OLD, settings=(DELETE,)), {"sqlite-wal-reset-bug": False}
    yield replace(OLD, settings=(DELETE, Settings())), {"sqlite-wal-reset-bug": True}
    yield replace(OLD, settings=(Settings(journal_mode=KEEP_JOURNAL_MODE),)), {"sqlite-wal-reset-bug": True}
    yield replace(SOUND, host=replace(LINUX, sleep_1ms_ns=5_000_000)), {}
    yield replace(SOUND, host=replace(LINUX, sleep_1ms_ns=5_000_001)), {"tick-rounded-sleep": False}
    yield replace(SOUND, most_workers=5), {"few-cores": False}
    yield replace(NOTHING_STORED, most_workers=5), {"few-cores": False}
    yield replace(SOUND, not_native=("nothing was built",)), {"python-loop": True}
    for settings in (FULL, Settings(pragmas=(("FullFsync", "ON"),))):
        yield with_settings(settings), {"fullfsync-without-effect": True}
        yield replace(SOUND_MAC, settings=(settings,)), {}
    yield with_settings(Settings(fullfsync=True, pragmas=(("fullfsync", "0"),))), {}
    for mode in ("off", "memory"):
        yield with_settings(Settings(journal_mode=mode)), {"no-journal-on-disk": True}
    for facts in (on_mac(Settings()), on_mac(Settings(synchronous=None)), on_mac(FULL, Settings())):
        yield facts, {"macos-fsync-not-durable": False}
    yield on_mac(NORMAL), {"durability": False}
    yield LEFT, {"apple-build": False, "durability": False}
    yield replace(LEFT, host=LINUX), {"sync-does-nothing": True, "durability": False}
    yield replace(LEFT, builds=(BUILD,)), {"macos-fsync-not-durable": False}
    yield replace(LEFT, settings=(Settings(),)), {"macos-fsync-not-durable": False}
    yield replace(SOUND_MAC, builds=(APPLE,)), {"apple-fullfsync": False}
    for level in ("1", "NORMAL", "on"):
        yield with_settings(Settings(pragmas=(("Synchronous", level),))), {"durability": False}
    yield built("DEFAULT_SYNCHRONOUS=1", "DEFAULT_WAL_SYNCHRONOUS=2"), {}
    yield built(), {}
    yield built("DEFAULT_SYNCHRONOUS=1"), {"durability": False}
    yield built("DEFAULT_WAL_SYNCHRONOUS=1"), {"durability": False}


@pytest.mark.parametrize(("facts", "expected"), list(rows()))
def test_warnings_apply_only_to_unsound_facts(facts: MachineFacts, expected: dict[str, bool]) -> None:
    assert {warning.code: warning.serious for warning in warn(facts)} == expected


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (synced(540), "A sync takes 0.5 µs here"),
        (at("nfs"), "WAL"),
        (at("nfs", "host", "rw", DELETE), "locks"),
        (OLD, "SQLite 3.40.1"),
        (OLD, "can lose commits (WAL-reset bug)"),
        (replace(SOUND, not_native=("nothing was built",)), "nothing was built"),
        (with_settings(Settings(journal_mode="off")), "OFF"),
        (with_settings(Settings(synchronous="off")), "synchronous=OFF"),
        (with_settings(NORMAL), "NORMAL"),
    ],
)
def test_warning_names_its_subject(facts: MachineFacts, words: str) -> None:
    (warning,) = warn(facts)
    assert words in warning.text


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ("3.6.23", False),
        ("3.7.0", True),
        ("3.44.5", True),
        ("3.44.6", False),
        ("3.50.6", True),
        ("3.50.7", False),
        ("3.51.2", True),
        ("3.51.3", False),
        ("4.0.0", False),
        ("unknown", False),
    ],
)
def test_versions_with_the_wal_reset_bug_are_known(version: str, affected: bool) -> None:
    assert has_wal_reset_bug(version) is affected
    both = replace(SOUND, builds=(BUILD, replace(BUILD, driver="apsw", version=version)))
    assert ("sqlite-wal-reset-bug" in {warning.code for warning in warn(both)}) is affected


@pytest.mark.parametrize(
    ("journal", "synchronous", "phrase"),
    [
        ("delete", "normal", "corrupt"),
        ("delete", "full", "undo"),
        ("delete", "extra", ""),
        ("truncate", "normal", "damaged"),
        ("truncate", "full", ""),
        ("persist", "normal", "corrupt"),
        ("persist", "off", "synchronous=OFF"),
        ("persist", "full", ""),
        ("wal", "full", ""),
    ],
)
def test_possible_damage_by_a_power_failure_is_noted(journal: str, synchronous: str, phrase: str) -> None:
    issued = warn(with_settings(Settings(journal_mode=journal, synchronous=synchronous)))
    assert [warning.code for warning in issued] == ["durability"] * bool(phrase)
    assert all(phrase in warning.text for warning in issued)


WORST = (
    replace(
        at("virtiofs.virtiofs0"),
        host=replace(LINUX, cores=128, sleep_1ms_ns=15_600_000),
        builds=(replace(BUILD, version="3.40.1"), replace(BUILD, version="3.50.4")),
        sync=replace(DISK, overwrite_p50_ns=500),
        settings=tuple(
            Settings(journal_mode=journal, synchronous=level, fullfsync=True)
            for journal in ("wal", "delete", "memory", "off")
            for level in ("off", "normal", "full")
        ),
        most_workers=1024,
    ),
    on_mac(Settings(), Settings(synchronous=None), FULL, builds=(APPLE,)),
)


@pytest.mark.parametrize("facts", WORST)
def test_warnings_are_short_and_serious_ones_come_first(facts: MachineFacts) -> None:
    issued = warn(facts)
    assert len(issued) >= 4
    for warning in issued:
        assert len(warning.text) <= 150, warning
        assert warning.text.endswith(".") and warning.text.count(". ") <= 1, warning
    serious = [warning.serious for warning in issued]
    assert serious == sorted(serious, reverse=True)
