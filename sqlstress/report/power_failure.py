"""Effects of a power failure on a database, by journal mode and synchronous level.

The disk is assumed to keep all data that was synced. Sources:
https://www.sqlite.org/pragma.html#pragma_synchronous, #pragma_journal_mode and
https://www.sqlite.org/wal.html; for TRUNCATE and PERSIST with NORMAL: simulated power cuts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlstress.target import LAST_LOST, SYNCED, UNSAFE

GOOD, LOST, TORN, CORRUPT = STATES = ("good", "lost", "torn", "corrupt")
"""States of a database after a power failure, from best to worst.

Good: all acknowledged transactions are present. Lost: some are missing. Torn: some are present only in part.
Corrupt: SQLite cannot read the database.
"""


@dataclass(frozen=True, slots=True)
class Risk:
    """Effect of a power failure on a database with one journal mode and synchronous level."""

    worst: str = GOOD
    """Worst possible state of the database: one of STATES."""
    effect: str = ""
    """Description of the worst state: "a power failure can ..."; empty if the state is good."""
    why: str = ""
    """Cause of the effect, such as a missing sync; empty if unknown, or if the state is good."""
    cure: str = ""
    """Synchronous level that protects all commits; empty if no level does, or the state is good."""


def power_failure_risk(journal_mode: str, synchronous: str) -> Risk:
    """Return the effect of a power failure. For an unknown mode or level, assume corruption."""
    if journal_mode in _NO_JOURNAL:
        return Risk(CORRUPT, _OFF.effect if synchronous == "off" else _DAMAGE, _NO_JOURNAL[journal_mode])
    if synchronous == "off":
        return _OFF_DELETE if journal_mode == "delete" else _OFF
    known = journal_mode in _SYNCED and synchronous in ("normal", "full", "extra")
    return _RISKS.get((journal_mode, synchronous), Risk() if known else Risk(CORRUPT, _DAMAGE))


_DAMAGE = "a power failure can corrupt the database"
_NO_JOURNAL = {"memory": "MEMORY keeps the journal where a crash takes it too", "off": "OFF keeps no journal"}
_SYNCED = ("wal", "delete", "truncate", "persist")
_OFF = Risk(
    CORRUPT, "a power failure can lose commits or corrupt the database", "OFF syncs nothing", cure="full"
)
_OFF_DELETE = Risk(_OFF.worst, _OFF.effect, _OFF.why, cure="extra")
_RISKS = {
    ("wal", "normal"): Risk(
        LOST,
        "a power failure can lose what was committed since the last checkpoint",
        "NORMAL syncs the WAL at checkpoints only",
        cure="full",
    ),
    ("delete", "normal"): Risk(
        CORRUPT,
        "a power failure can undo the last commit, and rarely corrupt the database",
        "NORMAL syncs the journal once, header and records together, and its deletion not at all",
        cure="extra",
    ),
    ("delete", "full"): Risk(
        LOST,
        "a power failure can undo the last commit",
        "FULL leaves the journal's deletion unsynced, and a journal that is back undoes its transaction",
        cure="extra",
    ),
    ("truncate", "normal"): Risk(
        CORRUPT,
        "a power failure can undo the last commit, or a part of it: a damaged file",
        "NORMAL leaves the journal's truncation unsynced",
        cure="full",
    ),
    ("persist", "normal"): Risk(
        CORRUPT,
        "a power failure can rarely corrupt the database",
        "NORMAL syncs the journal once, header and records together",
        cure="full",
    ),
}


# Durability of the commits of a PostgreSQL server, by the settings that the server returned.
#
# Source: PostgreSQL's documentation, "Reliability and the Write-Ahead Log".


_SYNCED_BY_SERVER = ("on", "local", "remote_write", "remote_apply")


def server_durability(effective: Mapping[str, str]) -> str | None:
    """Return the durability of commits with a server's settings, as text; None for other settings."""
    commit, fsync = effective.get("synchronous_commit"), effective.get("fsync")
    if commit is None or fsync is None:
        return None
    by = f"fsync {fsync}, synchronous_commit {commit}"
    if " / " in by:
        return f"what a commit waits for depends on the connection: {by}"
    if fsync != "on":
        return f"{UNSAFE}: nothing is synced, {by}"
    if commit not in _SYNCED_BY_SERVER:
        return f"{LAST_LOST}: {by}"
    if effective.get("full_page_writes") != "on":
        return f"{UNSAFE}: {by}, full_page_writes off"
    method = effective.get("wal_sync_method")
    return f"{SYNCED}: {by}{f', by {method}' if method else ''}"
