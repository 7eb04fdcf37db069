"""Where a cluster's scheduler is, and how we prove who we are to it: TLS, or this machine only.

Whoever reaches a scheduler runs code on all its hosts, and reads what they send.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from sqlstress.errors import UsageError

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
            raise UsageError(f"--scheduler {address!r:.100}: write tls://HOST:PORT, or tcp://127.0.0.1:PORT.")
        files = {"--tls-ca": ca, "--tls-cert": cert, "--tls-key": key}
        if found[1] == "tls":
            _check_files(files)
            return cls(address, ca, cert, key)
        if given := [name for name, file in files.items() if file]:
            raise UsageError(f"{given[0]} is for tls://, and {address} is not encrypted.")
        if not _is_loopback(found[2].strip("[]")):
            raise UsageError(
                f"--scheduler {address}: without TLS anybody on the way can run code on all hosts. Use "
                "tls:// with --tls-ca, --tls-cert and --tls-key; tcp:// is for this machine (127.0.0.1)."
            )
        return cls(address)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _check_files(files: dict[str, Path | None]) -> None:
    for name, file in files.items():
        if file is None:
            raise UsageError(f"tls:// needs --tls-ca, --tls-cert and --tls-key: {name} is missing.")
        try:
            text = file.read_bytes()[: 1 << 20]
        except OSError as error:
            raise UsageError(f"{name} {str(file)!r:.200}: {error.strerror}.") from error
        if b"-----BEGIN " not in text:
            raise UsageError(f"{name} {str(file)!r:.200} is no PEM file: it has no BEGIN line.")
