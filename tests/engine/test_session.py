"""The surroundings of a study: its folder, the environment, and their removal afterwards."""

from pathlib import Path

import pytest

from sqlstress.engine import session as sessions
from sqlstress.engine.session import MeasuringSession
from sqlstress.engine.study import SILENT
from sqlstress.errors import Interrupted, UsageError
from sqlstress.report.case import Case
from tests.example_report import example_report

CASE = Case(seed=9)
EXAMPLE = example_report()


@pytest.fixture(autouse=True)
def _examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "fingerprint", lambda *_, **__: EXAMPLE.environment)


def test_bench_has_an_empty_report_and_a_temporary_folder(tmp_path: Path) -> None:
    with MeasuringSession((CASE,), tmp_path, False, ("sqlstress", "kv")).opened(SILENT) as bench:
        assert bench.runner.folder.parent == tmp_path
        assert bench.runner.folder.is_dir()
    assert (bench.report.command, bench.report.runs) == (("sqlstress", "kv"), ())
    assert (bench.report.environment, bench.runner.salt) == (EXAMPLE.environment, 9)
    assert list(tmp_path.iterdir()) == []


def test_kept_folder_is_named_and_a_missing_parent_is_an_error(tmp_path: Path) -> None:
    session = MeasuringSession((CASE,), tmp_path, True, ())
    assert session.kept_folder is None
    with session.opened(SILENT):
        pass
    (folder,) = tmp_path.iterdir()
    assert session.kept_folder == folder
    assert folder.name.startswith("sqlstress-")
    assert list(folder.iterdir()) == []
    with (
        pytest.raises(UsageError, match="Choose another --dir"),
        MeasuringSession((CASE,), tmp_path / "missing", False, ()).opened(SILENT),
    ):
        pass


def test_signal_is_caught_while_the_session_is_open(tmp_path: Path) -> None:
    import signal

    with MeasuringSession((CASE,), tmp_path, False, ()).opened(SILENT) as bench:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted, match="stopped by SIGTERM"):
            bench.runner.signals.check()
