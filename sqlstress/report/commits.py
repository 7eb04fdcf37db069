"""What a server's commits wait for, in words, by the settings that were read back.

Source: PostgreSQL's documentation, "Reliability and the Write-Ahead Log".
"""

from __future__ import annotations

from collections.abc import Mapping

_SYNCED = ("on", "local", "remote_write", "remote_apply")


def at_server(effective: Mapping[str, str]) -> str | None:
    """Return what a commit waits for, and what may be lost; None where no server has answered."""
    commit, fsync = effective.get("synchronous_commit"), effective.get("fsync")
    if commit is None or fsync is None:
        return None
    by = f"fsync {fsync}, synchronous_commit {commit}"
    if " / " in by:
        return f"what a commit waits for depends on the connection: {by}"
    if fsync != "on":
        return f"nothing is synced: {by}; a power failure can corrupt the database"
    if commit not in _SYNCED:
        return f"no commit waits for a sync: {by}; a crash of its machine can lose the last commits"
    torn = "" if effective.get("full_page_writes") == "on" else "; a power failure can tear pages"
    method = effective.get("wal_sync_method")
    return f"every commit synced: {by}{f', by {method}' if method else ''}{torn}"
