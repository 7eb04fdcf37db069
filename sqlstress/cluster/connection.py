"""The connection to a scheduler: the few things that are asked of it, each with an end."""

from __future__ import annotations

import json
import logging
import re
import socket
import ssl
import struct
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlstress.errors import EnvironmentFailure, UsageError

# Where a cluster's scheduler is, and how we prove who we are to it: TLS, or this machine only.
#
# Whoever reaches a scheduler runs code on all its hosts, and reads what they send.


_ADDRESS = re.compile(r"(tls|tcp)://(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253}):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A scheduler, and the certificates for it."""

    address: str
    """tls://host:port, or tcp://loopback:port."""
    ca: Path | None = None
    """The authority that signed the cluster's certificates, a PEM file; None without TLS."""
    cert: Path | None = None
    """Our own certificate, a PEM file."""
    key: Path | None = None
    """Its key, a PEM file."""

    @classmethod
    def of(cls, address: str, ca: Path | None, cert: Path | None, key: Path | None) -> Cluster:
        """Return the cluster that options name. Raises UsageError for one that anybody could listen to."""
        found = _ADDRESS.fullmatch(address)
        if not found or not 0 < int(found[3]) < 65536:
            raise UsageError(
                f"--scheduler {address!r:.100} is not an address. Write tls://HOST:PORT, or tcp://127.0.0.1:PORT."
            )
        files = {"--tls-ca": ca, "--tls-cert": cert, "--tls-key": key}
        if found[1] == "tls":
            for name, file in files.items():
                if file is None:
                    raise UsageError(f"tls:// needs --tls-ca, --tls-cert and --tls-key: {name} is missing.")
                try:
                    text = file.read_bytes()[: 1 << 20]
                except OSError as error:
                    raise UsageError(f"{name} {str(file)!r:.200}: {error.strerror}.") from error
                if b"-----BEGIN " not in text:
                    raise UsageError(f"{name} {str(file)!r:.200} is not a PEM file: it has no BEGIN line.")
            return cls(address, ca, cert, key)
        if given := [name for name, file in files.items() if file]:
            raise UsageError(f"{given[0]} needs tls://, but {address} is not encrypted.")
        host = found[2].strip("[]")
        is_loopback = host == "localhost"
        with suppress(ValueError):  # a name
            is_loopback = is_loopback or ip_address(host).is_loopback
        if not is_loopback:
            raise UsageError(
                f"--scheduler {address}: without TLS, anyone on the network can run code on all hosts. "
                "Use tls:// with --tls-ca, --tls-cert and --tls-key. tcp:// is for this machine only "
                "(127.0.0.1)."
            )
        return cls(address)


# A first look at an address: whether what answers there speaks as Dask does.
#
# Dask's client waits for ever for the greeting of a server that has none, such as a web server.


PROBE_S = 10.0
_LENGTH = struct.Struct("<Q")
_LONGEST_ANSWER = 1 << 20
"""Bytes of a greeting: a few hundred, in fact."""


def probe(cluster: Cluster) -> None:
    """Connect, and wait for a greeting. Raises EnvironmentFailure when none of Dask's comes."""
    place = urlsplit(cluster.address)
    try:
        with socket.create_connection((place.hostname or "", place.port or 0), PROBE_S) as plain:
            if cluster.ca is None:
                greeting = _greeting(plain)
            else:
                context = ssl.create_default_context(cafile=str(cluster.ca))
                # The hosts of a cluster are known by their authority, as to Dask itself: not by their names.
                context.check_hostname = False
                context.load_cert_chain(str(cluster.cert), str(cluster.key))
                with context.wrap_socket(plain) as encrypted:
                    greeting = _greeting(encrypted)
    except (OSError, ValueError) as error:  # TLS's errors are OSErrors, too
        reason = "no answer" if isinstance(error, TimeoutError) else " ".join(str(error).split())
        raise EnvironmentFailure(_no_scheduler(cluster, reason)) from error
    if len(greeting) < _LENGTH.size or _LENGTH.unpack(greeting)[0] > _LONGEST_ANSWER:
        raise EnvironmentFailure(
            f"{cluster.address} is not a Dask scheduler. Look up the address in the log of the scheduler."
        )


def _greeting(connection: socket.socket) -> bytes:
    """Return the first bytes of what a server says by itself: the length of its greeting."""
    found = b""
    while len(found) < _LENGTH.size and (piece := connection.recv(_LENGTH.size - len(found))):
        found += piece
    return found


def _no_scheduler(cluster: Cluster, reason: str, kind: str = "") -> str:
    return (
        f"no Dask scheduler responds at {cluster.address} ({kind}{reason:.120}). Check the address, TLS, and "
        "that its authority signed the certificates."
    )


CONNECT_S = 10.0
ANSWER_S = 30.0


class SchedulerLost(EnvironmentFailure):
    """The scheduler does not answer any more."""


@contextmanager
def _lost_where_silent() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise SchedulerLost("the scheduler no longer responds") from error


class Connection:
    """A client of Dask's. Functions go as text: no two versions of Python pickle code alike."""

    def __init__(self, client: Any, dask: Any) -> None:
        self._client, self._dask = client, dask

    def workers(self) -> set[str]:
        """Return the addresses of the workers that are there. Raises SchedulerLost."""
        with _lost_where_silent():
            return set(self._client.nthreads(callback_timeout=ANSWER_S))

    def submit(self, expression: str, worker: str, key: str) -> Any:
        """Have an expression evaluated by one worker and no other, once; return its future."""
        # The name of eval, and a text: a scheduler needs no sqlstress to hand it on.
        return self._client.submit(
            eval, expression, key=key, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    def put_ticket(self, name: str, order: str) -> None:
        """Lay out a ticket that one task can take, once, and on it what is to be done."""
        self._dask.Queue(name, client=self._client).put(order, timeout=ANSWER_S)

    def pulse(self, name: str, value: int) -> None:
        """Tell all tasks that we are here, or to stop. Raises SchedulerLost."""
        with _lost_where_silent():
            self._dask.Variable(name, client=self._client).set(value, timeout=ANSWER_S)

    def forget(self, pulse: str, tickets: list[str]) -> None:
        """Remove from the scheduler what we have laid out there."""
        with suppress(Exception):
            self._dask.Variable(pulse, client=self._client).delete()
            for ticket in tickets:
                self._dask.Queue(ticket, client=self._client).close()


@contextmanager
def connected(cluster: Cluster) -> Iterator[Connection]:
    """Yield a connection. Raises EnvironmentFailure where there is no scheduler of Dask's."""
    try:
        import distributed
    except ImportError as error:
        remedy = "Install it: python -m pip install '.[fleet]'"
        raise EnvironmentFailure(f"a fleet needs Dask. {remedy}") from error
    # What it has to say is said here, in a line; it would be many, in the midst of ours.
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    probe(cluster)
    security = None
    if cluster.ca:
        security = distributed.Security(
            tls_ca_file=str(cluster.ca),
            tls_client_cert=str(cluster.cert),
            tls_client_key=str(cluster.key),
            require_encryption=True,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            client = distributed.Client(
                cluster.address,
                security=security,
                timeout=CONNECT_S,
                set_as_default=False,
                name="sqlstress-fleet",
            )
        except Exception as error:  # of sockets, TLS, protocols, versions: none that we can talk to
            reason = " ".join(str(error).split()) or type(error).__name__
            raise EnvironmentFailure(_no_scheduler(cluster, reason, f"{type(error).__name__}: ")) from error
        try:
            yield Connection(client, distributed)
        finally:
            with suppress(Exception):
                client.close(timeout=CONNECT_S)


# A worker of the cluster, and how far we have come with it.


@dataclass(slots=True)
class Member:
    """One worker: first it is asked which machine it is on, then it measures, if nobody does there."""

    address: str
    future: Any
    """What it is doing for us."""
    since: float
    """When that was asked for."""
    name: str
    """What it is called: its address until it has told its host's name."""
    measuring: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """What a worker tells of itself."""

    host: str
    machine: str
    sqlstress: str
    python: str

    @classmethod
    def of(cls, text: object) -> Identity:
        """Read an answer. Raises ValueError for anything else."""
        plain = json.loads(text) if isinstance(text, str) and len(text) < 10_000 else None
        if not isinstance(plain, dict):
            raise ValueError("the host name is missing")
        told = [plain.get(name) for name in ("host", "machine", "sqlstress", "python")]
        host, machine, sqlstress, python = (str(value)[:200] for value in told)
        return cls(host, machine, sqlstress, python)


# Names of hosts as names of files: whatever a host calls itself, its report stays in the folder.


_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_LONGEST_NAME = 64


def file_name(host: str, taken: Collection[str]) -> str:
    """Return a name that every system takes for a file, and that no host has yet, whatever its case."""
    name = _OTHER.sub("_", host).strip("._")[:_LONGEST_NAME] or "host"
    if _RESERVED.fullmatch(name):
        name = f"_{name}"
    used = {other.lower() for other in taken}
    if name.lower() not in used:
        return name
    return next(
        numbered for number in range(2, len(used) + 3) if (numbered := f"{name}-{number}").lower() not in used
    )
