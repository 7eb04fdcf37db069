"""What makes a trial not valid although nothing failed: a worker that came late, a machine that slept."""

from __future__ import annotations

from typing import NamedTuple


class Flaw(NamedTuple):
    """Why a trial is not valid although nothing failed."""

    late_s: float
    """How long the window was open when the last worker reached its loop; 0: all were in time."""
    still_s: float
    """How long nothing ran; 0: everything did."""

    def told(self, attempts: int) -> str:
        """Say what happened in the last of so many attempts, and what to do."""
        times = f" {attempts} times" if attempts > 1 else ""
        if self.still_s:
            return (
                f"the machine slept, or this program was stopped, while it measured{times} "
                f"(for {self.still_s:.1f} s): let it run undisturbed"
            )
        return f"a worker came late to the window{times}: give a longer --warmup"


def flaw_of(late_s: float, still_s: float) -> Flaw | None:
    """Return the flaw of a trial, if it has one."""
    return Flaw(late_s, still_s) if late_s or still_s else None
