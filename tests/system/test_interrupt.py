"""Tests of the signals that stop a measurement."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from sqlstress.errors import Interrupted
from sqlstress.system.interrupt import StopSignals, stop_once

STOPPING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
]


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


@pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)
def test_a_signal_that_nobody_asked_for_is_handed_on_in_the_end(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda number, _: heard.append(number))
    try:
        with StopSignals():
            signal.raise_signal(number)
            assert heard == []
    finally:
        signal.signal(number, before)
    assert heard == [number]


def test_a_signal_that_was_heeded_is_not_handed_on() -> None:
    with StopSignals() as signals:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Interrupted):
            signals.check()


@pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)
def test_the_first_signal_raises_and_those_that_follow_do_nothing(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in STOPPING}
    try:
        stop_once()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        for each in STOPPING:
            signal.raise_signal(each)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)
def test_after_a_signal_that_was_heeded_the_next_ones_do_nothing(number: signal.Signals) -> None:
    before = {each: signal.getsignal(each) for each in STOPPING}
    try:
        stop_once()
        with StopSignals() as signals:
            signal.raise_signal(number)
            with pytest.raises(Interrupted):
                signals.check()
        for each in STOPPING:
            signal.raise_signal(each)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


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
