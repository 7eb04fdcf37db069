"""Tests of the signals that stop a measurement."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from sqlstress.engine.interrupt import StopSignals
from sqlstress.errors import Interrupted

STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@pytest.fixture(autouse=True)
def handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    assert {number: signal.getsignal(number) for number in STOPPING} == before


@pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)
def test_a_signal_strikes_only_where_it_is_asked_for(number: signal.Signals) -> None:
    with StopSignals() as signals:
        signals.check()
        signal.raise_signal(number)
        with pytest.raises(Interrupted, match=f"stopped by {number.name}"):
            signals.check()


@pytest.mark.fault(
    area="stop",
    injected="SIGTERM where it is ignored from outside (`nohup`)",
    outcome="it stays ignored",
)
def test_a_signal_that_was_ignored_from_outside_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with StopSignals() as signals:
            signal.raise_signal(signal.SIGTERM)
            signals.check()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_outside_the_main_thread_nothing_is_caught_and_nothing_fails() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with StopSignals() as signals:
                signals.check()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failures == []
