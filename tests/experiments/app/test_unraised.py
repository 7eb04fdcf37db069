"""Exceptions of threads and records at ERROR are counted by kind."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from sqlstress.experiments.app.worker import OtherErrors


@pytest.fixture
def unraised() -> Iterator[OtherErrors]:
    before, make = threading.excepthook, logging.getLogRecordFactory()
    one = OtherErrors(lambda text: text.replace("secret", "..."))
    one.watch()
    yield one
    threading.excepthook = before
    logging.setLogRecordFactory(make)


def raises(error: BaseException) -> None:
    def run() -> None:
        raise error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_exception_that_ends_a_thread_is_counted_except_exit(unraised: OtherErrors) -> None:
    for error in (KeyError("secret"), KeyError("b"), SystemExit(3)):
        raises(error)
    with (
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(sqlite3.OperationalError) as caught,
    ):
        connection.execute("nonsense")
    raises(caught.value)
    assert unraised.sightings() == [
        ("exception of a thread", "KeyError", 2, "'...'", {"raised": "KeyError"}),
        (
            "exception of a thread",
            "SQLITE_ERROR",
            1,
            'near "nonsense": syntax error',
            {"raised": "sqlite3.OperationalError"},
        ),
    ]


def test_records_at_error_are_counted_by_logger_and_kind(
    unraised: OtherErrors, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("app.store")
    for number in (1, 2):
        log.error("saving %d failed: secret", number)
    log.warning("slow")
    logging.getLogger("app.store.silent").propagate = False
    logging.getLogger("app.store.silent").critical("gone")
    # A mistake of the logging call itself must not fail here.
    logging.getLogRecordFactory()("app.store", logging.ERROR, "", 1, "%d", ("no number",), None)
    found = {
        (sighting[1], sighting[2], sighting[3], sighting[4]["logger"]) for sighting in unraised.sightings()
    }
    assert found == {
        ("saving N failed: ...", 2, "saving 1 failed: ...", "app.store"),
        ("gone", 1, "gone", "app.store.silent"),
        ("(it can't be written)", 1, "(it can't be written)", "app.store"),
    }
    assert "slow" in caplog.text
