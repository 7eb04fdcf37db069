"""Rounds over a cluster: who has joined is asked who it is, each machine measures once, reports are saved."""

from __future__ import annotations

import platform
import time
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from sqlstress.analysis.fleet import LeftOut
from sqlstress.cluster import job
from sqlstress.cluster.connection import (
    ANSWER_S,
    Cluster,
    Connection,
    Identity,
    Member,
    SchedulerLost,
    connected,
    file_name,
)
from sqlstress.cluster.job import GRACE_S, SILENT_S, parsed, problem, why_no_report
from sqlstress.errors import EnvironmentFailure, Interrupted, SqlstressError, UsageError
from sqlstress.experiment import has_window
from sqlstress.options.parsing import duration, sentence
from sqlstress.plan import LARGEST, from_toml
from sqlstress.report import write_atomically
from sqlstress.report.case import Case
from sqlstress.system.files import read_text
from sqlstress.system.interrupt import StopSignals
from sqlstress.targets.meeting import Invitation
from sqlstress.version import __version__

# What is asked of the hosts of a cluster: a plan, for how long, and where its reports go.


@dataclass(frozen=True, slots=True)
class FleetRequest:
    """A plan for every host, checked here: what is wrong with it is wrong on all of them."""

    plan: str
    """Its text, with a seed that all hosts share."""
    folder: Path
    """Where the reports are saved: an empty folder, or one that is not there yet."""
    directory: str
    """Where the databases go on each host."""
    limit_s: float
    """How long a host may take."""
    hosts: int | None
    """Until so many have come it is waited for more; None: those that are there, and who joins meanwhile."""
    together: bool = False
    """Whether all load one server, from a common start."""

    @classmethod
    def of(
        cls, plan: Path, folder: Path, directory: str, limit: str, hosts: int | None, together: bool = False
    ) -> FleetRequest:
        """Read what options ask for. Raises UsageError."""
        cases = from_toml(plan)
        if together:
            check_one_server(cases)
        try:
            limit_s = duration(1.0)(limit)
        except ValueError as error:
            raise UsageError(f"--limit: {sentence(error)}") from error
        # The plan's own seed stands in all its cases; one that was drawn is the same for all hosts now.
        text = read_text(plan, LARGEST)
        own = f"seed = {cases[0].seed}\n" if "seed" not in tomllib.loads(text) else ""
        try:  # reports of another run stay apart
            if folder.exists() and next(folder.iterdir(), None) is not None:
                raise UsageError(
                    f"--folder {str(folder)!r:.200} is not empty. Give a new folder for these reports."
                )
        except OSError as error:
            raise UsageError(f"--folder {str(folder)!r:.200}: {error.strerror}.") from error
        return cls(f"{own}{text}", folder, directory, limit_s, hosts, together)

    def make_folder(self) -> bool:
        """Make the folder before anything is measured; say whether it is new. Raises EnvironmentFailure."""
        try:
            if self.folder.is_dir():
                return False
            self.folder.mkdir(parents=True)
            return True
        except OSError as error:
            raise EnvironmentFailure(
                f"cannot make the folder {str(self.folder)!r:.200}: {error.strerror}."
            ) from error


def check_one_server(cases: Sequence[Case]) -> None:
    """Raise UsageError unless all cases load one server that is named, each in a window."""
    addresses = {case.server.address if case.server else None for case in cases}
    if None in addresses:
        raise UsageError(
            '--together loads one server: every case needs target = "postgres" and the same dsn.'
        )
    if len(addresses) > 1:
        shown = " and ".join(sorted(map(str, addresses))[:2])
        raise UsageError(f"--together loads one server, but the plan names {shown}. Write a plan for each.")
    if not all(map(has_window, cases)):
        raise UsageError("--together needs a duration in the plan, and no ops.")
    if not all(case.warmup_s for case in cases):
        raise UsageError(
            "--together needs a warmup in the plan, so that every host is loading when the windows open."
        )


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


class Rounds:
    """Goes round the hosts until all are done."""

    def __init__(self, connection: Connection, request: FleetRequest, tell: Tell) -> None:
        self.connection, self.request, self.tell = connection, request, tell
        self.saved: dict[str, str] = {}
        """Hosts by their names → the file of the report."""
        self.left_out: list[LeftOut] = []
        self.remarks: list[str] = []
        self.run = f"sqlstress-{token_hex(8)}"
        self._known: set[str] = set()
        self._machines: dict[str, str] = {}
        self._members: list[Member] = []
        self._introduced: list[Member] = []
        """Those that have said who they are, and do not measure yet."""
        self._beats, self._beaten = 0, -PULSE_S
        self._tickets: list[str] = []

    def go(self, check: Callable[[], None]) -> None:
        """Go on until every host that has joined is done. `check` raises when it is time to stop."""
        begun = time.monotonic()
        while not self._is_over(time.monotonic() - begun):
            check()
            try:
                if time.monotonic() - self._beaten >= PULSE_S:  # let the hosts know that we are still here
                    self._beats, self._beaten = self._beats + 1, time.monotonic()
                    self.connection.pulse(self.run, self._beats)
                present = self.connection.workers()
            except SchedulerLost as error:
                for member in (*self._members, *self._introduced):
                    self._lose(member, str(error))
                self._members.clear()
                self._introduced.clear()
                return
            for address in sorted(present - self._known):
                self._known.add(address)
                key = f"{self.run}-who-{len(self._known)}"
                who = "__import__('sqlstress.cluster.job', fromlist=['who']).who()"
                future = self.connection.submit(who, address, key)
                self._members.append(Member(address, future, time.monotonic(), address))
            for member in self._members[:]:
                self._look_at(member, member.address in present)
            self._begin(present, time.monotonic() - begun)
            time.sleep(TICK_S)

    def _is_over(self, waited_s: float) -> bool:
        if self._members or self._introduced:
            return False
        if self.request.hosts is not None:
            return len(self._machines) >= self.request.hosts or waited_s > self.request.limit_s
        return bool(self._known) or waited_s > JOIN_S

    def stop(self) -> list[str]:
        """Tell all hosts to stop, and wait until they have; return those that have not answered."""
        until = time.monotonic() + STOPPED_S
        pending = [member for member in self._members if member.measuring]
        try:
            self.connection.pulse(self.run, job.STOP)
            while pending and time.monotonic() < until:
                present = self.connection.workers()
                pending = [each for each in pending if not each.future.done() and each.address in present]
                time.sleep(TICK_S)
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
        return f"{reports} in {self.request.folder}"

    def _look_at(self, member: Member, is_there: bool) -> None:
        future = member.future
        if future.done():
            self._members.remove(member)
            try:
                answer = future.result(timeout=ANSWER_S)
            except Exception as error:  # whatever a host's code, or the way here, may raise
                self._lose(member, problem(error, is_there))
            else:
                (self._keep if member.measuring else self._introduce)(member, answer)
            finally:
                future.release()
            return
        limit_s = self.request.limit_s + LATE_S if member.measuring else WHO_S
        if not is_there:
            why = "it disappeared while it was measuring" if member.measuring else "it disappeared"
        elif time.monotonic() - member.since > limit_s:
            why = f"it did not answer within {limit_s:.0f} s"
        else:
            return
        self._members.remove(member)
        future.cancel()
        self._lose(member, why)

    def _introduce(self, member: Member, answer: object) -> None:
        """Learn which machine a worker is on; one that nobody measures on yet is to measure."""
        try:
            identity = Identity.of(answer)
        except ValueError as error:
            self._lose(member, str(error))
            return
        if other := self._machines.get(identity.machine):
            self.remarks.append(f"{member.address} is on the same machine as {other}: measured once.")
            return
        member.name = name = file_name(identity.host, {*self._machines.values()})
        self._machines[identity.machine] = name
        here = platform.python_version()
        if identity.sqlstress != __version__:
            self.remarks.append(f"{name} runs sqlstress {identity.sqlstress}, here it is {__version__}.")
        if identity.python.split(".")[:2] != here.split(".")[:2]:
            self.remarks.append(f"{name} runs Python {identity.python}, here it is {here}.")
        self._introduced.append(member)

    def _begin(self, present: set[str], waited_s: float) -> None:
        """Have those hosts measure that have said who they are.

        Of those that load one server together nobody begins before all that are awaited are there.
        """
        if not self.request.together:
            for member in self._introduced:
                self._measure(member)
            self._introduced.clear()
        elif self._tickets:
            self._leave_out("it came when the others had begun together")
        elif not self._members and not (
            len(self._introduced) < (self.request.hosts or 0) and waited_s <= self.request.limit_s
        ):
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

    def _measure(self, member: Member, together: str = "") -> None:
        ticket = f"{self.run}-{len(self._tickets)}"
        self.connection.put_ticket(ticket, job.order(self.request, self.run, together))
        self._tickets.append(ticket)
        expression = f"__import__('sqlstress.cluster.job', fromlist=['measure']).measure({ticket!r})"
        member.future = self.connection.submit(expression, member.address, f"{ticket}-measure")
        member.since, member.measuring = time.monotonic(), True
        self._members.append(member)

    def _keep(self, member: Member, answer: object) -> None:
        """Save what a host sends, and say so."""
        found = parsed(answer)
        if found is None:
            self._lose(member, "unexpected reply (not from sqlstress)")
            return
        if why := why_no_report(found, self.request.limit_s):
            self._lose(member, why)
            return
        _, code, said, report = found
        file = self.request.folder / f"{member.name}.json"
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


# A fleet that is measured: connected, carried through, and what came of it.


@dataclass(frozen=True, slots=True)
class MeasuredFleet:
    """What came of it, beside the reports in the folder."""

    left_out: tuple[LeftOut, ...]
    """Hosts without a report, and why."""
    remarks: tuple[str, ...]
    """What else is to be known, a sentence each."""


def measure_fleet(cluster: Cluster, request: FleetRequest, tell: Tell) -> MeasuredFleet:
    """Measure a plan on every host of a cluster; each report is saved as soon as it is there.

    Raises EnvironmentFailure when there is no scheduler, or no report of any host; Interrupted when we are
    told to stop: then nothing is left running on any host.
    """
    with connected(cluster) as connection, StopSignals() as signals:
        is_new = request.make_folder()
        rounds = Rounds(connection, request, tell)
        try:
            rounds.go(signals.check)
        except Interrupted as stop:
            silent = ", ".join(rounds.stop()[:5])
            runs = f"{silent} did not answer: what runs there ends by itself within {SILENT_S:.0f} s"
            still = runs if silent else "nothing runs on any host"
            raise Interrupted(f"{stop}; {rounds.kept()}; {still}.") from stop
        finally:
            rounds.forget()
            if is_new and not rounds.saved:
                with suppress(OSError):
                    request.folder.rmdir()
    if rounds.saved:
        return MeasuredFleet(tuple(rounds.left_out), tuple(rounds.remarks))
    if not rounds.left_out:
        raise EnvironmentFailure(
            f"no host joined the scheduler at {cluster.address} within {JOIN_S:.0f} s. Start dask workers "
            "for it."
        )
    first, more = rounds.left_out[0], len(rounds.left_out) - 1
    others = f" (and {more:,} more hosts)" if more else ""
    why = first.why.removesuffix(".")
    raise EnvironmentFailure(f"no host has sent a report: {first.name}: {why}{others}.")
