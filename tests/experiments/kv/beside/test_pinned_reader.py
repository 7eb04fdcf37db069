"""The process that holds a snapshot."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from pathlib import Path

import pytest

from sqlstress.engine.loop import FOREVER_NS, Window
from sqlstress.experiments.kv.companions import PinnedReader
from sqlstress.experiments.kv.experiment import Checkpointing, Load
from sqlstress.report.case import Case, Settings
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.drivers import DRIVERS
from sqlstress.targets.sqlite.place import SqlitePlace
from tests.targets.filled import create_file


@pytest.mark.parametrize("driver", sorted(DRIVERS))
def test_no_file_can_be_checkpointed_past_its_snapshot_until_it_ends(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    case = Case(
        driver=driver,
        buckets=2,
        settings=Settings(synchronous="off", wal_autocheckpoint=0),
        spec=Load(key_space=9, checkpointing=Checkpointing(pinned_reader=True)),
    )
    with ExitStack() as opened:
        writers = []
        for path in files.paths(case, tmp_path):
            create_file(case, path, [(1, 1)]).close()
            writers.append(opened.enter_context(files.opened(case, path)))
            writers[-1].rows("REPLACE INTO kv (key, value) VALUES (2, 2)")
        reader = PinnedReader(case, SqlitePlace(case, tmp_path), ())
        for writer in writers:
            writer.rows("REPLACE INTO kv (key, value) VALUES (3, 3)")
            assert writer.rows("PRAGMA wal_checkpoint(PASSIVE)") == [(0, 2, 1)]
        looks = itertools.count()
        assert reader.run(Window(0, 0, FOREVER_NS), lambda: next(looks) > 0) == []
        reader.close()
        for writer in writers:
            assert writer.rows("PRAGMA wal_checkpoint(PASSIVE)") == [(0, 2, 2)]
