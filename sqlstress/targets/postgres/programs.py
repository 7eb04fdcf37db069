"""How programs of the user's find our schema: by a URL, and by the variables that libpq looks for.

Nothing secret stands in the URL, which is a word of commands and may stand in messages: a password is in the
environment only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from psycopg.pq import Conninfo

from sqlstress.targets.directions import Directions
from sqlstress.targets.postgres.client import connected

if TYPE_CHECKING:
    from sqlstress.targets.postgres.schema import Connection

SERVICE = "PGSERVICE"
SECRET = frozenset({"password", "sslpassword", "oauth_client_secret"})
_PLACE = ("host", "hostaddr", "port", "user", "dbname")
"""What is said in any case; of the other keywords what is not as libpq has it."""
COUNTED_AT_ONCE = 150_000
"""From this version on what a session did is counted when it has ended, and not a while later."""
_WRITTEN = (
    "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_all_tables "
    "WHERE schemaname = %s"
)


def resolved(dsn: str) -> dict[str, str]:
    """Return what a connection string comes to, with what the environment and a service add, by keyword.

    It connects, as only libpq knows all of that. Raises EnvironmentFailure.
    """
    connection = connected(dsn, "the server can't be used")
    try:
        found = {one.keyword.decode(): (one.val, one.compiled) for one in connection.info}
    finally:
        connection.finish()
    return {
        name: value.decode()
        for name, (value, usual) in found.items()
        if value and name != "service" and (name in _PLACE or value != usual)
    }


def directions(parts: Mapping[str, str], schema: str, isolation: str | None) -> Directions:
    """Return how a program gets to a server, into a schema, whatever of libpq it uses: by keyword, resolved.

    Its transactions begin with the level of isolation, unless it asks for another one.
    """
    own = [parts.get("options", ""), f"-c search_path={schema},pg_catalog"]
    if isolation:
        level = isolation.replace("-", r"\ ")  # a space within a value
        own.append(f"-c default_transaction_isolation={level}")
    whole = {**parts, "options": " ".join(filter(None, own)), "application_name": schema}
    # No other variable of libpq's may lead elsewhere: a service goes before what the others say.
    variables = dict.fromkeys((SERVICE, *_VARIABLES.values()))
    variables |= {_VARIABLES[name]: value for name, value in whole.items() if name in _VARIABLES}
    shown = {name: value for name, value in whole.items() if name not in SECRET}
    return Directions(_url(shown), variables, parts.get("password", ""))


def rows_written(connection: Connection, schema: str) -> int | None:
    """Return how many rows of a schema's tables were ever written, as the server counts them."""
    if connection.info.server_version < COUNTED_AT_ONCE:
        return None
    row = connection.execute(_WRITTEN, (schema,)).fetchone()
    return row[0] if row else None


def _url(parts: Mapping[str, str]) -> str:
    """Write a URL; a host that can't stand in its usual place, as a socket's folder, stands behind it."""
    rest = dict(parts)
    user, database = (quote(rest.pop(name, ""), safe="") for name in ("user", "dbname"))
    where = ""
    if not set(rest.get("host", "/")) & set("/@,:"):
        port = rest.pop("port", "")
        where = rest.pop("host") + (f":{port}" if port else "")
    at = f"{user}@" if user else ""
    return f"postgresql://{at}{where}/{database}?{urlencode(rest, quote_via=quote, safe='')}"


_VARIABLES = {
    one.keyword.decode(): one.envvar.decode() for one in Conninfo.get_defaults() if one.keyword and one.envvar
}
"""Of libpq: keyword → variable of the environment."""
