"""Connection strings (DSN) of PostgreSQL servers. Their passwords are never shown or saved.

Only code that connects to the server reads the complete string; other code gets user@host:port/database.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

NAME = "dsn"
"""Name of the option whose value is a connection string."""
HIDDEN = "..."
"""Text in place of a part that may be secret."""
PACKAGE = "'.[postgres]'"
EXTRA = f"python -m pip install {PACKAGE}"
"""Command that installs the packages for PostgreSQL."""

_URL = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_PLAIN = re.compile(r"[\w.+$-]{1,63}")
"""Pattern of user and database names that are shown. Other text may be part of an unquoted password."""
_HOST = re.compile(r"[\w.:%-]{1,255}|[@/][\w./@+ -]{0,200}")
_PORT = re.compile(r"\d{1,5}")


class Dsn(str):
    """Connection string. As a str, it has only the parts that may be shown."""

    whole: str
    """Complete connection string, perhaps with a password."""
    is_local: bool
    """Whether all hosts in the connection string are this machine."""

    def __new__(cls, shown: str, whole: str, is_local: bool) -> Dsn:
        instance = super().__new__(cls, shown)
        instance.whole, instance.is_local = whole, is_local
        return instance

    def __reduce__(self) -> tuple[Any, ...]:
        return Dsn, (str(self), self.whole, self.is_local)


def dsn(value: Any) -> Dsn:
    """Parse a connection string. Raises ValueError, whose message never quotes the string."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("this is not a connection string: write postgresql://user@host/database")
    parts = {**_defaults(), **_parse(value)}
    host_and_port = parts.get("hostaddr") or parts.get("host"), parts.get("port")
    hosts, ports = (part.split(",") if part else [] for part in host_and_port)
    are_valid = [not host or _HOST.fullmatch(host) for host in hosts]
    are_valid += [not port or _PORT.fullmatch(port) for port in ports]
    if not all(are_valid):
        raise _error_without_quote()
    user, database = (_shown_name(parts.get(name)) for name in ("user", "dbname"))
    user_part = f"{user}@" if user else ""
    host_part = ",".join(hosts) or "localhost"
    port = f":{','.join(filter(None, ports))}" if any(ports) else ""
    is_local = not parts.get("service") and all(map(_is_local, hosts))
    return Dsn(f"{user_part}{host_part}{port}/{database or user}", value, is_local)


def redact(value: str) -> str:
    """Return the parts of a connection string that may be shown; HIDDEN for any other text."""
    try:
        return str(dsn(value))
    except ValueError:
        return HIDDEN


def redact_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command line. Connection strings in them are redacted."""
    shown: list[str] = []
    for previous, word in pairwise(("", *words)):
        name, is_given, value = word.partition("=")
        if previous == f"--{NAME}":
            shown.append(redact(word))
        elif is_given and name in (NAME, f"--{NAME}"):
            shown.append(f"{name}={redact(value)}")
        elif f"--{NAME}" in (word if " " in word else value):
            shown.append(_redact_nested(word))
        else:
            shown.append(word)
    return tuple(shown)


def _redact_nested(word: str) -> str:
    """Return a word such as "--a=--dsn ..." with its connection strings redacted."""
    name, is_given, value = word.partition("=")
    if not is_given or " " in name:
        name, is_given, value = "", "", word
    try:
        return f"{name}{is_given}{shlex.join(redact_words(shlex.split(value)))}"
    except ValueError:
        return HIDDEN


def _parse(text: str) -> dict[str, str]:
    """Return the parts of a connection string, by keyword of libpq. Raises ValueError if invalid."""
    if _URL.match(text):
        # For libpq, the first @ ends the password, and the first / ends the host. So an @ or a / before the
        # last @ belongs to the password, and libpq would use a part of the password as host.
        before_host, _, _ = text.partition("://")[2].rpartition("@")
        if "@" in before_host or "/" in before_host:
            raise _error_without_quote()
    try:
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise ValueError(f"psycopg is not installed ({error}): {EXTRA}") from error
    try:
        return {name: str(part) for name, part in conninfo_to_dict(text).items()}
    except Exception:
        # The message of psycopg would quote the connection string.
        raise _error_without_quote() from None


def _error_without_quote() -> ValueError:
    return ValueError(
        "this is not a connection string: write postgresql://user@host:port/database. Write %40 for an @ "
        "in a name or password, or set PGPASSWORD"
    )


def _defaults() -> dict[str, str]:
    """Return libpq's defaults from environment variables, by keyword; empty without psycopg."""
    try:
        from psycopg.pq import Conninfo
    except ImportError:
        return {}
    shown = (b"host", b"hostaddr", b"port", b"user", b"dbname")
    values = {default.keyword: default.val for default in Conninfo.get_defaults() if default.keyword in shown}
    return {name.decode(): value.decode(errors="replace") for name, value in values.items() if value}


def _shown_name(value: str | None) -> str:
    """Return a user or database name, HIDDEN if it may be part of a password, or "" for None."""
    return "" if not value else value if _PLAIN.fullmatch(value) else HIDDEN


def _is_local(host: str) -> bool:
    # An empty host, or a path, is a socket of this machine.
    if not host or host[0] in "/@" or host.lower() == "localhost":
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
