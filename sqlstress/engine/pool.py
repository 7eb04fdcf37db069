"""The processes of one trial: start, common start of the load, results and end.

The processes are the workers and the companions: additional processes whose operations do not count. All
processes start while the parent prepares the data. Each has a pipe to the parent.
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

from sqlstress.analysis.causes import rules_of
from sqlstress.engine import worker
from sqlstress.engine.loop import Window
from sqlstress.engine.worker import DISMISSED, READY_CALL, SLOT_WORDS, STOP, Done, FailedWork, Job, Observed
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiment import experiment_of
from sqlstress.machine.foreign_load import COUNTS_ENDED_CHILDREN, Family
from sqlstress.options.dsn import Dsn
from sqlstress.report.case import Case
from sqlstress.sqlite_codes import SIGBUS
from sqlstress.statistics.series import Series
from sqlstress.system import processes
from sqlstress.system.child import Pipe
from sqlstress.system.interrupt import Pulse
from sqlstress.system.processes import GRACE_S, SPAWNING, TICK_S, Inbox, Starter, wait_readable
from sqlstress.system.sharing import shared_array
from sqlstress.target import stores_nothing
from sqlstress.targets import target_of
from sqlstress.targets.place import Place

Pauses = Callable[[int], Sequence[int] | None]
"""Function from a worker's number to its pauses inside SQLite, for `Place.pause`; None for no pauses."""

HUNG = "hung"
"""First word of `WorkerExit.reason` if a worker was killed because it made no progress."""


class WorkerFailure(EnvironmentFailure):
    """A worker process could not be started."""


@dataclass(slots=True)
class WorkerExit:
    """Results of one worker, or the reason why there are none."""

    worker: int
    done: Done | None = None
    reason: str | None = None
    """Clause such as "was killed" if there are no results; else None."""
    over_ns: int = field(default=0, compare=False)
    """Time, in ns, at which the parent knew that a worker without results had ended; 0 means unknown."""


def clause(reason: str | None) -> str:
    """Return a clause to follow a process's name, such as "was killed" or "failed: disk full"."""
    verbs = ("was ", "did ", HUNG, "ended", "closed", "its ")
    return reason if reason and reason.startswith(verbs) else f"failed: {reason}"


def death_clause(exitcode: int | None) -> str:
    """Return a clause on the death of a process, such as "was killed"; for SIGBUS, with a remedy."""
    ending = processes.exit_clause(exitcode)
    if not ending.endswith("SIGBUS"):
        return ending
    (rule,) = rules_of(SIGBUS)
    cause = rule.cause[:1].lower() + rule.cause[1:]
    return f"{ending} ({cause} {rule.advice.removesuffix('.')})"


class Pool:
    """All processes of one trial: workers, numbered from 1, and companions with the numbers after them."""

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
        crew: IdleWorkers | None = None,
    ) -> None:
        """`salt`, a number, changes the random draws. `shared` has the experiment's shared arrays.

        `trace` is the shared memory in which the option `--where` records times, or None. `crew` keeps idle
        workers for the next trial; if it is None, all workers end with this trial.
        """
        self.case, self._starter, self._crew = case, starter, crew or IdleWorkers()
        experiment, sent, self._companions = experiment_of(case), to_namespace(case), companions
        half, companion_halves = experiment.worker_half(), experiment.companions()
        like = half, case.driver, case.settings
        self.counters = self._crew.counters(SLOT_WORDS * (case.concurrency + 1), like, shared)
        self._words = memoryview(self.counters).cast("B").cast("q")
        self._stay = bool(crew) and experiment.keeps_workers and trace is None and pauses is None
        self._all_done = False
        limit = case.ops if experiment.windowed else None
        job = Job(half, sent, limit, place.where, 0, salt, self.counters, shared, trace)
        self._jobs = [
            job._replace(number=number, pauses=pauses(number) if pauses else None, stays=self._stay)
            for number in range(1, case.concurrency + 1)
        ]
        self._jobs += [
            job._replace(half=companion_halves[name], number=number)
            for number, name in enumerate(companions, case.concurrency + 1)
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
        """Start all processes, or wake idle workers. They do not connect yet. Raises WorkerFailure."""
        self.started_ns = time.perf_counter_ns()
        for number, job in enumerate(self._jobs, 1):
            woken = self._crew.take(number, job.unshared()) if job.stays else None
            process, pipe = woken or self._start_process(number, job)
            self._listen(pipe, number)
            self._processes.append(process)
            pulse()

    def _start_process(self, number: int, job: Job) -> tuple[BaseProcess, Pipe]:
        main = worker.main if number <= self.case.concurrency else worker.run_companion
        with self._could_start(number):
            our_end, their_end = open_pipe()
            with their_end:
                return self._starter.start(main, (job, their_end)), our_end

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

    def wait_ready(self, timeout_s: float, pulse: Pulse) -> list[WorkerExit]:
        """Wait until every process has answered `call`; return the processes that failed.

        `timeout_s` limits the time without an answer, because many processes may share a slow machine.
        """
        failed = []
        for number, message in self._messages(self._pipes, None, pulse, "did not get ready", timeout_s):
            if isinstance(message, WorkerExit):
                failed.append(message)
            elif not self.started_ns <= message.stamp_ns <= time.perf_counter_ns():
                failed.append(WorkerExit(number, reason="its clock is not the parent's"))
        return failed

    def call(self) -> None:
        """Ask every process to answer when it is connected to the data. Raises WorkerFailure."""
        for number, process in enumerate(self._processes, 1):
            with self._could_start(number):
                process.pid  # noqa: B018
        self._send(READY_CALL)

    def go(self, window: Window) -> None:
        """Send every process the window: the times of the common start and of the measurement."""
        self._send(window)

    def _send(self, message: Any) -> None:
        for pipe in self._pipes:
            try:
                pipe.send(message)
            except OSError:
                pass  # the process has died; `gather` reports it

    def gather(self, timeout_s: float, pulse: Pulse) -> list[WorkerExit]:
        """Return the results of all workers; give up after `timeout_s` seconds without progress."""
        messages = self._messages(self._select_pipes(workers=True), None, pulse, HUNG, timeout_s)
        ended = [
            sent if isinstance(sent, WorkerExit) else WorkerExit(number, sent) for number, sent in messages
        ]
        self._all_done = all(result.done for result in ended)
        return sorted(ended, key=lambda result: result.worker)

    def dismiss(self, timeout_s: float, pulse: Pulse) -> tuple[list[Series], str | None]:
        """Stop the companions; return (their recorded values, message on a failed companion or None).

        A companion that does not end within `timeout_s` seconds has failed.
        """
        self._words[DISMISSED] = 1
        until = time.monotonic() + timeout_s
        messages = dict(self._messages(self._select_pipes(workers=False), until, pulse, "did not end"))
        series: list[Series] = []
        problem = None
        for number, message in sorted(messages.items()):
            if isinstance(message, Observed):
                series += message.series
            else:
                text = f"{self.name(number)} {clause(message.reason)}; the workers' figures are kept"
                problem = problem or text
        return series, problem

    def name(self, number: int) -> str:
        """Return the name of process `number` for messages, such as "worker 3" or "the reader"."""
        companion = number - self.case.concurrency
        return f"worker {number}" if companion <= 0 else f"the {self._companions[companion - 1]}"

    def _select_pipes(self, *, workers: bool) -> dict[Pipe, int]:
        most = self.case.concurrency
        return {pipe: number for pipe, number in self._pipes.items() if (number <= most) == workers}

    def done_so_far(self) -> int:
        """Return the number of operations that all workers together have done so far."""
        return sum(self._words[SLOT_WORDS::SLOT_WORDS].tolist())

    def _messages(
        self, pipes: Mapping[Pipe, int], until: float | None, pulse: Pulse, fault: str, stall_s: float = 0.0
    ) -> Iterator[tuple[int, Any]]:
        """Wait for a message from each process; yield (process number, message).

        If a process has died, failed, or sent nothing in time, its message is a WorkerExit. The wait ends at
        the time `until` (of `time.monotonic`). If `until` is None, it ends after `stall_s` seconds in which
        no process made progress. `fault` is text on a process without a message, such as "did not end".
        """
        waiting = dict(pipes)
        last_count, progress_s = -1, time.monotonic()
        while waiting:
            for pipe in wait_readable(list(waiting), TICK_S):
                message = self._receive(pipe)
                if message is not None:
                    yield waiting.pop(pipe), message
                    progress_s = time.monotonic()
            pulse()
            now = time.monotonic()
            if (count := self.done_so_far()) != last_count:
                last_count, progress_s = count, now
            if now > (progress_s + stall_s if until is None else until):
                for number in waiting.values():
                    yield number, WorkerExit(number, reason=f"{fault} within the time-out, and was ended")
                return

    def _receive(self, pipe: Pipe) -> Any:
        """Return a process's message, None if it is incomplete, or a WorkerExit if the process failed."""
        number = self._pipes[pipe]
        try:
            message = self._inboxes[pipe].receive()
        except (EOFError, OSError):
            process = self._processes[number - 1]
            process.join(GRACE_S)
            over_ns = 0 if process.exitcode is None else time.perf_counter_ns()
            return WorkerExit(number, reason=death_clause(process.exitcode), over_ns=over_ns)
        if isinstance(message, FailedWork):
            return WorkerExit(number, reason=message.reason, over_ns=time.perf_counter_ns())
        return message

    def join(self, timeout_s: float, pulse: Pulse) -> bool:
        """Keep workers for the next trial if possible, and wait for the end of all other processes.

        Return whether all other processes have ended within `timeout_s` seconds.
        """
        self._hand_over_workers()
        return join_all(self._processes, timeout_s, pulse)

    def _hand_over_workers(self) -> None:
        if not self._stay:
            return
        for pipe, number in self._select_pipes(workers=True).items():
            if self._all_done:
                self._crew.keep(number, self._processes[number - 1], pipe)
            else:
                pipe.close()
            del self._pipes[pipe]
        if self._all_done:
            self._processes = self._processes[self.case.concurrency :]

    def end(self) -> None:
        """End all processes except workers kept for the next trial."""
        self._words[STOP] = 1
        for pipe in self._pipes:
            pipe.close()
        end(self._processes)


T = TypeVar("T")


def to_namespace(case: T) -> T:
    """Return a copy of the case that a worker can unpickle without importing the class Case.

    The copy is a SimpleNamespace. Importing the class would take each worker about 15 ms.
    """

    def convert(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(convert, value))
        if not is_dataclass(value):
            return value
        derived = [name for name, attribute in vars(type(value)).items() if isinstance(attribute, property)]
        names = [*(field.name for field in fields(value)), *derived]
        return SimpleNamespace(**{name: convert(getattr(value, name)) for name in names})

    return cast(T, convert(case))


COMMON_MODULES = (
    "sqlstress.engine.worker",
    "sqlstress.system.sharing",
    "sqlstress.targets.place",
    *(["_sha2"] if sys.version_info >= (3, 13) else []),
)
"""Modules that every worker imports. Since Python 3.13, `random` needs `_sha2` for a str seed."""


def modules(cases: Iterable[Case]) -> list[str]:
    """Return the names of the modules that the workers' fork server imports in advance.

    The names may include modules that are not installed. Experiments that repeat a published benchmark get no
    fork server, because the benchmark's time includes the start of processes.
    """
    names: dict[str, None] = {}
    for case in cases:
        experiment = experiment_of(case)
        if experiment.common_start:
            halves = (experiment.worker_half(), *experiment.companions().values())
            names |= dict.fromkeys(COMMON_MODULES)
            names |= dict.fromkeys(target_of(case.driver).preload(case.driver))
            names |= dict.fromkeys(experiment.preloads(case))
            names |= dict.fromkeys(half.__module__ for half in halves)
    return list(names)


def our_processes(case: Case) -> Family | None:
    """Return all processes that work for a case; None if their processor time cannot be known.

    The time is unknown for the user's server on this machine, which may have other clients, and for the
    user's programs on a system that does not add the time of ended processes to that of their parent.
    """
    if case.server and isinstance(case.server.address, Dsn) and case.server.address.is_local:
        return None
    if experiment_of(case).opens_database:
        return Family()
    return Family(changing=True) if COUNTS_ENDED_CHILDREN else None


def starts_without_disk(case: Case) -> bool:
    """Return whether our processes do not use the disk before the load. A server or the user's code may."""
    experiment = experiment_of(case)
    is_ours = experiment.opens_database and experiment.applies_settings and experiment.common_start
    return is_ours and not case.server and not stores_nothing(case.driver)


_WORD = 8


class IdleWorkers:
    """Idle workers, which sleep between two trials, so that the next trial need not start processes.

    They keep the shared arrays and settings of their last trial, so only a similar trial can use them. At the
    end of the `with` block they end.
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
        """Return a shared array of at least `words` zeros for the counters of the next trial.

        End the idle workers if the next trial cannot use them: if it has other shared arrays (`shared`), if
        it needs more counters, or if it has a different `like`: values that a process cannot change after its
        start, such as the driver.
        """
        same = len(shared) == len(self._shared) and all(map(is_, shared, self._shared))
        if same and like == self._like and len(self._counters or ()) >= words:
            ctypes.memset(self._counters, 0, _WORD * len(self._counters))
        else:
            self.dismiss()
            self._like, self._shared, self._counters = like, shared, shared_array("q", words)
        return self._counters

    def take(self, number: int, message: Any) -> tuple[BaseProcess, Pipe] | None:
        """Wake idle worker `number` with a message; return its process and pipe, or None if it is dead."""
        process, pipe = self._sleeping.pop(number, (None, None))
        if process is None or pipe is None:
            return None
        try:
            pipe.send(message)
        except OSError:  # The worker was killed while it was idle.
            pipe.close()
            end([process])
            return None
        return process, pipe

    def keep(self, number: int, process: BaseProcess, pipe: Pipe) -> None:
        """Keep a worker that has finished its trial for a later trial."""
        self._sleeping[number] = process, pipe

    def dismiss(self) -> None:
        for _, pipe in self._sleeping.values():
            pipe.close()
        end([process for process, _ in self._sleeping.values()])
        self._sleeping.clear()


def join_all(processes: Iterable[BaseProcess], timeout_s: float, pulse: Pulse) -> bool:
    """Wait up to `timeout_s` until all processes have ended; return whether all have."""
    until = time.monotonic() + timeout_s
    for process in processes:
        # `is_alive` closes the descriptors of an ended process at once; reading `exitcode` would not.
        while process.is_alive() and (left := until - time.monotonic()) > 0:
            process.join(min(left, TICK_S))
            pulse()
    return all(process.exitcode is not None for process in processes)


def end(processes: Sequence[BaseProcess]) -> None:
    """End processes: wait GRACE_S seconds, then terminate, then kill."""
    for act in (BaseProcess.terminate, BaseProcess.kill):
        # The clean-up must not be interrupted, so the pulse does nothing.
        if join_all(processes, GRACE_S, lambda: None):
            return
        for process in processes:
            if process.exitcode is None:
                act(process)
    join_all(processes, GRACE_S, lambda: None)
