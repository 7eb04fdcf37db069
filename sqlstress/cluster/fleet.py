"""The client's half of a fleet: each machine of a Dask cluster measures a plan once; reports are saved.

Whoever can reach a scheduler can run code on all its hosts, so it needs TLS unless it is on this machine.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

import distributed
from distributed.comm import connect

from sqlstress.cluster.job import GRACE_S, POLL_S, SILENT_S, STOP
from sqlstress.errors import EnvironmentFailure, Interrupted, UsageError, plainly
from sqlstress.options.parsing import duration, sentence
from sqlstress.plan import LARGEST, from_toml
from sqlstress.report import write_atomically
from sqlstress.show.blocks import shortened
from sqlstress.show.endings import BAD, FAILURE, FINE, UNSURE
from sqlstress.statistics.units import plural, verb
from sqlstress.system.files import read_text
from sqlstress.system.interrupt import StopSignals
from sqlstress.version import __version__

_ADDRESS = re.compile(r"(tls|tcp)://(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253}):([0-9]{1,5})")
TICK_S = 0.5
CONNECT_S = 10.0
ANSWER_S = 30.0
"""Maximum wait for the scheduler."""
JOIN_S = 30.0
"""Maximum wait for the first worker."""
IDENTITY_S = 120.0
"""Maximum wait for a worker's name: it may be busy with another client's task."""
STOP_S = GRACE_S + 3 * POLL_S
"""Maximum wait for a host to stop."""


def security_of(address: str, ca: Path | None, cert: Path | None, key: Path | None) -> distributed.Security:
    """Return the security of a connection. Raises UsageError if others on the network could use it."""
    match = _ADDRESS.fullmatch(address)
    if not match or not 0 < int(match[3]) < 65536:
        raise UsageError(
            f"--scheduler {address!r:.100} is not an address. Write tls://HOST:PORT, or tcp://127.0.0.1:PORT."
        )
    files = {"--tls-ca": ca, "--tls-cert": cert, "--tls-key": key}
    if match[1] == "tls":
        for option, file in files.items():
            _check_pem(option, file)
        names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
        texts = map(str, files.values())
        return distributed.Security(require_encryption=True, **dict(zip(names, texts, strict=True)))
    if given := [option for option, file in files.items() if file]:
        raise UsageError(f"{given[0]} needs tls://, but {address} is not encrypted.")
    if not _is_loopback(match[2].strip("[]")):
        raise UsageError(
            f"--scheduler {address}: without TLS, anyone on the network can run code on all hosts. Use "
            "tls:// with --tls-ca, --tls-cert and --tls-key. tcp:// is for this machine only (127.0.0.1)."
        )
    return distributed.Security()


def _check_pem(option: str, file: Path | None) -> None:
    if file is None:
        raise UsageError(f"tls:// needs --tls-ca, --tls-cert and --tls-key: {option} is missing.")
    try:
        text = file.read_bytes()[: 1 << 20]
    except OSError as error:
        raise UsageError(f"{option} {str(file)!r:.200}: {error.strerror}.") from error
    if b"-----BEGIN " not in text:
        raise UsageError(f"{option} {str(file)!r:.200} is not a PEM file: it has no BEGIN line.")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False  # another name


@contextmanager
def connected(address: str, security: distributed.Security) -> Iterator[Any]:
    """Yield a client of Dask. Raises EnvironmentFailure without a scheduler."""
    with _silence():
        try:
            asyncio.run(asyncio.wait_for(_probe(address, security), CONNECT_S))
            client = distributed.Client(
                address, security=security, timeout=CONNECT_S, set_as_default=False, name="sqlstress"
            )
        except Exception as error:  # of sockets, TLS, protocols, versions
            raise EnvironmentFailure(
                f"no Dask scheduler responds at {address} ({_reason(error):.120}). Check the address, "
                "TLS, and that its authority signed the certificates."
            ) from error
        try:
            yield client
        finally:
            with suppress(Exception):
                client.close(timeout=CONNECT_S)


@contextmanager
def _silence() -> Iterator[None]:
    """Silence Dask and its libraries: they print many lines for an error that we report in one."""
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


async def _probe(address: str, security: distributed.Security) -> None:
    """Connect to a Dask scheduler and disconnect.

    Dask's client repeats refused connections, and waits without a limit for a server that sends no greeting.
    """
    parts = urlsplit(address)
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.close()
    comm = await connect(address, timeout=CONNECT_S, **security.get_connection_args("client"))
    comm.abort()


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_S:.0f} s"
    if isinstance(error, MemoryError | OverflowError):  # Dask reads the first bytes as the size of a message
        return "unexpected answer"
    text = " ".join(str(error).split()) or type(error).__name__
    return re.sub(r"^in <.*?>: ", "", text)  # Dask's description of its socket


@dataclass(frozen=True, slots=True)
class FleetRequest:
    """A plan for every host, checked before any host starts."""

    plan: str
    """Text of the plan, with a seed that all hosts share."""
    folder: Path
    """Folder of the reports: empty or new."""
    directory: str
    """Folder for the databases on each host."""
    limit_s: float
    """Time limit of a host."""
    hosts: int | None
    """Number of hosts to wait for; None means those that are there."""

    @classmethod
    def of(cls, plan: Path, folder: Path, directory: str, limit: str, hosts: int | None) -> FleetRequest:
        """Return the request of these options. Raises UsageError."""
        cases = from_toml(plan)
        text = read_text(plan, LARGEST)
        if "seed" not in tomllib.loads(text):
            text = f"seed = {cases[0].seed}\n{text}"
        try:
            limit_s = duration(1.0)(limit)
        except ValueError as error:
            raise UsageError(f"--limit: {sentence(error)}") from error
        try:
            if folder.exists() and next(folder.iterdir(), None) is not None:
                raise UsageError(f"--folder {str(folder)!r:.200} is not empty. Give a new folder.")
        except OSError as error:
            raise UsageError(f"--folder {str(folder)!r:.200}: {error.strerror}.") from error
        return cls(text, folder, directory, limit_s, hosts)


@dataclass(slots=True)
class Member:
    """A worker and its current task: first it reports its machine, then it measures."""

    address: str
    name: str
    """Name of the host; the address until the worker has reported it."""
    future: Any
    until: float
    """Time until which the answer is awaited."""
    is_measuring: bool = False


class Rounds:
    """Rounds over the workers until each host has ended."""

    def __init__(self, client: Any, request: FleetRequest, report: Callable[[str], None]) -> None:
        self.client, self.request, self.report = client, request, report
        self.run = f"sqlstress-{token_hex(8)}"
        self.codes: list[int] = []
        """Exit codes of the hosts; FAILURE for a lost host."""
        self.saved = 0
        self._members: list[Member] = []
        self._addresses: set[str] = set()
        self._names: dict[str, str] = {}
        """Names of hosts by machine."""
        self._tickets: list[Any] = []
        self._heartbeat = distributed.Variable(self.run, client=client)

    def go(self, check: Callable[[], None]) -> None:
        """Continue until every host has ended. `check` raises Interrupted if the fleet has to stop."""
        began = time.monotonic()
        while not self._is_over(time.monotonic() - began):
            check()
            try:
                self._heartbeat.set(time.time_ns(), timeout=ANSWER_S)
                present = set(self.client.nthreads(callback_timeout=ANSWER_S))
                for address in sorted(present - self._addresses):
                    self._ask(address)
            except Exception:  # Dask raises many kinds of errors without a scheduler
                for member in self._members[:]:
                    self._lose(member, "the scheduler no longer responds")
                break
            for member in self._members[:]:
                self._advance(member, member.address in present)
            time.sleep(TICK_S)
        if len(self._names) < (self.request.hosts or 0):
            self.codes.append(FAILURE)
            self.report(f"{len(self._names)} of {self.request.hosts} hosts joined")

    def _is_over(self, waited_s: float) -> bool:
        if self._members:
            return False
        if self.request.hosts is not None:
            return len(self._names) >= self.request.hosts or waited_s > self.request.limit_s
        return bool(self._addresses) or waited_s > JOIN_S

    def _ask(self, address: str) -> None:
        """Ask a new worker for its machine."""
        self._addresses.add(address)
        future = self._submit("identity()", address, f"{self.run}-identity-{len(self._addresses)}")
        self._members.append(Member(address, address, future, time.monotonic() + IDENTITY_S))

    def _advance(self, member: Member, is_present: bool) -> None:
        if member.future.done():
            try:
                answer = member.future.result(timeout=ANSWER_S)
                (self._save if member.is_measuring else self._start)(member, *answer)
            except Exception as error:  # of a host's code, of the connection, of the disk here
                self._lose(member, problem(error, is_present))
        elif not is_present:
            self._lose(member, f"it disappeared{' while it was measuring' * member.is_measuring}")
        elif time.monotonic() > member.until:
            self._lose(member, "it did not answer in time")

    def _start(self, member: Member, host: str, machine: str) -> None:
        """Start the measurement on a worker, unless another worker of its machine measures."""
        if other := self._names.get(machine):
            self._members.remove(member)
            self.report(f"{member.address} is on the same machine as {other}: measured once")
            return
        member.name = self._names[machine] = file_name(host, self._names.values())
        ticket = f"{self.run}-{member.name}"
        order = {name: getattr(self.request, name) for name in ("plan", "directory", "limit_s")}
        self._put_ticket(ticket, json.dumps({**order, "run": self.run}))
        member.future = self._submit(f"measure({ticket!r})", member.address, f"{ticket}-measure")
        member.until = time.monotonic() + self.request.limit_s + 2 * STOP_S
        member.is_measuring = True

    def _put_ticket(self, name: str, order: str) -> None:
        """Store an order that one task can take, once."""
        ticket = distributed.Queue(name, client=self.client)
        self._tickets.append(ticket)
        ticket.put(order, timeout=ANSWER_S)

    def _submit(self, expression: str, worker: str, key: str) -> Any:
        """Start a function of `job`, which is sent as text: pickled code fits one version of Python."""
        text = f"__import__('sqlstress.cluster.job', fromlist=['job']).{expression}"
        return self.client.submit(
            eval, text, key=key, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    def _save(self, member: Member, code: int, complaint: str, report: bytes) -> None:
        file = self.request.folder / f"{member.name}.json"
        write_atomically(file, report.decode("utf-8"))
        self._members.remove(member)
        self.saved += 1
        self.codes.append(code if code in (FINE, BAD, UNSURE) else FAILURE)
        self.report(f"{member.name}: saved in {file}" + (f"; exit code {code}: {complaint}" if code else ""))

    def _lose(self, member: Member, reason: str) -> None:
        self._members.remove(member)
        with suppress(Exception):
            member.future.cancel()
        self.codes.append(FAILURE)
        self.report(f"{member.name}: {reason}")

    def exit_code(self) -> int:
        """Return the worst exit code of the hosts, in the order of `sqlstress run`."""
        return next((code for code in (BAD, FAILURE, UNSURE) if code in self.codes), FINE)

    def stop(self) -> list[str]:
        """Stop all hosts; return the names of those that did not answer."""
        until = time.monotonic() + STOP_S
        pending = [member for member in self._members if member.is_measuring]
        with suppress(Exception, KeyboardInterrupt):
            self._heartbeat.set(STOP, timeout=ANSWER_S)
            while pending and time.monotonic() < until:
                time.sleep(TICK_S)
                pending = [member for member in pending if not member.future.done()]
        return [member.name for member in pending]

    def close(self) -> None:
        """Remove the heartbeat and the tickets from the scheduler."""
        with suppress(Exception):
            self._heartbeat.delete()
            for ticket in self._tickets:
                ticket.close()


def measure_fleet(
    address: str, security: distributed.Security, request: FleetRequest, report: Callable[[str], None]
) -> tuple[int, int]:
    """Measure a plan on every host; return the exit code and the number of saved reports.

    Raises EnvironmentFailure without a report, and Interrupted if the fleet was stopped.
    """
    with connected(address, security) as client, StopSignals() as signals:
        is_new = not request.folder.exists()
        try:
            request.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentFailure(f"--folder {str(request.folder)!r:.200}: {error.strerror}.") from error
        rounds = Rounds(client, request, report)
        try:
            rounds.go(signals.check)
        except Interrupted as stop:
            silent = ", ".join(rounds.stop()[:5])
            kept = f"{plural(rounds.saved, 'report')} {verb(rounds.saved, 'is', 'are')} in {request.folder}"
            running = f"{silent} did not answer: what runs there ends by itself within {SILENT_S:.0f} s"
            raise Interrupted(
                f"{stop}; {kept if rounds.saved else 'no host had ended'}; "
                f"{running if silent else 'nothing runs on any host'}."
            ) from stop
        finally:
            rounds.close()
            if is_new and not rounds.saved:
                with suppress(OSError):
                    request.folder.rmdir()
    if not rounds.saved:
        nobody = f"no host joined the scheduler at {address} within {JOIN_S:.0f} s. Start dask workers."
        raise EnvironmentFailure("no host sent a report." if rounds.codes else nobody)
    return rounds.exit_code(), rounds.saved


def problem(error: Exception, is_present: bool) -> str:
    """Return the meaning of an error of a host's task."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("sqlstress"):
        if error.name == "sqlstress":
            return "sqlstress is not installed there: python -m pip install sqlstress"
        return f"its sqlstress is too old for a fleet: install version {__version__} there"
    return shortened(plainly(error), 200) if is_present else "it disappeared"


_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_MAX_NAME = 64


def file_name(host: str, others: Collection[str]) -> str:
    """Return a file name for a host that every system accepts and that differs from the others."""
    name = _OTHER.sub("_", host).strip("._")[:_MAX_NAME] or "host"
    name = f"_{name}" if _RESERVED.fullmatch(name) else name
    used = {other.lower() for other in others}
    numbered = (f"{name}-{number}" for number in range(2, len(used) + 3))
    return next(each for each in (name, *numbered) if each.lower() not in used)
