"""Rounds over a cluster: who has joined is asked who it is, each machine measures once, reports are saved."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from secrets import token_hex

from sqlstress import __version__
from sqlstress.analysis.fleet import LeftOut
from sqlstress.cluster import job
from sqlstress.cluster.asked import Asked
from sqlstress.cluster.connection import Connection, SchedulerLost
from sqlstress.cluster.guard import GRACE_S
from sqlstress.cluster.member import Identity, Member
from sqlstress.cluster.names import file_name
from sqlstress.cluster.why import parsed, problem, why_no_report
from sqlstress.errors import SqlstressError
from sqlstress.report import write_atomically

TICK_S = 0.5
PULSE_S = 5.0
JOIN_S = 30.0
"""How long it is waited for the first host."""
WHO_S = 120.0
"""How long a host may take to say which one it is: it may be busy with somebody else's task."""
LATE_S = GRACE_S + 60.0
"""How long after its limit a host is still waited for."""
STOPPED_S = GRACE_S + 3 * job.POLL_S
"""How long it is waited for hosts that have been told to stop."""
Tell = Callable[[str], None]


@dataclass
class Rounds:
    """Goes round the hosts until all are done."""

    connection: Connection
    asked: Asked
    tell: Tell
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    saved: dict[str, str] = field(default_factory=dict)
    """Hosts by their names → the file of the report."""
    left_out: list[LeftOut] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    run: str = field(default_factory=lambda: f"sqlstress-{token_hex(8)}")

    def __post_init__(self) -> None:
        self._known: set[str] = set()
        self._machines: dict[str, str] = {}
        self._members: list[Member] = []
        self._introduced: list[Member] = []
        """Those that have said who they are, and do not measure yet."""
        self._beats, self._beaten = 0, -PULSE_S
        self._tickets: list[str] = []

    def go(self, check: Callable[[], None]) -> None:
        """Go on until every host that has joined is done. `check` raises when it is time to stop."""
        begun = self.clock()
        while not self._is_over(self.clock() - begun):
            check()
            try:
                self._beat()
                present = self.connection.workers()
            except SchedulerLost as error:
                self._all_lost(str(error))
                return
            for address in sorted(present - self._known):
                self._greet(address)
            for member in self._members[:]:
                self._look_at(member, member.address in present)
            self._begin(present, self.clock() - begun)
            self.pause(TICK_S)

    def stop(self) -> list[str]:
        """Tell all hosts to stop, and wait until they have; return those that have not answered."""
        until = self.clock() + STOPPED_S
        pending = [member for member in self._members if member.measuring]
        try:
            self.connection.pulse(self.run, job.STOP)
            while pending and self.clock() < until:
                present = self.connection.workers()
                pending = [one for one in pending if not one.future.done() and one.address in present]
                self.pause(TICK_S)
        except (SchedulerLost, KeyboardInterrupt):
            pass
        return [member.name for member in pending]

    def forget(self) -> None:
        """Let the cluster forget us."""
        for member in self._members:
            member.future.release()
        self.connection.forget(self.run, self._tickets)

    def kept(self) -> str:
        """Say what is kept."""
        if not self.saved:
            return "no host had ended"
        reports = "1 report is" if len(self.saved) == 1 else f"{len(self.saved):,} reports are"
        return f"{reports} in {self.asked.folder}"

    def _is_over(self, waited_s: float) -> bool:
        if self._members or self._introduced:
            return False
        if self.asked.hosts is not None:
            return len(self._machines) >= self.asked.hosts or waited_s > self.asked.limit_s
        return bool(self._known) or waited_s > JOIN_S

    def _beat(self) -> None:
        """Let the hosts know that we are still here."""
        if self.clock() - self._beaten >= PULSE_S:
            self._beats, self._beaten = self._beats + 1, self.clock()
            self.connection.pulse(self.run, self._beats)

    def _greet(self, address: str) -> None:
        self._known.add(address)
        key = f"{self.run}-who-{len(self._known)}"
        expression = "__import__('sqlstress.cluster.machine', fromlist=['who']).who()"
        future = self.connection.submit(expression, address, key)
        self._members.append(Member(address, future, self.clock(), address))

    def _look_at(self, member: Member, is_there: bool) -> None:
        future = member.future
        if future.done():
            self._members.remove(member)
            try:
                answer = self.connection.result(future)
            except Exception as error:  # whatever a host's code, or the way here, may raise
                self._lose(member, problem(error, is_there))
            else:
                self._take(member, answer)
            finally:
                future.release()
            return
        limit_s = self.asked.limit_s + LATE_S if member.measuring else WHO_S
        if not is_there:
            self._give_up(
                member, "it disappeared while it was measuring" if member.measuring else "it disappeared"
            )
        elif self.clock() - member.since > limit_s:
            self._give_up(member, f"it did not answer within {limit_s:.0f} s")

    def _take(self, member: Member, answer: object) -> None:
        if member.measuring:
            self._keep(member, answer)
            return
        try:
            identity = Identity.of(answer)
        except ValueError as error:
            self._lose(member, str(error))
            return
        if identity.machine in self._machines:
            self.remarks.append(
                f"{member.address} is on the same machine as {self._machines[identity.machine]}: "
                "measured once."
            )
            return
        member.name = file_name(identity.host, {*self._machines.values()})
        self._machines[identity.machine] = member.name
        self.remarks += _other_versions(member.name, identity)
        self._introduced.append(member)

    def _begin(self, present: set[str], waited_s: float) -> None:
        """Have those hosts measure that have said who they are."""
        for member in self._introduced:
            self._measure(member)
        self._introduced.clear()

    def _measure(self, member: Member, together: str = "") -> None:
        ticket = f"{self.run}-{len(self._tickets)}"
        self.connection.put_ticket(ticket, job.order(self.asked, self.run, together))
        self._tickets.append(ticket)
        expression = f"__import__('sqlstress.cluster.job', fromlist=['measure']).measure({ticket!r})"
        member.future = self.connection.submit(expression, member.address, f"{ticket}-measure")
        member.since, member.measuring = self.clock(), True
        self._members.append(member)

    def _keep(self, member: Member, answer: object) -> None:
        """Save what a host sends, and say so."""
        found = parsed(answer)
        if found is None:
            self._lose(member, "its answer is none of sqlstress's")
            return
        if why := why_no_report(found, self.asked.limit_s):
            self._lose(member, why)
            return
        _, code, said, report = found
        file = self.asked.folder / f"{member.name}.json"
        try:
            write_atomically(file, report.decode("utf-8"))
        except (UnicodeDecodeError, SqlstressError) as error:
            self._lose(member, f"its report could not be saved: {error}")
            return
        self.saved[member.name] = str(file)
        if code:
            self.remarks.append(f"{member.name} ended with exit code {code}: {said or 'see its report'}")
        self.tell(f"{member.name}: saved in {file}")

    def _lose(self, member: Member, why: str) -> None:
        self.left_out.append(LeftOut(member.name, why))
        self.tell(f"{member.name}: {why}")

    def _give_up(self, member: Member, why: str) -> None:
        self._members.remove(member)
        member.future.cancel()
        self._lose(member, why)

    def _all_lost(self, why: str) -> None:
        for member in (*self._members, *self._introduced):
            self._lose(member, why)
        self._members.clear()
        self._introduced.clear()


def _other_versions(name: str, identity: Identity) -> Iterator[str]:
    if identity.sqlstress != __version__:
        yield f"{name} runs sqlstress {identity.sqlstress}, here it is {__version__}."
    if identity.python.split(".")[:2] != platform.python_version().split(".")[:2]:
        yield f"{name} runs Python {identity.python}, here it is {platform.python_version()}."
