"""Where a server is, as PostgreSQL's connection strings say it; a password in one is never shown.

Such a text is shown, compared and saved as user@host:port/database. Only who connects asks for the whole.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

NAME = "dsn"
"""The option that has one."""
UNSHOWN = "..."
PACKAGE = "'.[postgres]'"
EXTRA = f"python -m pip install {PACKAGE}"

_URL = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_PLAIN = re.compile(r"[\w.+$-]{1,63}")
"""A name that can be nothing else: what looks otherwise may be a part of a password that was not quoted."""
_HOST = re.compile(r"[\w.:%-]{1,255}|[@/][\w./@+ -]{0,200}")
_PORT = re.compile(r"\d{1,5}")


class Dsn(str):
    """A connection string: the text itself is what may be shown of it."""

    whole: str
    """All of it."""
    is_local: bool
    """Whether every host that it names is this machine."""

    def __new__(cls, shown: str, whole: str, is_local: bool) -> Dsn:
        made = super().__new__(cls, shown)
        made.whole, made.is_local = whole, is_local
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Dsn, (str(self), self.whole, self.is_local)


def dsn(value: Any) -> Dsn:
    """Read a connection string: a URL or keywords. Raises ValueError, without what was given."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("this is not a connection string: write postgresql://user@host/database")
    parts = {**_defaults(), **_parsed(value)}
    given = parts.get("hostaddr") or parts.get("host"), parts.get("port")
    hosts, ports = (part.split(",") if part else [] for part in given)
    sound = [not host or _HOST.fullmatch(host) for host in hosts]
    sound += [not port or _PORT.fullmatch(port) for port in ports]
    if not all(sound):
        raise _unquoted()
    user, database = (_name(parts.get(name)) for name in ("user", "dbname"))
    at = f"{user}@" if user else ""
    where = ",".join(hosts) or "localhost"
    port = f":{','.join(filter(None, ports))}" if any(ports) else ""
    is_local = not parts.get("service") and all(map(_is_local, hosts))
    return Dsn(f"{at}{where}{port}/{database or user}", value, is_local)


def shown_of(value: str) -> str:
    """Return what may be shown of what was given as a connection string, whatever it is."""
    try:
        return str(dsn(value))
    except ValueError:
        return UNSHOWN


def redacted(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command without what may not be shown, also where a word is a command's half."""
    shown: list[str] = []
    for before, word in pairwise(("", *words)):
        name, is_given, value = word.partition("=")
        if before == f"--{NAME}":
            shown.append(shown_of(word))
        elif is_given and name in (NAME, f"--{NAME}"):
            shown.append(f"{name}={shown_of(value)}")
        elif f"--{NAME}" in (word if " " in word else value):
            shown.append(_half(word))
        else:
            shown.append(word)
    return tuple(shown)


def _half(word: str) -> str:
    """Return a word that has several in it, as `ab` takes them."""
    name, is_given, value = word.partition("=")
    if not is_given or " " in name:
        name, is_given, value = "", "", word
    try:
        return f"{name}{is_given}{shlex.join(redacted(shlex.split(value)))}"
    except ValueError:
        return UNSHOWN


def _parsed(text: str) -> dict[str, str]:
    """Return the parts of a connection string, as libpq understands it."""
    if _URL.match(text):
        # libpq ends the password at the first @, and what is before it at the first /.
        before, _, _ = text.partition("://")[2].rpartition("@")
        if "@" in before or "/" in before:
            raise _unquoted()
    try:
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        raise ValueError(f"psycopg is not installed ({error}): {EXTRA}") from error
    try:
        return {name: str(part) for name, part in conninfo_to_dict(text).items()}
    except Exception:
        # Its own words repeat what was given.
        raise _unquoted() from None


def _unquoted() -> ValueError:
    return ValueError(
        "this is not a connection string: write postgresql://user@host:port/database. Write %40 for an @ "
        "in a name or password, or set PGPASSWORD"
    )


def _defaults() -> dict[str, str]:
    """Return what libpq takes from the environment, as far as it is shown."""
    try:
        from psycopg.pq import Conninfo
    except ImportError:
        return {}
    shown = (b"host", b"hostaddr", b"port", b"user", b"dbname")
    found = {one.keyword: one.val for one in Conninfo.get_defaults() if one.keyword in shown}
    return {name.decode(): value.decode(errors="replace") for name, value in found.items() if value}


def _name(value: str | None) -> str:
    return "" if not value else value if _PLAIN.fullmatch(value) else UNSHOWN


def _is_local(host: str) -> bool:
    if not host or host[0] in "/@" or host.lower() == "localhost":
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
