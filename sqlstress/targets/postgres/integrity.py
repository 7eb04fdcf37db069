"""Whether the tables are sound, as the server sees them, and defined as they were; and where not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import psycopg
from psycopg.sql import SQL, Identifier

from sqlstress.report import Check, Space
from sqlstress.report.problems import Tally
from sqlstress.system.pulse import Pulse
from sqlstress.targets.place import Definition
from sqlstress.targets.postgres.errors import one_line
from sqlstress.targets.postgres.keyvalue import table_name
from sqlstress.targets.postgres.sessions import Connection

if TYPE_CHECKING:
    from sqlstress.targets.postgres.place import PostgresPlace

_AMCHECK = (
    "SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
    "WHERE extname = 'amcheck'"
)
_CHECKS = {"quick": SQL("SELECT {}({})"), "full": SQL("SELECT {}({}, true)")}
_SIZE = "SELECT pg_total_relation_size(%s::regclass)"
_INDEXES = (
    "SELECT c.relname, c.oid FROM pg_class c JOIN pg_am ON pg_am.oid = relam "
    "WHERE relnamespace = to_regnamespace(%s) AND relkind = 'i' AND amname = 'btree' ORDER BY 1"
)
_DEFINITIONS = """
SELECT 'column', c.relname, format('%%s %%s%%s', attname, format_type(atttypid, atttypmod),
       CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END)
FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
WHERE c.relnamespace = to_regnamespace(%(schema)s) AND c.relkind = 'r' AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'index', c.relname, pg_get_indexdef(indexrelid)
FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE c.relnamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'constraint', c.relname, pg_get_constraintdef(o.oid)
FROM pg_constraint o JOIN pg_class c ON c.oid = conrelid
WHERE c.relnamespace = to_regnamespace(%(schema)s) AND contype <> 'n'
UNION ALL
SELECT 'trigger', c.relname, pg_get_triggerdef(t.oid)
FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
WHERE c.relnamespace = to_regnamespace(%(schema)s) AND NOT tgisinternal
UNION ALL
SELECT 'rule', c.relname, pg_get_ruledef(r.oid)
FROM pg_rewrite r JOIN pg_class c ON c.oid = ev_class WHERE c.relnamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'relation', relname, relkind::text || relpersistence::text
FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'function', proname, pg_get_function_arguments(oid)
FROM pg_proc WHERE pronamespace = to_regnamespace(%(schema)s)
ORDER BY 1, 2, 3
"""


def integrity_check(place: PostgresPlace, level: str, pulse: Pulse) -> Check:
    """Run amcheck over the schema's B-trees, also against every row at the level "full".

    Where the server has not got that extension this says so: it is not ours to put it there.
    """
    tally = Tally("bt_index_check")
    with place.read(pulse) as connection:
        row = connection.execute(_AMCHECK).fetchone()
        if row is None:
            return Check(tally.name, "skipped", note="the server has no amcheck (CREATE EXTENSION amcheck)")
        function = Identifier(row[0], tally.name)
        for name, number in connection.execute(_INDEXES, (place.name,)).fetchall():
            pulse()
            tally.checked += 1
            for complaint in _complaints(connection, level, function, number):
                tally.problem(f"{name}: {complaint}")
    return tally.check()


def _complaints(connection: Connection, level: str, function: Identifier, index: int) -> Sequence[str]:
    try:
        connection.execute(_CHECKS[level].format(function, index))
    except psycopg.errors.InsufficientPrivilege:
        raise
    except psycopg.Error as error:
        return (one_line(str(error)),)
    return ()


def table_size(place: PostgresPlace, pulse: Pulse) -> Space:
    """Return what the first bucket's table takes, with its index; its pages are not looked at."""
    with place.read(pulse) as connection:
        row = connection.execute(_SIZE, (f"{place.name}.{table_name(0)}",)).fetchone()
    assert row
    return Space(int(row[0]), None, None, None, ())


def definitions(connection: Connection, schema: str) -> list[Definition]:
    """Return what is defined in a schema: kind, of what, how."""
    return connection.execute(_DEFINITIONS, {"schema": schema}).fetchall()


def schema_check(place: PostgresPlace, created: Sequence[Definition], pulse: Pulse) -> Check:
    """See that the schema defines what was created when the trial began, and nothing else."""
    tally = Tally("schema")
    tally.checked = len(created)
    with place.read(pulse) as connection:
        found = definitions(connection, place.name)
    for row in created:
        if row not in found:
            tally.problem(f"the schema lacks {_told(row)}")
    for row in found:
        if row not in created:
            tally.problem(f"the schema holds {_told(row)}, which nobody created")
    return tally.check()


def _told(row: Definition) -> str:
    kind, of, how = row
    return f"the {kind} of {of}: {how!r:.160}"
