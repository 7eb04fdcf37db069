"""The connection to a scheduler: the few things that are asked of it, each with an end."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlstress.cluster.address import Cluster
from sqlstress.cluster.probe import probe
from sqlstress.errors import EnvironmentFailure

CONNECT_S = 10.0
ANSWER_S = 30.0


class SchedulerLost(EnvironmentFailure):
    """The scheduler does not answer any more."""


class Connection:
    """A client of Dask's. Functions go as text: no two versions of Python pickle code alike."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def workers(self) -> set[str]:
        """Return the addresses of the workers that are there. Raises SchedulerLost."""
        try:
            return set(self._client.nthreads(callback_timeout=ANSWER_S))
        except Exception as error:
            raise SchedulerLost("the scheduler does not answer any more") from error

    def submit(self, expression: str, worker: str, key: str) -> Any:
        """Have an expression evaluated by one worker and no other, once; return its future."""
        # The name of eval, and a text: a scheduler needs no sqlstress to hand it on.
        return self._client.submit(
            eval, expression, key=key, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    def result(self, future: Any) -> Any:
        """Return what a future that is done came to. Raises what it raised, or whatever kept it from us."""
        return future.result(timeout=ANSWER_S)

    def put_ticket(self, name: str, order: str) -> None:
        """Lay out a ticket that one task can take, once, and on it what is to be done."""
        from distributed import Queue

        Queue(name, client=self._client).put(order, timeout=ANSWER_S)

    def pulse(self, name: str, value: int) -> None:
        """Tell all tasks that we are here, or to stop. Raises SchedulerLost."""
        from distributed import Variable

        try:
            Variable(name, client=self._client).set(value, timeout=ANSWER_S)
        except Exception as error:
            raise SchedulerLost("the scheduler does not answer any more") from error

    def forget(self, pulse: str, tickets: list[str]) -> None:
        """Remove from the scheduler what we have laid out there."""
        from distributed import Queue, Variable

        with suppress(Exception):
            Variable(pulse, client=self._client).delete()
            for ticket in tickets:
                Queue(ticket, client=self._client).close()


@contextmanager
def connected(cluster: Cluster) -> Iterator[Connection]:
    """Yield a connection. Raises EnvironmentFailure where there is no scheduler of Dask's."""
    try:
        import distributed
    except ImportError as error:
        raise EnvironmentFailure("a fleet needs Dask: python -m pip install 'sqlstress[fleet]'.") from error
    # What it has to say is said here, in a line; it would be many, in the midst of ours.
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    probe(cluster)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = _client(distributed, cluster)
        try:
            yield Connection(client)
        finally:
            with suppress(Exception):
                client.close(timeout=CONNECT_S)


def _client(distributed: Any, cluster: Cluster) -> Any:
    security = None
    if cluster.ca:
        security = distributed.Security(
            tls_ca_file=str(cluster.ca),
            tls_client_cert=str(cluster.cert),
            tls_client_key=str(cluster.key),
            require_encryption=True,
        )
    try:
        return distributed.Client(
            cluster.address,
            security=security,
            timeout=CONNECT_S,
            set_as_default=False,
            name="sqlstress-fleet",
        )
    except Exception as error:  # of sockets, TLS, protocols, versions: it is no scheduler that we can talk to
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EnvironmentFailure(
            f"no scheduler of Dask's answers at {cluster.address} ({type(error).__name__}: {reason:.120}). "
            "Is it there, does it use TLS, and are the certificates of its authority?"
        ) from error
