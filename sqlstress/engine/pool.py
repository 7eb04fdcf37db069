"""The worker processes of one trial: start, common start, results, and their end. Each has its own pipe.

They are started before what they work on is there, and come up while the parent makes it. Those who stay
for the next trial are a crew.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from multiprocessing import Pipe as open_pipe
from multiprocessing.process import BaseProcess
from operator import is_
from types import SimpleNamespace
from typing import Any, Self, TypeVar, cast

from sqlstress.engine import worker
from sqlstress.engine.loop import Window
from sqlstress.engine.worker import CALL, DISMISSED, SLOT_WORDS, STOP, Done, Failed, Job, Observed
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiment import experiment_of
from sqlstress.machine.foreign_load import KEEPS_ACCOUNT, Family
from sqlstress.options.dsn import Dsn
from sqlstress.report.case import Case
from sqlstress.statistics.series import Series
from sqlstress.system import processes
from sqlstress.system.child import Pipe
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import GRACE_S, SPAWNING, TICK_S, Inbox, Starter, wait_some
from sqlstress.system.sharing import shared_array
from sqlstress.target import stores_nothing
from sqlstress.targets import target_of
from sqlstress.targets.place import Place

Pauses = Callable[[int], Sequence[int] | None]
"""Worker → the schedule by which it pauses inside the store; None: it does not."""


HUNG = "hung"
"""How the reason of a worker begins that got nothing done for too long."""


class WorkerFailure(EnvironmentFailure):
    """A worker process could not begin its work."""


@dataclass(slots=True)
class Ended:
    """How one worker ended."""

    worker: int
    done: Done | None = None
    reason: str | None = None
    """Why there are no results; None when there are."""
    over_ns: int = field(default=0, compare=False)
    """When one without results had certainly ended, on the shared clock; 0: not known."""


def clause(reason: str | None) -> str:
    """Return why a process failed, to stand behind its name."""
    known = ("was ", "did ", HUNG, "ended", "closed", "its ")
    return reason if reason and reason.startswith(known) else f"failed: {reason}"


class Pool:
    """Worker processes 1 to the case's concurrency, and their companions, which have the next numbers."""

    def __init__(
        self,
        case: Case,
        place: Place,
        salt: int,
        shared: tuple[Any, ...],
        companions: Sequence[str] = (),
        trace: Any = None,
        starter: Starter = SPAWNING,
        pauses: Pauses | None = None,
        crew: Crew | None = None,
    ) -> None:
        """`pauses` returns by which schedule a worker pauses. `crew`: those who stay; None: nobody does."""
        self.case, self._starter, self._crew = case, starter, crew or Crew()
        experiment, sent, self._companions = experiment_of(case), plain(case), companions
        half, others = experiment.worker_half(), experiment.companions()
        like = half, case.driver, case.settings
        self.counters = self._crew.counters(SLOT_WORDS * (case.concurrency + 1), like, shared)
        self._words = memoryview(self.counters).cast("B").cast("q")
        self._stay = bool(crew) and experiment.keeps_workers and trace is None and pauses is None
        self._all_done = False
        limit = case.ops if experiment.windowed else None
        halves = [half] * case.concurrency + [others[name] for name in companions]
        self._jobs = [
            Job(
                half,
                sent,
                limit,
                place.where,
                number,
                salt,
                self.counters,
                shared,
                trace,
                pauses(number) if pauses and number <= case.concurrency else None,
                self._stay and number <= case.concurrency,
            )
            for number, half in enumerate(halves, 1)
        ]
        self._processes: list[BaseProcess] = []
        self._pipes: dict[Pipe, int] = {}
        self._inboxes: dict[Pipe, Inbox] = {}
        self.started_ns = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self, pulse: Pulse) -> None:
        """Start every process that is not there; none connects before it is called. Raises WorkerFailure."""
        self.started_ns = time.perf_counter_ns()
        for number, job in enumerate(self._jobs, 1):
            woken = self._crew.take(number, job.unshared()) if job.stays else None
            process, pipe = woken or self._started(number, job)
            self._listen(pipe, number)
            self._processes.append(process)
            pulse()

    def _started(self, number: int, job: Job) -> tuple[BaseProcess, Pipe]:
        main = worker.main if number <= self.case.concurrency else worker.accompany
        with self._could_start(number):
            ours, theirs = open_pipe()
            with theirs:
                return self._starter.start(main, (job, theirs)), ours

    @contextmanager
    def _could_start(self, number: int) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            remedy = "Lower --concurrency, or close other programs"
            if isinstance(error, FileNotFoundError):
                remedy = "Check that the current folder still exists"
            raise WorkerFailure(
                f"cannot start process {number} of {len(self._jobs)}: {error.strerror}. {remedy}."
            ) from error

    def _listen(self, pipe: Pipe, number: int) -> None:
        self._pipes[pipe], self._inboxes[pipe] = number, Inbox(pipe)

    def wait_ready(self, timeout_s: float, pulse: Pulse) -> list[Ended]:
        """Wait until all processes have answered a call; return those that failed instead.

        They are given up when none has got ready for `timeout_s`: many take their time on a slow machine.
        """
        failed = []
        for number, message in self._messages(self._pipes, None, pulse, "did not get ready", timeout_s):
            if isinstance(message, Ended):
                failed.append(message)
            elif not self.started_ns <= message.stamp_ns <= time.perf_counter_ns():
                failed.append(Ended(number, reason="its clock is not the parent's"))
        return failed

    def call(self) -> None:
        """Call every process: at first each connects, and each time it says that it is ready.

        Raises WorkerFailure for one that could not be started.
        """
        for number, process in enumerate(self._processes, 1):
            with self._could_start(number):
                process.pid  # noqa: B018
        self._send(CALL)

    def go(self, window: Window) -> None:
        """Tell every process the window."""
        self._send(window)

    def _send(self, message: Any) -> None:
        for pipe in self._pipes:
            try:
                pipe.send(message)
            except OSError:
                pass  # it died meanwhile; gathering the results says so

    def gather(self, timeout_s: float, pulse: Pulse) -> list[Ended]:
        """Wait for all results. They are given up when no worker has got anything done for `timeout_s`."""
        messages = self._messages(self._numbered(workers=True), None, pulse, HUNG, timeout_s)
        ended = [sent if isinstance(sent, Ended) else Ended(number, sent) for number, sent in messages]
        self._all_done = all(one.done for one in ended)
        return sorted(ended, key=lambda one: one.worker)

    def dismiss(self, timeout_s: float, pulse: Pulse) -> tuple[list[Series], str | None]:
        """Tell the workers' companions that it is over; return what they have seen, and what went wrong."""
        self._words[DISMISSED] = 1
        until = time.monotonic() + timeout_s
        messages = dict(self._messages(self._numbered(workers=False), until, pulse, "did not end"))
        series: list[Series] = []
        problem = None
        for number, message in sorted(messages.items()):
            if isinstance(message, Observed):
                series += message.series
            else:
                kept = f"{self.name(number)} {clause(message.reason)}; the workers' figures are kept"
                problem = problem or kept
        return series, problem

    def name(self, number: int) -> str:
        """Return what a process is called."""
        beside = number - self.case.concurrency
        return f"worker {number}" if beside <= 0 else f"the {self._companions[beside - 1]}"

    def _numbered(self, *, workers: bool) -> dict[Pipe, int]:
        """Return the pipes of the workers, or of their companions."""
        most = self.case.concurrency
        return {pipe: number for pipe, number in self._pipes.items() if (number <= most) == workers}

    def done_so_far(self) -> int:
        """Return the operations that all workers have done."""
        return sum(self._words[SLOT_WORDS::SLOT_WORDS].tolist())

    def _messages(
        self, pipes: Mapping[Pipe, int], until: float | None, pulse: Pulse, fault: str, stall_s: float = 0.0
    ) -> Iterator[tuple[int, Any]]:
        """Yield (number, message) once for every process; an Ended when it died, failed or took too long."""
        waiting = dict(pipes)
        seen, moved = -1, time.monotonic()
        while waiting:
            for pipe in wait_some(list(waiting), TICK_S):
                message = self._receive(pipe)
                if message is not None:
                    yield waiting.pop(pipe), message
                    moved = time.monotonic()
            pulse()
            now = time.monotonic()
            if (count := self.done_so_far()) != seen:
                seen, moved = count, now
            if now > (moved + stall_s if until is None else until):
                for number in waiting.values():
                    yield number, Ended(number, reason=f"{fault} within the time-out, and was ended")
                return

    def _receive(self, pipe: Pipe) -> Any:
        """Return a process's message: None while it has not come as a whole, an Ended when it won't."""
        number = self._pipes[pipe]
        try:
            message = self._inboxes[pipe].receive()
        except (EOFError, OSError):
            process = self._processes[number - 1]
            process.join(GRACE_S)
            over_ns = 0 if process.exitcode is None else time.perf_counter_ns()
            return Ended(number, reason=processes.death(process.exitcode), over_ns=over_ns)
        if isinstance(message, Failed):
            return Ended(number, reason=message.reason, over_ns=time.perf_counter_ns())
        return message

    def join(self, timeout_s: float, pulse: Pulse) -> bool:
        """Wait until all processes have ended that do not stay; return whether they did."""
        self._let_stay()
        return joined(self._processes, timeout_s, pulse)

    def _let_stay(self) -> None:
        """Hand the workers who stay to the crew if all have done their work; else nobody waits for more."""
        if not self._stay:
            return
        for pipe, number in self._numbered(workers=True).items():
            if self._all_done:
                self._crew.keep(number, self._processes[number - 1], pipe)
            else:
                pipe.close()
            del self._pipes[pipe]
        if self._all_done:
            self._processes = self._processes[self.case.concurrency :]

    def end(self) -> None:
        """Leave no process behind but those who stay: ask, then terminate, then kill."""
        self._words[STOP] = 1
        for pipe in self._pipes:
            pipe.close()
        end(self._processes)


T = TypeVar("T")


def plain(case: T) -> T:
    """Return what reads like a case and brings none of its classes along.

    A process that is given a dataclass imports `dataclasses`, and that `inspect`, and makes every class
    of a case's module: all in all some 15 ms of its start.
    """

    def reduced(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(reduced, value))
        if not is_dataclass(value):
            return value
        derived = [name for name, what in vars(type(value)).items() if isinstance(what, property)]
        names = [*(one.name for one in fields(value)), *derived]
        return SimpleNamespace(**{name: reduced(getattr(value, name)) for name in names})

    return cast(T, reduced(case))


# What the processes of a measurement import: whoever forks them has done it before.


COMMON = (
    "sqlstress.engine.worker",
    "sqlstress.system.sharing",
    "sqlstress.targets.place",
    *(["_sha2"] if sys.version_info >= (3, 13) else []),
)
"""With the first seed that is a text, `random` imports `_sha2` since Python 3.13."""


def modules(cases: Iterable[Case]) -> list[str]:
    """Return the names of modules; one that is not installed may be among them.

    There are none where all processes are spawned: those of the published script, whose start is in its time.
    """
    names: dict[str, None] = {}
    for case in cases:
        experiment = experiment_of(case)
        if experiment.common_start:
            halves = (experiment.worker_half(), *experiment.companions().values())
            names |= dict.fromkeys(COMMON)
            names |= dict.fromkeys(target_of(case.driver).preload(case.driver))
            names |= dict.fromkeys(experiment.preloads(case))
            names |= dict.fromkeys(half.__module__ for half in halves)
    return list(names)


# Which processes are ours, and when they use no disk, so that what they take is not said to be others'.


def ours(case: Case) -> Family | None:
    """Return ourselves, and all that was started for a case; None where that can't be told.

    A user's server works for us on this machine too, and nothing says which of it is for us.
    """
    if case.server and isinstance(case.server.address, Dsn) and case.server.address.is_local:
        return None
    if experiment_of(case).opens_database:
        return Family()
    return Family(changing=True) if KEEPS_ACCOUNT else None


def starts_silently(case: Case) -> bool:
    """Return whether nothing of ours uses the disk while the processes of a case start, and it uses it then.

    The user's code may write as soon as it starts, and a server when it likes.
    """
    experiment = experiment_of(case)
    is_ours = experiment.opens_database and experiment.applies_settings and experiment.common_start
    return is_ours and not case.server and not stores_nothing(case.driver)


# Worker processes that stay for the next trial. They connect anew, and need not come up again.


_WORD = 8


class Crew:
    """Workers by their number, who sleep until they are taken; ended when the block ends.

    They have the shared arrays that they were started with. Nothing of SQLite stays but what settings change
    for a whole process: those who stay have the same settings.
    """

    def __init__(self) -> None:
        self._like: Any = None
        self._shared: tuple[Any, ...] = ()
        self._counters: Any = None
        self._sleeping: dict[int, tuple[BaseProcess, Pipe]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.dismiss()

    def counters(self, words: int, like: Any, shared: tuple[Any, ...]) -> Any:
        """Return so many shared words of 0, or more, for the next trial.

        Those who sleep are dismissed where they are not like it, or lack what it shares.
        """
        same = len(shared) == len(self._shared) and all(map(is_, shared, self._shared))
        if same and like == self._like and len(self._counters or ()) >= words:
            ctypes.memset(self._counters, 0, _WORD * len(self._counters))
        else:
            self.dismiss()
            self._like, self._shared, self._counters = like, shared, shared_array("q", words)
        return self._counters

    def take(self, number: int, message: Any) -> tuple[BaseProcess, Pipe] | None:
        """Wake a worker with a message, and return it; None when there is none that lives."""
        process, pipe = self._sleeping.pop(number, (None, None))
        if process is None or pipe is None:
            return None
        try:
            pipe.send(message)
        except OSError:  # it was killed in its sleep
            pipe.close()
            end([process])
            return None
        return process, pipe

    def keep(self, number: int, process: BaseProcess, pipe: Pipe) -> None:
        """Let a worker sleep that has done its work."""
        self._sleeping[number] = process, pipe

    def dismiss(self) -> None:
        """End all who sleep."""
        for _, pipe in self._sleeping.values():
            pipe.close()
        end([process for process, _ in self._sleeping.values()])
        self._sleeping.clear()


def joined(processes: Iterable[BaseProcess], timeout_s: float, pulse: Pulse) -> bool:
    """Wait until processes have ended; return whether they did."""
    until = time.monotonic() + timeout_s
    for process in processes:
        # Not by its exit code: multiprocessing would keep it, and its descriptors, until the next start.
        while process.is_alive() and (left := until - time.monotonic()) > 0:
            process.join(min(left, TICK_S))
            pulse()
    return all(process.exitcode is not None for process in processes)


def end(processes: Sequence[BaseProcess]) -> None:
    """Leave no process behind who has been asked to end: wait, then terminate, then kill."""
    for act in (BaseProcess.terminate, BaseProcess.kill):
        if joined(processes, GRACE_S, lambda: None):  # nothing stops us here: we are leaving
            return
        for process in processes:
            if process.exitcode is None:
                act(process)
    joined(processes, GRACE_S, lambda: None)
