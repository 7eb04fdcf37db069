"""Base class of the parent's part of experiments that verify data after a trial.

A write is acknowledged if its worker knows that it succeeded. All acknowledged writes must be stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from sqlstress.engine.loop import Window
from sqlstress.engine.protocols import Findings, Outcome, Work
from sqlstress.errors import SqlstressError, error_message
from sqlstress.report import Check, Trial, Verdict
from sqlstress.report.case import Case
from sqlstress.report.results import MAX_COUNTEREXAMPLES
from sqlstress.system.interrupt import Pulse
from sqlstress.targets.place import Definition, Place

Found = TypeVar("Found", bound=Check | None)


def examined(name: str, check: Callable[[], Found]) -> Found | Check:
    """Return the result of `check`, or a failed Check with this name if reading the database fails.

    Re-raises SqlstressError, OSError and MemoryError, which do not concern the data.
    """
    try:
        return check()
    except (SqlstressError, OSError, MemoryError):
        raise
    except Exception as error:
        return Check(name, "failed", 0, 1, (f"cannot read the database: {error_message(error)}",))


def reading_checks(outcomes: Sequence[Outcome]) -> list[Check]:
    """Return the checks of the workers' reads: values and, if tested, torn (half-visible) transactions."""
    findings = [outcome.findings for outcome in outcomes if outcome.findings]
    checks = [_summed_check(findings, "values read", "reads_checked", "bad_reads", "bad_read_examples")]
    if any(finding.pairs_checked for finding in findings):
        checks.append(_summed_check(findings, "torn transactions", "pairs_checked", "torn", "torn_examples"))
    return checks


def _summed_check(
    findings: Sequence[Findings], name: str, checked: str, problems: str, examples: str
) -> Check:
    wrong = sum(getattr(finding, problems) for finding in findings)
    return Check(
        name,
        "failed" if wrong else "ok" if findings else "skipped",
        sum(getattr(finding, checked) for finding in findings),
        wrong,
        tuple(text for finding in findings for text in getattr(finding, examples))[:MAX_COUNTEREXAMPLES],
    )


class ProvenWork(Work):
    """Base class of the parent's part of one trial: create the data, and verify it after the load.

    A subclass adds `create` and `checks`, which are called only if the target stores data.
    """

    def __init__(self, case: Case, place: Place) -> None:
        self.case, self.place = case, place
        self._wal = place.wal_observer() if place.stores else None
        self._created: Sequence[Definition] = ()

    def create(self, pulse: Pulse) -> None:
        """Create and fill the workers' data. Call `pulse` often; it may raise Interrupted."""
        raise NotImplementedError

    def checks(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Iterable[Check]:
        """Return checks that compare the stored data with the workers' acknowledged writes."""
        raise NotImplementedError

    def prepare(self, pulse: Pulse) -> None:
        if self.place.stores:
            self.create(pulse)
            self._created = () if self.redefines else self.place.schema()

    def meanwhile(self, window: Window, pulse: Pulse) -> None:
        if self._wal and time.perf_counter_ns() < window.closes_ns:
            self._wal.look()

    def ended(self, pulse: Pulse) -> None:
        if self._wal:
            self._wal.end()

    def complete(self, trial: Trial, pulse: Pulse) -> Trial:
        return replace(trial, wal=self._wal.use()) if self._wal else trial

    def release(self) -> None:
        """Close open resources. A subclass first closes its own connections."""
        if self._wal:
            self._wal.close()

    def verify(self, outcomes: Sequence[Outcome], pulse: Pulse) -> Verdict:
        """Return the verdict on the data; "skipped" with `--verify none` or if nothing is stored."""
        if not self.place.stores or self.case.verify == "none":
            reason = "--verify none" if self.place.stores else f"the {self.case.driver} driver stores nothing"
            return Verdict((Check("verification", "skipped", note=reason),))
        start_s = time.perf_counter()
        checks = tuple(self.checks(outcomes, pulse))
        return Verdict(checks, time.perf_counter() - start_s)

    def sound(self, pulse: Pulse) -> list[Check]:
        """Return the target's own checks: integrity, and whether the schema is unchanged."""
        checks = [self.place.integrity(self.case.verify, pulse)]
        if self._created:
            checks.append(examined("schema", lambda: self.place.redefined(self._created, pulse)))
        return [check for check in checks if check]

    def discard(self) -> None:
        self.place.discard()
