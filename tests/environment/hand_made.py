"""Surroundings built by hand: a Linux machine with a sound disk, of which nothing needs a warning."""

from __future__ import annotations

from dataclasses import replace

from sqlstress.machine.warnings import Facts, warn
from sqlstress.report import FileSystem, Host, SqliteBuild, SyncCost
from sqlstress.report.case import Settings

LINUX = Host("Linux", "6.8.0", "x86_64", "Example CPU", 4, 16 << 30, "CPython 3.12.7", 1_060_000)
MACOS = replace(LINUX, system="Darwin", release="24.1.0", machine="arm64")
EXT4 = FileSystem("ext4", "/dev/sda1", "rw,relatime")
BUILD = SqliteBuild("sqlite3", "3.12.7", "3.51.3", "", ("DEFAULT_SYNCHRONOUS=2", "THREADSAFE=1"))
APPLE = replace(BUILD, compile_options=("DEFAULT_CKPTFULLFSYNC", "DEFAULT_WAL_SYNCHRONOUS=1"))
DISK = SyncCost("fdatasync", 96_000, 410_000, 81_000, 350_000, 200)
MAC_DISK = replace(DISK, primitive="fsync", overwrite_p50_ns=15_000)

SOUND = Facts(LINUX, EXT4, (BUILD,), DISK, (Settings(),), 4)
SOUND_MAC = replace(
    SOUND,
    host=MACOS,
    file_system=FileSystem("apfs", "/dev/disk3s5", "rw"),
    sync=replace(MAC_DISK, primitive="F_FULLFSYNC", overwrite_p50_ns=4_000_000),
    settings=(Settings(fullfsync=True),),
)


def with_settings(*settings: Settings) -> Facts:
    """Return the sound Linux machine with other settings."""
    return replace(SOUND, settings=settings)


def on_mac(*settings: Settings) -> Facts:
    """Return the sound Mac with other settings, and the plain fsync that comes without fullfsync."""
    return replace(SOUND_MAC, sync=MAC_DISK, settings=settings)


def codes(facts: Facts) -> dict[str, bool]:
    """Return {code: whether it is serious} of the warnings that apply."""
    return {warning.code: warning.serious for warning in warn(facts)}


def text(facts: Facts, code: str) -> str:
    """Return the text of the one warning of a code."""
    (found,) = (warning.text for warning in warn(facts) if warning.code == code)
    return found
