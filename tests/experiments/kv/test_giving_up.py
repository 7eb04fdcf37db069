"""What is counted, and checked, of an operation that was given up after its time-out."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.kv.experiment import Load
from sqlstress.report.case import Case, Settings
from sqlstress.targets.sqlite import files
from tests.experiments.kv.dry import Recorder, do
from tests.targets.filled import create, locked, open_store


class BusyForLong(Exception):
    pass


def test_a_get_given_up_by_a_worker_that_only_reads_is_no_wrong_read(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(Load(read_ratio=1.0))
    monkeypatch.setattr(recorder.source.store, "was_busy", lambda error: isinstance(error, BusyForLong))
    chunk = recorder.source.next_chunk(8)
    assert chunk is not None
    do(recorder.source, chunk, {3: BusyForLong()})
    findings = recorder.source.findings()
    assert (findings.reads_checked, findings.bad_reads) == (7, 0)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("ops", [1000, None])
def test_a_fixed_amount_of_work_ends_when_no_write_is_possible_for_a_minute(
    monkeypatch: pytest.MonkeyPatch, ops: int | None, batch: int
) -> None:
    settings = Settings(busy_timeout_ms=5_000)
    recorder = Recorder(Load(read_ratio=0.0, batch=batch), settings=settings, ops=ops)
    source = recorder.source
    monkeypatch.setattr(source.store, "was_busy", lambda error: isinstance(error, BusyForLong))

    def chunk_of_six(given_up: int) -> None:
        do(source, source.next_chunk(6), {index: BusyForLong() for index in range(given_up)})

    chunk_of_six(6)
    chunk_of_six(5)  # one was done
    chunk_of_six(6)
    chunk_of_six(6)  # a minute, and no longer
    if ops is None:
        chunk_of_six(6)
    else:
        with pytest.raises(EnvironmentFailure, match="18 writes in a row were given up"):
            chunk_of_six(6)


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_an_operation_given_up_is_counted_busy_once(driver: str, tmp_path: Path) -> None:
    pytest.importorskip(driver)
    settings = Settings(busy="fair", busy_timeout_ms=0, wal_autocheckpoint=8)
    case = Case(driver=driver, settings=settings)
    create(case, tmp_path, {1: 1})
    store = open_store(case, tmp_path)
    with locked(case, files.paths(case, tmp_path)[0]), pytest.raises(Exception, match="locked") as caught:
        store.puts[0]((1, 2))
    assert store.was_busy(caught.value)
    assert store.busy_counts() == (1, 0)
    store.close()
