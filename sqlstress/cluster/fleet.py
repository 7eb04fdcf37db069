"""The client's part of a fleet run: every machine of a Dask cluster measures a plan.

A program that reaches a Dask scheduler can run code on all its hosts. So TLS is required, except for a
scheduler on this machine.
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
from pathlib import Path
from secrets import token_hex
from typing import Any

import distributed
from distributed.comm import connect

from sqlstress.cluster.job import GRACE_S, POLL_S, SILENT_S, STOP
from sqlstress.errors import EnvironmentFailure, Interrupted, UsageError, plainly
from sqlstress.plan import MAX_BYTES, from_toml
from sqlstress.report import write_atomically
from sqlstress.show.blocks import shortened
from sqlstress.show.endings import BAD, FAILURE, FINE, UNSURE
from sqlstress.statistics.units import plural
from sqlstress.system.files import read_text
from sqlstress.system.interrupt import StopSignals

_ADDRESS = re.compile(r"tls://[^/?#@\s]+:[0-9]+|tcp://(127\.0\.0\.1|localhost|\[::1\]):[0-9]+")
TICK_S = 0.5
CONNECT_S = 10.0
ANSWER_S = 30.0
"""Maximum wait for an answer of the scheduler, and for the first worker, in seconds."""
STOP_S = GRACE_S + 3 * POLL_S
"""Maximum wait for a host to stop, in seconds."""


def security_of(address: str) -> distributed.Security:
    """Return Dask's security settings. Raises UsageError for a malformed or unprotected address."""
    if not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"--scheduler {address!r:.100}: write tls://HOST:PORT, or tcp://127.0.0.1:PORT on this machine. "
            "Without TLS, anyone on the network can run code on all hosts."
        )
    return distributed.Security(require_encryption=address.startswith("tls://"))


@contextmanager
def connected(address: str) -> Iterator[distributed.Client]:
    """Yield a connected client of Dask.

    Raises the error of `security_of`, and EnvironmentFailure if the scheduler does not answer.
    """
    security = security_of(address)
    logging.disable()  # Dask prints many lines for an error that we report in one line.
    try:
        with warnings.catch_warnings(action="ignore"), _client(address, security) as client:
            yield client
    finally:
        logging.disable(logging.NOTSET)


def _client(address: str, security: distributed.Security) -> distributed.Client:
    try:
        asyncio.run(asyncio.wait_for(_probe(address, security), CONNECT_S))
        return distributed.Client(address, security=security, timeout=CONNECT_S)
    except Exception as error:  # errors of sockets, TLS, protocols, versions
        reason = shortened(" ".join(f"{type(error).__name__}: {error}".split()), 120)
        raise EnvironmentFailure(
            f"no Dask scheduler responds at {address} ({reason}). Check the address, and for tls:// the "
            "certificates in Dask's configuration (distributed.comm.tls)."
        ) from error


async def _probe(address: str, security: distributed.Security) -> None:
    """Test a connection: Dask's client waits without a limit for a server that sends nothing."""
    comm = await connect(address, timeout=CONNECT_S, **security.get_connection_args("client"))
    comm.abort()


def order_of(plan: Path, directory: str) -> dict[str, str]:
    """Return each host's instructions: the plan's text with a seed, and a folder. Raises UsageError."""
    cases = from_toml(plan)
    text = read_text(plan, MAX_BYTES)
    if "seed" not in tomllib.loads(text):
        text = f"seed = {cases[0].seed}\n{text}"
    return {"plan": text, "directory": directory}


class Fleet:
    """One run of a plan on the hosts of a Dask cluster. Reports go to `folder`, and lines to `report`."""

    def __init__(self, client: Any, folder: Path, report: Callable[[str], None]) -> None:
        self.client, self.folder, self.report = client, folder, report
        self.name = f"sqlstress-{token_hex(8)}"
        self.codes: list[int] = []
        """Exit codes of the hosts; FAILURE for a host without a result."""
        self.saved = 0
        self.pending: dict[str, tuple[str, Any]] = {}
        """Name of each host that is still measuring, and Dask's future of its result, by worker address."""
        self._heartbeat = distributed.Variable(self.name, client=client)
        self._order = distributed.Variable(f"{self.name}-order", client=client)

    def start(self, workers: dict[str, Any], order: dict[str, str]) -> None:
        """Start a measurement on each machine.

        `workers` has the result of `job.identity`, or its exception, by address of the Dask worker. Tasks
        read `order` from the scheduler: Dask logs arguments, and a plan may contain a password.
        """
        self._order.set(json.dumps(order), timeout=ANSWER_S)
        call = call_of_job(f"measure({self.name!r})")
        names: dict[str, str] = {}
        for address, answer in sorted(workers.items()):
            if isinstance(answer, Exception):
                self.lose(address, shortened(plainly(answer), 200))
                continue
            host, machine = answer
            if machine in names:
                self.report(f"{address} is on the same machine as {names[machine]}: measured once")
                continue
            name = names[machine] = file_name(host, names.values())
            future = self.client.submit(eval, call, key=f"{self.name}-{name}", workers=[address], retries=0)
            self.pending[address] = name, future

    def wait(self, check: Callable[[], None]) -> None:
        """Save the reports until every host has ended. `check` may raise Interrupted."""
        while self.pending:
            check()
            self._heartbeat.set(time.time_ns(), timeout=ANSWER_S)
            present = self.client.nthreads(callback_timeout=ANSWER_S)
            for address, (name, future) in list(self.pending.items()):
                if future.done():
                    self._save(name, future)
                elif address not in present:
                    self.lose(name, "it disappeared while it was measuring")
                else:
                    continue
                del self.pending[address]
            time.sleep(TICK_S)

    def _save(self, name: str, future: Any) -> None:
        file = self.folder / f"{name}.json"
        try:
            code, complaint, report = future.result(timeout=ANSWER_S)
            write_atomically(file, report.decode("utf-8"))
        except Exception as error:  # The host's code, the connection or the local disk can raise any error.
            self.lose(name, shortened(plainly(error), 200))
            return
        self.saved += 1
        self.codes.append(code if code in (FINE, BAD, UNSURE) else FAILURE)
        self.report(f"{name}: saved in {file}" + (f"; exit code {code}: {complaint}" if code else ""))

    def lose(self, name: str, reason: str) -> None:
        """Print the `reason` why a host sends no result, and count the host as failed."""
        self.codes.append(FAILURE)
        self.report(f"{name}: {reason}")

    def exit_code(self) -> int:
        """Return the worst exit code of the hosts, in the order of severity of `sqlstress run`."""
        return next((code for code in (BAD, FAILURE, UNSURE) if code in self.codes), FINE)

    def stop(self) -> list[str]:
        """Stop all hosts; return the names of the hosts that did not answer."""
        with suppress(Exception, KeyboardInterrupt):
            self._heartbeat.set(STOP, timeout=ANSWER_S)
            distributed.wait([future for _, future in self.pending.values()], timeout=STOP_S)
        return [name for name, future in self.pending.values() if not future.done()]

    def close(self) -> None:
        """Remove the hosts' instructions and the heartbeat (defined in `job`) from the scheduler."""
        with suppress(Exception):
            self._order.delete()
            self._heartbeat.delete()


def measure_fleet(
    client: Any, order: dict[str, str], folder: Path, report: Callable[[str], None]
) -> tuple[int, int]:
    """Measure a plan on every host; return the worst exit code and the number of saved reports.

    Raises EnvironmentFailure if no host sent a report, and Interrupted if the fleet was stopped.
    """
    try:
        client.wait_for_workers(1, timeout=ANSWER_S)
        workers = client.run(eval, call_of_job("identity()"), on_error="return")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # Errors of the connection or the folder; TimeoutError if there is no worker.
        raise EnvironmentFailure(f"the fleet cannot start ({plainly(error)}).") from error
    fleet = Fleet(client, folder, report)
    with StopSignals() as signals:
        try:
            fleet.start(workers, order)
            fleet.wait(signals.check)
        except Interrupted as stop:
            silent = shortened(", ".join(fleet.stop()), 100)
            left = f"{silent} did not answer and stops within {SILENT_S:.0f} s" if silent else "nothing runs"
            raise Interrupted(f"{stop}; {plural(fleet.saved, 'report')} saved; {left}.") from stop
        except Exception as error:  # Without a scheduler, Dask raises errors of many kinds.
            for name, _ in fleet.pending.values():
                fleet.lose(name, f"the scheduler no longer responds ({shortened(plainly(error), 120)})")
        finally:
            fleet.close()
    if not fleet.saved:
        raise EnvironmentFailure("no host sent a report.")
    return fleet.exit_code(), fleet.saved


def call_of_job(call: str) -> str:
    """Return Python source that imports `job` and makes `call`, such as "identity()".

    Dask would pickle a function, and pickled code works with only one version of Python.
    """
    return f"__import__('sqlstress.cluster.job', fromlist=['job']).{call}"


def file_name(host: str, others: Collection[str]) -> str:
    """Return a valid file name for a host, which differs from `others` even if case is ignored."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", host).strip("._")[:64] or "host"
    used = {other.lower() for other in others}
    numbered = (f"{name}-{number}" for number in range(2, len(used) + 3))
    return next(candidate for candidate in (name, *numbered) if candidate.lower() not in used)
