"""Stop signals, and the pulses that check for them."""

import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import Interrupted
from sqlstress.system.interrupt import ITEMS_PER_PULSE, StopSignals, install_stop_handlers, with_pulses
from tests.engine.processes import environment
from tests.pulses import Pulses
from tests.rows import fault

STOPPING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
]


@pytest.fixture(autouse=True)
def handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPPING}
    hook = sys.unraisablehook
    yield
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


each_signal = pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)


@each_signal
def test_checked_signal_raises_and_is_not_handed_on(number: signal.Signals) -> None:
    before = {signal_number: signal.getsignal(signal_number) for signal_number in STOPPING}
    with StopSignals() as signals:
        signals.check()
        signal.raise_signal(number)
        with pytest.raises(Interrupted, match=f"stopped by {number.name}"):
            signals.check()
    assert {signal_number: signal.getsignal(signal_number) for signal_number in STOPPING} == before


@each_signal
def test_unchecked_signal_is_handed_on_at_the_end(number: signal.Signals) -> None:
    received: list[int] = []
    signal.signal(number, lambda number, _: received.append(number))
    with StopSignals():
        signal.raise_signal(number)
        assert received == []
    assert received == [number]


class StruckAsItGoes:
    """An object whose finalizer raises a signal; Python ignores exceptions there."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __del__(self) -> None:
        signal.raise_signal(self._number)


@each_signal
def test_signal_in_a_finalizer_comes_again_without_a_message(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    install_stop_handlers()
    going = StruckAsItGoes(number)
    with pytest.raises(KeyboardInterrupt):
        del going
        time.sleep(30)
    assert capsys.readouterr().err == ""


def test_signal_is_not_repeated_before_the_slow_hook_has_ended(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class SlowTimer(threading.Timer):
        def start(self) -> None:
            super().start()
            time.sleep(5 * self.interval)

    install_stop_handlers()
    monkeypatch.setattr(threading, "Timer", SlowTimer)
    going = StruckAsItGoes(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        del going
        time.sleep(30)
    assert capsys.readouterr().err == ""


def test_finalizer_errors_of_other_kinds_are_printed_as_usual(capsys: pytest.CaptureFixture[str]) -> None:
    install_stop_handlers()
    finalized = weakref.finalize(Pulses(), int, "none")
    del finalized
    assert "ValueError" in capsys.readouterr().err


@each_signal
def test_first_signal_raises_and_later_ones_do_nothing(number: signal.Signals) -> None:
    install_stop_handlers()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    for signal_number in STOPPING:
        signal.raise_signal(signal_number)


@each_signal
def test_signals_after_an_answered_one_do_nothing(number: signal.Signals) -> None:
    install_stop_handlers()
    with StopSignals() as signals:
        signal.raise_signal(number)
        with pytest.raises(Interrupted):
            signals.check()
    for signal_number in STOPPING:
        signal.raise_signal(signal_number)


@fault("stop", "a signal that is ignored from outside (`nohup`)", "it stays ignored")
def test_signal_ignored_from_outside_stays_ignored() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with StopSignals() as signals:
        signal.raise_signal(signal.SIGTERM)
        signals.check()


def test_stop_signals_do_nothing_outside_the_main_thread() -> None:
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


@given(st.integers(0, 5 * ITEMS_PER_PULSE))
def test_paced_yields_every_item_and_pulses_once_per_stretch(count: int) -> None:
    pulses = Pulses()
    assert list(with_pulses(range(count), pulses)) == list(range(count))
    assert pulses.count == -(-count // ITEMS_PER_PULSE)


def test_raising_pulse_ends_paced_before_the_next_stretch() -> None:
    items_taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10 * ITEMS_PER_PULSE):
            items_taken.append(number)
            yield number

    with pytest.raises(Interrupted):
        list(with_pulses(items(), Pulses(stop_at=3)))
    assert len(items_taken) == 2 * ITEMS_PER_PULSE + 1


STRUCK_WITHIN_EXEC = """
import signal, sys
from sqlstress.__main__ import main
from sqlstress.cli import commands
commands.run = lambda words: exec("signal.raise_signal(signal.SIGINT)")
sys.exit(main())
"""


def test_signal_within_an_exec_ends_with_our_exit_code(tmp_path: Path) -> None:
    (tmp_path / "struck.py").write_text(STRUCK_WITHIN_EXEC, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "struck"], cwd=tmp_path, env=environment(), capture_output=True
    )
    assert (done.returncode, done.stderr) == (130, b"")
