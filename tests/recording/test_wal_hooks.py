"""A WAL hook of apsw replaces SQLite's automatic checkpoints."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from sqlstress.recording import WAL_HOOK
from sqlstress.recording.failed_statements import MIN_HOOK_FRAMES, FailedStatements
from tests.recording.failing_programs import INSERT


@pytest.mark.parametrize("checkpoint_at", [0, MIN_HOOK_FRAMES + 9])
def test_hook_is_found_unless_it_makes_checkpoints(
    checkpoint_at: int, file: Path, recorder: FailedStatements
) -> None:
    """The frames are those that a real hook gets from SQLite, for one page per commit."""
    seen = []

    def hook(connection: apsw.Connection, schema: str, frames: int) -> int:
        seen.append(frames)
        if frames == checkpoint_at:
            connection.wal_checkpoint()
        return 0

    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.set_wal_hook(hook)
        for _ in range(MIN_HOOK_FRAMES + 20):
            connection.execute(INSERT)
        connection.set_wal_hook(None)
        connection.execute(INSERT)
    hooks = [record for record in recorder.records() if record[0] == WAL_HOOK]
    assert max(seen) >= MIN_HOOK_FRAMES
    assert len(hooks) == (checkpoint_at == 0)
    for _, at, _, _, traits in hooks:
        assert at.startswith(f"{Path(__file__).name}:") and traits == {"frames": str(max(seen))}


def test_hook_with_a_small_wal_is_not_found(file: Path, recorder: FailedStatements) -> None:
    with closing(apsw.Connection(str(file))) as connection:
        connection.set_wal_hook(lambda connection, schema, frames: 0)
        connection.execute(INSERT)
    assert not [record for record in recorder.records() if record[0] == WAL_HOOK]
