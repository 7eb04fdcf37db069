"""Which rows a statement is about to write, and which values: its own condition is asked as a query first.

`UPDATE job SET done = 1 WHERE id = 7` touches what `SELECT id FROM job WHERE id = 7` finds. Of a statement
that is not understood, such as UPDATE ... FROM, no rows are known.
"""

from __future__ import annotations

import base64
import re
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from sqlstress.options.sql_text import SQLITE, Token

Name = tuple[tuple[str, ...], tuple[Any, ...]]
"""The columns of a unique key, and a row's values in them."""
Row = frozenset[Name]
"""A row, by the names that are known of it."""
Rows = Callable[[str], list[tuple[Any, ...]]]
"""Runs a query."""

_MOST = 20
"""Of a statement that touches more rows none are known: it is about no row of its own."""
_A_MOMENT_S = 5.0
_QUOTES = "\"`[]'"
_ENDS = ("returning", "order", "limit")
_COMPARED = re.compile(r"^[\w.\"`[\] ]+ =(?: =)? (?:x )?'((?:[^']|'')*)' $", re.IGNORECASE)
"""A column and a text, with a space after each token."""
_MORE = {"or", "not", "case", "union"}
"""With these a query may find other rows, too."""


class Target:
    """A table that is written: what it is called, and its unique keys."""

    def __init__(self, name: str, keys: Sequence[frozenset[str]], query: Rows) -> None:
        self._name, self._query = name, query
        known = [tuple(sorted(key)) for key in keys if key]
        self._keys = known or [("rowid",)]

    def changed(self, sql: str) -> frozenset[Row] | None:
        """Return the rows that an UPDATE or a DELETE is about to write; None: not known."""
        source = _changed(sql)
        return self._found(*source[:3]) if source else None

    def given(self, sql: str) -> dict[str, tuple[bool, Any]]:
        """Return whether the rows of an UPDATE have the values already that it sets, and these, by column."""
        source = _changed(sql)
        if not source or not (values := _assigned(source.sets)):
            return {}
        asked = ", ".join(
            f"min({_quoted(column)} IS ({value})), min({value})" for column, value in values.items()
        )
        (found,) = self._query(f"{source.before} SELECT {asked} FROM {source.table} {source.condition}")
        pairs = zip(found[::2], found[1::2], strict=True)
        return {name: (bool(same), value) for name, (same, value) in zip(values, pairs, strict=True)}

    def has_triggers(self) -> bool:
        """Return whether a trigger may write it."""
        named = f"instr(lower(sql), lower({literal(self._name)}))"
        return bool(self._query(f"SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND {named}"))

    def inserted(self, sql: str) -> tuple[frozenset[Row], frozenset[Row]] | None:
        """Return the rows that an INSERT is about to make, and those that are there; None: not known."""
        given = _inserted(sql)
        if not given:
            return None
        columns, source = given
        if not columns:
            columns = [
                name for (name,) in self._query(f"SELECT name FROM pragma_table_info({literal(self._name)})")
            ]
        names = [name.lower() for name in columns]
        values = [dict(zip(names, row, strict=False)) for row in self._query(source)]
        rows = frozenset(self._named(one) for one in values)
        if len(rows) > _MOST or not all(rows):
            return None
        there = frozenset(row for row in rows if any(map(self._exists, row)))
        return rows - there, there

    def queried(self, sql: str) -> frozenset[Row] | None:
        """Return the rows that a query of this table alone reads; None: not known."""
        source = _queried(sql)
        return self._found("", source, "") if source else None

    def checked(self) -> frozenset[str]:
        """Return the columns, and other words, that a CHECK or a trigger that refuses a change names."""
        named = f"lower(tbl_name) = lower({literal(self._name)})"
        texts = self._query(
            f"SELECT type, sql FROM sqlite_master WHERE type IN ('table', 'trigger') AND {named}"
        )
        return frozenset(word for kind, text in texts for word in _refusing(kind, text or ""))

    def with_rowid(self, number: int) -> frozenset[Row] | None:
        """Return the row that has a number."""
        return self._found("", _quoted(self._name), f"WHERE rowid = {number}")

    def _found(self, before: str, table: str, condition: str) -> frozenset[Row] | None:
        columns = [column for key in self._keys for column in key]
        listed = ", ".join(map(_quoted, columns)) if columns != ["rowid"] else "rowid"
        found = self._query(f"{before} SELECT {listed} FROM {table} {condition} LIMIT {_MOST + 1}")
        if len(found) > _MOST:
            return None
        return frozenset(self._named(dict(zip(columns, row, strict=True))) for row in found)

    def _named(self, values: dict[str, Any]) -> Row:
        names = ((key, tuple(map(values.get, key))) for key in self._keys)
        return frozenset(name for name in names if None not in name[1])

    def _exists(self, name: Name) -> bool:
        are = " AND ".join(
            f"{_quoted(column)} = {literal(value)}" for column, value in zip(*name, strict=True)
        )
        return bool(self._query(f"SELECT 1 FROM {_quoted(self._name)} WHERE {are} LIMIT 1"))


def is_now(value: object) -> bool:
    """Return whether a value is the time of a moment ago: a text, or seconds or milliseconds since 1970."""
    times: list[float] = []
    if isinstance(value, (int, float)):
        times = [value, value / 1000]
    elif isinstance(value, str):
        with suppress(ValueError):
            moment = datetime.fromisoformat(value)
            times = [moment.timestamp(), moment.replace(tzinfo=UTC).timestamp()]
    return any(-0.5 <= time.time() - one <= _A_MOMENT_S for one in times)  # it may be rounded up


@lru_cache
def conditions(sql: str) -> frozenset[str]:
    """Return the words of a query's conditions, among which are the columns that it searches by."""
    words = [_plain(token) for token in SQLITE.tokens(sql) if token.kind in ("word", "quoted")]
    return frozenset(words[words.index("where") + 1 :]) if "where" in words else frozenset()


def seeks_one_of(sql: str, texts: Collection[str]) -> bool:
    """Return whether a query finds only rows that have one of these texts, as far as can be seen."""
    if not texts:
        return False
    tokens = [token for token in SQLITE.tokens(sql) if token.kind not in ("space", "end")]
    words = [_plain(token) for token in tokens if token.kind == "word"]
    if "where" not in words or _MORE & {*words} or words.count("select") - words.count("exists") != 1:
        return False
    sought = [value.lower() for value in _sought(tokens[[*map(_plain, tokens)].index("where") + 1 :])]
    return any(text.lower() in value for value in sought for text in texts)


def _sought(tokens: Iterable[Token]) -> Iterator[str]:
    """Yield the values of conditions `column = value` of which each has to hold: what follows WHERE."""
    groups, depth, condition = 0, 0, ""
    for token in tokens:
        if token.text == "(" and not condition:  # it holds conditions
            groups += 1
            continue
        if token.text == ")" and groups and not depth:
            groups -= 1
            continue
        depth += (token.text == "(") - (token.text == ")")
        word = token.text.lower() if token.kind == "word" and not depth else ""
        if depth < 0 or word in (*_ENDS, "group", "having"):
            break
        if word == "and":
            yield from _COMPARED.findall(condition)
            condition = ""
        else:
            condition += f"{token.text} "
    yield from _COMPARED.findall(condition)


def may_ignore(sql: str) -> bool:
    """Return whether a statement says that it may write nothing: OR IGNORE, DO NOTHING."""
    words = (_plain(token) for token in SQLITE.tokens(sql) if token.kind == "word")
    return any(pair in (("or", "ignore"), ("do", "nothing")) for pair in pairwise(words))


def spellings(drawn: bytes) -> tuple[str, ...]:
    """Return how programs write random bytes: as UUID, by digits, by letters."""
    encoded = (base64.b64encode(drawn), base64.urlsafe_b64encode(drawn), base64.b32encode(drawn))
    uuids = (uuid.UUID(bytes=drawn, version=4),) if len(drawn) == 16 else ()
    return (
        drawn.hex(),
        *(text.decode().rstrip("=") for text in encoded),
        *(text for one in uuids for text in (str(one), one.hex)),
    )


def selects(sql: str) -> bool:
    """Return whether an INSERT makes the rows that a query finds."""
    source = _first(_outer(sql), "values", "select")
    return source is not None and _plain(source) == "select"


class _Changed(NamedTuple):
    """The parts of an UPDATE or a DELETE."""

    before: str
    table: str
    """What it calls its table."""
    condition: str
    sets: str
    """What stands after SET."""


def _queried(sql: str) -> str:
    """Return the text after FROM in a query; empty if the query does not return each row of one table."""
    words = [token for token in SQLITE.tokens(sql) if token.kind == "word"]
    plain = [_plain(token) for token in words]
    source = _first(_outer(sql), "from")
    is_simple = plain[:1] == ["select"] and plain.count("select") == 1
    if not source or not is_simple or {"group", "having", "limit"} & {*plain}:
        return ""
    return sql[source.start + len(source.text) :].rstrip().rstrip(";")


def _refusing(kind: str, text: str) -> Iterator[str]:
    """Yield the words of the CHECKs of a table, or of a trigger that may raise an error."""
    tokens = [token for token in SQLITE.tokens(text) if token.kind != "space"]
    words = [_plain(token) for token in tokens]
    if kind == "trigger":
        yield from words if "raise" in words else ()
        return
    for number, word in enumerate(words):
        depth = 0
        for inner in words[number + 1 :] if word == "check" else ():
            depth += (inner == "(") - (inner == ")")
            yield inner
            if depth <= 0:
                break


def _changed(sql: str) -> _Changed | None:
    outer = _outer(sql)
    verb = _first(outer, "update", "delete")
    after = outer[outer.index(verb) :] if verb else []
    name = _first(after, "from") if verb and _plain(verb) == "delete" else verb
    if not verb or not name:
        return None
    where, end = _first(after, "where"), _first(after, *_ENDS)
    stop = end.start if end else len(sql.rstrip().rstrip(";"))
    upto = begin = until = where.start if where else stop
    if _plain(verb) == "update":
        sets = _first(after, "set")
        if not sets or _first(after[after.index(sets) :], "from"):
            return None
        # UPDATE OR IGNORE t
        name = after[2] if len(after) > 2 and _plain(after[1]) == "or" else name
        upto, begin = sets.start, sets.start + len(sets.text)
    return _Changed(
        sql[: verb.start],
        sql[name.start + len(name.text) : upto],
        sql[where.start : stop] if where else "",
        sql[begin:until],
    )


def _assigned(sets: str) -> dict[str, str]:
    """Return the expression of each column that a SET names; nothing, if it sets several at once."""
    depth, begins = 0, [0]
    for token in SQLITE.tokens(sets):
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and not depth:
            begins.append(token.start + 1)
    parts = [sets[begin : end - 1].partition("=") for begin, end in pairwise((*begins, len(sets) + 1))]
    is_simple = not any("(" in column for column, _, _ in parts)
    return {column.strip().strip(_QUOTES).lower(): value for column, _, value in parts if is_simple}


def _inserted(sql: str) -> tuple[list[str], str] | None:
    """Return the columns that an INSERT names, if it does, and its rows as a query."""
    outer = _outer(sql)
    into, query = _first(outer, "into"), _first(outer, "values", "select", "default")
    verb = _first(outer, "insert", "replace")
    if not verb or not into or not query or into.start > query.start or _plain(query) == "default":
        return None
    listed = [token for token in SQLITE.tokens(sql, into.start, query.start) if token.kind != "space"]
    opens = next((number for number, token in enumerate(listed) if token.text == "("), len(listed))
    columns = [_plain(token) for token in listed[opens:] if token.kind in ("word", "quoted")]
    ends = [one.start for one, then in pairwise(outer) if (_plain(one), _plain(then)) == ("on", "conflict")]
    ends += [token.start for token in outer if _plain(token) == "returning"]
    # What stands before the verb is a WITH, or nothing.
    return columns, sql[: verb.start] + sql[query.start : min(ends, default=len(sql))]


def _outer(sql: str) -> list[Token]:
    """Return the words and names of a statement that stand in no parentheses."""
    depth, found = 0, []
    for token in SQLITE.tokens(sql):
        depth += (token.text == "(") - (token.text == ")")
        if not depth and token.kind in ("word", "quoted"):
            found.append(token)
    return found


def _first(tokens: Sequence[Token], *words: str) -> Token | None:
    return next((one for one in tokens if one.kind == "word" and one.text.lower() in words), None)


def _plain(token: Token) -> str:
    return token.text.strip(_QUOTES).lower()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a value as SQL writes it."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
