"""Rounds in which all hosts load one server together: nobody begins before all are there."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.cluster.rounds import Rounds
from sqlstress.targets.meeting import Invitation


@dataclass
class CommonRounds(Rounds):
    """Goes round the hosts until all that are there have said who they are; then invites them."""

    def _begin(self, present: set[str], waited_s: float) -> None:
        if self._tickets:
            self._leave_out("it came when the others had begun together")
        elif not self._members and not self._is_awaited(waited_s):
            self._invite(present)

    def _is_awaited(self, waited_s: float) -> bool:
        wanted = self.asked.hosts or 0
        return len(self._introduced) < wanted and waited_s <= self.asked.limit_s

    def _invite(self, present: set[str]) -> None:
        invited = [member for member in self._introduced if member.address in present]
        self._introduced = [member for member in self._introduced if member not in invited]
        self._leave_out("it disappeared")
        names = tuple(sorted(member.name for member in invited))
        for member in invited:
            self._measure(member, Invitation(self.run, member.name, names).text())

    def _leave_out(self, why: str) -> None:
        for member in self._introduced:
            self._lose(member, why)
        self._introduced.clear()
