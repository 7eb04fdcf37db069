"""A file that somebody else has open for a moment is removed, or replaced, as soon as it can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.system.files import remove, tried_again


class Held:
    """A change that is denied so many times."""

    def __init__(self, times: int) -> None:
        self.times, self.tries = times, 0

    def __call__(self) -> None:
        self.tries += 1
        if self.tries <= self.times:
            raise PermissionError(13, "used by another process")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that are made, which take no time here."""
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    return pauses


@pytest.mark.parametrize("times", [0, 1, 19])
def test_a_change_that_is_denied_for_a_moment_is_made_after_it(slept: list[float], times: int) -> None:
    change = Held(times)
    tried_again(change)
    assert (change.tries, len(slept)) == (times + 1, times)


def test_one_that_stays_denied_is_given_up_after_a_second(slept: list[float]) -> None:
    with pytest.raises(PermissionError, match="used by another process"):
        tried_again(Held(1000))
    assert sum(slept) == pytest.approx(1, abs=0.1)


def test_an_error_that_waiting_does_not_change_is_raised_at_once(slept: list[float], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tried_again(lambda: (tmp_path / "missing").rename(tmp_path / "there"))
    assert slept == []


def test_a_file_that_is_not_there_needs_no_removal(slept: list[float], tmp_path: Path) -> None:
    remove(tmp_path / "nothing")
    assert slept == []
