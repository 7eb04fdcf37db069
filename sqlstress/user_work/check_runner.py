"""Process that runs the user's checks. The parent process requests each round of checks from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlstress.engine.pool import to_namespace
from sqlstress.engine.study import as_failure
from sqlstress.errors import Interrupted
from sqlstress.report import Check
from sqlstress.system.processes import ChildCaller
from sqlstress.user_work import UNDER, checks
from sqlstress.user_work.checks import Checker, CheckFailure, CheckNotRun
from sqlstress.user_work.loading import limit_time

if TYPE_CHECKING:
    from sqlstress.engine.loop import Window
    from sqlstress.report.case import Case
    from sqlstress.system.interrupt import Pulse

STARTING_S = 30.0
"""Time limit in seconds for the start of the process that runs the checks."""
PAUSE_S = 0.1
"""Minimum time between the starts of two rounds of checks, in seconds.

After a long round, a pause as long as the round follows, so that checks take at most half of a processor.
"""


class ChecksTimedOut(CheckNotRun):
    """The process that runs the checks exceeded its time limit and was killed."""


class CheckRunner:
    """Runner of the user's checks on a trial's data, in another process."""

    def __init__(self, case: Case, where: Path) -> None:
        data = case.spec.data
        self._case, self._where = to_namespace(case), where
        self._limit_s = STARTING_S + data.check_timeout_s * len(data.checks)
        self._process = ChildCaller("the process that runs the checks")
        self._started_s: float | None = None
        """Start of the running round by `time.monotonic`; None if no round is running."""
        self._due_s = 0.0
        self._rounds = self._failed = 0
        self._broken: dict[str, CheckFailure] = {}
        self._problem = ""
        """Reason why no further round of checks starts during the load; empty if rounds continue."""
        self.failure = ""
        """Reason why a round of checks ended with an unexpected error or a time-out; empty if none did."""

    def load(self) -> None:
        """Start to import the user's checks in their process. Return before the import has finished."""
        self._process.begin(checks.load, self._case, self._where)

    def before(self, pulse: Pulse) -> list[CheckFailure]:
        """Run the checks before the load and return those that fail. Raises CheckNotRun."""
        self._process.result(self._with_limit(pulse))
        return self.broken(pulse)

    def broken(self, pulse: Pulse) -> list[CheckFailure]:
        """Run the checks, except for the final checks, and return those that fail. Raises CheckNotRun."""
        return self._process.call(
            self._with_limit(pulse), checks.call_checker, Checker.broken, self._case, self._where
        )

    def after(self, pulse: Pulse) -> list[CheckFailure]:
        """Run all checks, end their process, and return the failed checks. Raises CheckNotRun.

        Call it after all worker processes have ended.
        """
        with self._process as process:
            return process.call(
                self._with_limit(pulse), checks.call_checker, Checker.broken_at_end, self._case, self._where
            )

    def look(self, window: Window, pulse: Pulse) -> None:
        """Start a round of checks if it is due, or record the result of a finished round.

        Call it often during the load. `window` is the measured time.
        """
        if self._started_s is not None and self._process.has_answered():
            self.finish(pulse)
        now_s, is_over = time.monotonic(), time.perf_counter_ns() >= window.closes_ns
        if self._started_s is None and not self._problem and not is_over and now_s >= self._due_s:
            self._started_s = now_s
            look = partial(Checker.round, starts_ns=window.starts_ns)
            self._process.begin(checks.call_checker, look, self._case, self._where)

    def finish(self, pulse: Pulse) -> None:
        """Wait for the running round of checks, if any, and record its result or error."""
        if self._started_s is None:
            return
        started_s, self._started_s = self._started_s, None
        try:
            round_: checks.CheckRound = self._process.result(self._with_limit(pulse))
        except Interrupted:
            raise
        except Exception as error:
            self._problem = str(as_failure(error, self._case.driver)).removesuffix(".")
            if not isinstance(error, CheckNotRun) or isinstance(error, ChecksTimedOut):
                self.failure = f"checks under load stopped: {self._problem}"
            return
        self._due_s = started_s + max(PAUSE_S, 2 * round_.took_s)
        if round_.broken is None:
            return
        self._rounds += 1
        self._failed += bool(round_.broken)
        for broken in round_.broken:
            # Keep the first failure of each check, because it explains the later failures.
            self._broken.setdefault(broken.name, broken)

    def during(self) -> Check:
        """Return the combined result of all rounds of checks during the load."""
        if self._broken:
            lines = tuple(lines_of(list(self._broken.values())))
            return Check(UNDER, "failed", self._rounds, self._failed, lines)
        if self._problem:
            return Check(UNDER, "unknown", self._rounds, note=self._problem)
        if not self._rounds:
            return Check(UNDER, "skipped", note="no check finished during the load")
        return Check(UNDER, "ok", self._rounds)

    def end(self) -> None:
        """End the process of the checks."""
        self._process.end()

    def reload(self, pulse: Pulse, change: Callable[[], None]) -> None:
        """Restart the process of the checks. In between, call `change`, which changes the trial's files."""
        self._process.end()
        change()
        self.load()
        self._process.result(self._with_limit(pulse))

    def _with_limit(self, pulse: Pulse) -> Pulse:
        text = f"the checks took longer than {self._limit_s:g} s. Make them faster, or raise --check-timeout."
        return limit_time(pulse, self._limit_s, ChecksTimedOut(text))


def lines_of(broken: Sequence[CheckFailure]) -> list[str]:
    return [f"{check.name}: {', '.join(check.examples)}" for check in broken]
