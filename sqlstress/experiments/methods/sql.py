"""The statements. Those of the bare drivers are as Peewee would write them."""

from __future__ import annotations

from sqlstress.experiments.methods.tables import PENDING

INSERT_SAMPLE = 'INSERT INTO "sample" ("path") VALUES '
INSERT_RESULT = 'INSERT INTO "result" ("a_id", "b_id", "val") VALUES '
SELECT_RESULT = 'SELECT "t1"."a_id", "t1"."b_id", "t1"."val" FROM "result" AS "t1"'
_PAIR = '(("t1"."a_id" = ?) AND ("t1"."b_id" = ?))'
GET_RESULT = f"{SELECT_RESULT} WHERE {_PAIR}"

ALLOCATE_SPC = (
    f"INSERT INTO result SELECT s1.id, s2.id, {PENDING:.0f} FROM sample AS s1 JOIN sample AS s2 "
    "ON s1.id < s2.id WHERE s1.id BETWEEN ? AND ?"
)
"""Each pair whose lower id lies in a range is made inside SQLite."""

QUERY_SPC = (
    "WITH pair AS (SELECT DISTINCT "
    "CASE WHEN s1.value < s2.value THEN s1.value ELSE s2.value END AS aid, "
    "CASE WHEN s1.value < s2.value THEN s2.value ELSE s1.value END AS bid "
    "FROM json_each(?) AS s1, json_each(?) AS s2) "
    "SELECT aid, bid, r.val FROM pair JOIN result AS r ON r.a_id = pair.aid AND r.b_id = pair.bid"
)
"""All pairs between two sets of ids are made inside SQLite."""


def member(name: str, arrow: bool) -> str:
    """Return a member of the JSON object j.value; the operator ->> came with SQLite 3.38."""
    return f"j.value ->> '$.{name}'" if arrow else f"json_extract(j.value, '$.{name}')"


def insert_json(arrow: bool) -> str:
    """Return what inserts samples out of a list of objects."""
    return f"INSERT INTO sample (path) SELECT {member('path', arrow)} FROM json_each(?) AS j"


def allocate_json(arrow: bool) -> str:
    """Return what inserts results out of a list of objects."""
    members = ", ".join(member(name, arrow) for name in ("a", "b", "val"))
    return f"INSERT INTO result (a_id, b_id, val) SELECT {members} FROM json_each(?) AS j"


def query_json(arrow: bool) -> str:
    """Return the query for the pairs of a list of objects."""
    return (
        "SELECT r.a_id, r.b_id, r.val FROM result AS r JOIN json_each(?) AS j "
        f"WHERE r.a_id = ({member('a', arrow)}) AND r.b_id = ({member('b', arrow)})"
    )


def nested(pairs: int) -> str:
    """Return the query for so many pairs as Peewee nests conditions that are joined one after the other."""
    return f"{SELECT_RESULT} WHERE {'(' * (pairs - 1)}{_PAIR}{f' OR {_PAIR})' * (pairs - 1)}"


def row_values(pairs: int) -> str:
    """Return the query for so many pairs, compared as row values."""
    return f'{SELECT_RESULT} WHERE (("t1"."a_id", "t1"."b_id") IN ({_values(pairs)}))'


def values_join(pairs: int) -> str:
    """Return the query for so many pairs, joined as a table."""
    joined = '(("t1"."a_id" = "p"."column1") AND ("t1"."b_id" = "p"."column2"))'
    return f'{SELECT_RESULT} INNER JOIN ({_values(pairs)}) AS "p" ON {joined}'


def _values(pairs: int) -> str:
    return f"VALUES {', '.join(['(?, ?)'] * pairs)}"


FORMS = {"BLK": nested, "ROW": row_values, "VALUES": values_join}
"""Method → its query."""
