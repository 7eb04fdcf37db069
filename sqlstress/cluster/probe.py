"""A first look at an address: whether what answers there speaks as Dask does.

Dask's client waits for ever for the greeting of a server that has none, such as a web server.
"""

from __future__ import annotations

import socket
import ssl
import struct
from urllib.parse import urlsplit

from sqlstress.cluster.address import Cluster
from sqlstress.errors import EnvironmentFailure

PROBE_S = 10.0
_LENGTH = struct.Struct("<Q")
_LONGEST = 1 << 20
"""Bytes of a greeting: a few hundred, in fact."""


def probe(cluster: Cluster) -> None:
    """Connect, and wait for a greeting. Raises EnvironmentFailure when none of Dask's comes."""
    try:
        greeting = _greeting(cluster)
    except (OSError, ValueError) as error:  # TLS's errors are OSErrors, too
        reason = "no answer" if isinstance(error, TimeoutError) else " ".join(str(error).split())
        raise EnvironmentFailure(
            f"no scheduler of Dask's answers at {cluster.address} ({reason:.120}). Is it there, does it use "
            "TLS, and are the certificates of its authority?"
        ) from error
    if len(greeting) < _LENGTH.size or _LENGTH.unpack(greeting)[0] > _LONGEST:
        raise EnvironmentFailure(
            f"what answers at {cluster.address} is no scheduler of Dask's: look at its log for its address."
        )


def _greeting(cluster: Cluster) -> bytes:
    """Return the first bytes of what a server says by itself: the length of its greeting."""
    place = urlsplit(cluster.address)
    with socket.create_connection((place.hostname or "", place.port or 0), PROBE_S) as plain:
        if cluster.ca is None:
            return _first(plain)
        context = ssl.create_default_context(cafile=str(cluster.ca))
        # The hosts of a cluster are known by their authority, as to Dask itself: not by their names.
        context.check_hostname = False
        context.load_cert_chain(str(cluster.cert), str(cluster.key))
        with context.wrap_socket(plain) as encrypted:
            return _first(encrypted)


def _first(connection: socket.socket) -> bytes:
    found = b""
    while len(found) < _LENGTH.size and (piece := connection.recv(_LENGTH.size - len(found))):
        found += piece
    return found
