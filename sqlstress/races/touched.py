"""Rows that an SQL statement will read or write, found by a query before the statement runs.

For example, `UPDATE job SET done = 1 WHERE id = 7` will write the rows of `SELECT id FROM job WHERE id = 7`.
For some statements, such as UPDATE ... FROM, the rows are unknown.
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

KeyValue = tuple[tuple[str, ...], tuple[Any, ...]]
"""Columns of a unique key, and a row's values in these columns, such as (("id",), (7,))."""
Row = frozenset[KeyValue]
"""Row of a table, represented by its unique keys, such as {(("id",), (7,)), (("name",), ("Ann",))}."""
RunQuery = Callable[[str], list[tuple[Any, ...]]]
"""Function that runs an SQL query and returns the rows."""

_MAX_ROWS = 20
"""Maximum number of rows of a statement. If a statement reads or writes more, its rows are unknown."""
_CONFLICT = re.compile(r"\bon\s+conflict\s*\(([^()]*)\)", re.IGNORECASE)
_NOW_TOLERANCE_S = 5.0
"""Maximum age, in seconds, of a value that counts as the current time in `is_now`."""
_QUOTES = "\"`[]'"
_ENDS = ("returning", "order", "limit")
_COMPARED = re.compile(r"^[\w.\"`[\] ]+ =(?: =)? (?:x )?'((?:[^']|'')*)' $", re.IGNORECASE)
"""Pattern of `name = 'Ann' ` with a group for the text. The SQL has a space after each token."""
_WIDENING_WORDS = {"or", "not", "case", "union"}
"""Words with which a query may find rows although a comparison is false, as in `name = 'Ann' OR n > 0`."""


class WrittenTable:
    """Table that a statement reads or writes. Its methods find the rows before the statement runs."""

    def __init__(self, name: str, keys: Sequence[frozenset[str]], query: RunQuery) -> None:
        """`keys` has the columns of each unique key; if empty, the rowid is the key. `query` runs SQL."""
        self._name, self._query = name, query
        columns = [tuple(sorted(key)) for key in keys if key]
        self._keys = columns or [("rowid",)]

    def changed(self, sql: str) -> frozenset[Row] | None:
        """Return the rows that an UPDATE or DELETE will change or remove; None if unknown."""
        source = parse_change(sql)
        return self._select(*source[:3]) if source else None

    def assigned_values(self, sql: str) -> dict[str, tuple[bool, Any]]:
        """Return (is old, value) for each column that an UPDATE sets; empty if the SQL is not understood.

        "is old" is whether all rows already have the new value. If rows get different values, the smallest is
        returned. For example, {"n": (False, 5)} for `SET n = 5`, if n is 4.
        """
        source = parse_change(sql)
        if not source or not (values := parse_sets(source.sets)):
            return {}
        expressions = ", ".join(
            f"min({_quoted(column)} IS ({value})), min({value})" for column, value in values.items()
        )
        (row,) = self._query(f"{source.before} SELECT {expressions} FROM {source.table} {source.condition}")
        pairs = zip(row[::2], row[1::2], strict=True)
        return {name: (bool(same), value) for name, (same, value) in zip(values, pairs, strict=True)}

    def has_triggers(self) -> bool:
        """Return whether a trigger has the table's name in its SQL, and so may write the table."""
        condition = f"instr(lower(sql), lower({sql_literal(self._name)}))"
        return bool(self._query(f"SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND {condition}"))

    def inserted(self, sql: str) -> tuple[frozenset[Row], frozenset[Row]] | None:
        """Return two sets: an INSERT's rows with new keys, and with existing keys; None if unknown."""
        parts = _parse_insert(sql)
        if not parts:
            return None
        columns, source = parts
        if not columns:
            columns = [
                name
                for (name,) in self._query(f"SELECT name FROM pragma_table_info({sql_literal(self._name)})")
            ]
        names = [name.lower() for name in columns]
        values = [dict(zip(names, row, strict=False)) for row in self._query(source)]
        rows = frozenset(self._as_row(row_values) for row_values in values)
        if len(rows) > _MAX_ROWS or not all(rows):
            return None
        there = frozenset(row for row in rows if any(map(self._exists, row)))
        return rows - there, there

    def has_null_key(self, sql: str) -> bool:
        """Return whether an INSERT adds a row with NULL in a column of its clause ON CONFLICT (...)."""
        target, parts = _CONFLICT.search(sql), _parse_insert(sql)
        if not target or not parts or not parts[0]:
            return False
        names = [name.lower() for name in parts[0]]
        keys = [column.strip().strip(_QUOTES).lower() for column in target[1].split(",")]
        places = [names.index(key) for key in keys if key in names]
        return any(row[place] is None for row in self._query(parts[1]) for place in places)

    def has_null_twin(self, sql: str) -> bool:
        """Return whether an INSERT adds a row that equals another in a UNIQUE key, with NULLs in the key."""
        parts = _parse_insert(sql)
        if not parts or not parts[0]:
            return False
        names = [name.lower() for name in parts[0]]
        for values in self._query(parts[1]):
            row = dict(zip(names, values, strict=False))
            for key in self._keys:
                known = [row.get(column) for column in key]
                if None not in known or not any(value is not None for value in known):
                    continue
                equal = (f"{_quoted(c)} IS {sql_literal(v)}" for c, v in zip(key, known, strict=True))
                if self._query(f"SELECT 1 FROM {_quoted(self._name)} WHERE {' AND '.join(equal)} LIMIT 1"):
                    return True
        return False

    def queried(self, sql: str) -> frozenset[Row] | None:
        """Return the rows that a query reads; None if unknown. `sql` must read only this table."""
        source = _single_table_source(sql)
        return self._select("", source, "") if source else None

    def checked(self) -> frozenset[str]:
        """Return all words in the table's CHECKs, and in its triggers with RAISE.

        Among the words are the columns whose new values SQLite may refuse, such as n for CHECK (n >= 0).
        """
        condition = f"lower(tbl_name) = lower({sql_literal(self._name)})"
        texts = self._query(
            f"SELECT type, sql FROM sqlite_master WHERE type IN ('table', 'trigger') AND {condition}"
        )
        return frozenset(word for kind, text in texts for word in _refusing_words(kind, text or ""))

    def with_rowid(self, number: int) -> frozenset[Row] | None:
        """Return a set with the row whose rowid is `number`; empty if no row has this rowid."""
        return self._select("", _quoted(self._name), f"WHERE rowid = {number}")

    def _select(self, before: str, table: str, condition: str) -> frozenset[Row] | None:
        columns = [column for key in self._keys for column in key]
        column_list = ", ".join(map(_quoted, columns)) if columns != ["rowid"] else "rowid"
        rows = self._query(f"{before} SELECT {column_list} FROM {table} {condition} LIMIT {_MAX_ROWS + 1}")
        if len(rows) > _MAX_ROWS:
            return None
        return frozenset(self._as_row(dict(zip(columns, row, strict=True))) for row in rows)

    def _as_row(self, values: dict[str, Any]) -> Row:
        names = ((key, tuple(map(values.get, key))) for key in self._keys)
        return frozenset(name for name in names if None not in name[1])

    def _exists(self, name: KeyValue) -> bool:
        condition = " AND ".join(
            f"{_quoted(column)} = {sql_literal(value)}" for column, value in zip(*name, strict=True)
        )
        return bool(self._query(f"SELECT 1 FROM {_quoted(self._name)} WHERE {condition} LIMIT 1"))


def is_now(value: object) -> bool:
    """Return whether a value is the current time, as ISO text, or in s or ms since 1970."""
    times: list[float] = []
    if isinstance(value, (int, float)):
        times = [value, value / 1000]
    elif isinstance(value, str):
        with suppress(ValueError):
            moment = datetime.fromisoformat(value)
            times = [moment.timestamp(), moment.replace(tzinfo=UTC).timestamp()]
    # A time that was rounded up may be in the future by half a second.
    return any(-0.5 <= time.time() - moment_s <= _NOW_TOLERANCE_S for moment_s in times)


@lru_cache
def conditions(sql: str) -> frozenset[str]:
    """Return all words after WHERE, such as {"n", "limit"} for `WHERE n > 0 LIMIT 1`."""
    words = [_plain(token) for token in SQLITE.tokens(sql) if token.kind in ("word", "quoted")]
    return frozenset(words[words.index("where") + 1 :]) if "where" in words else frozenset()


@lru_cache
def condition_text(sql: str) -> str | None:
    """Return a statement's WHERE clause in lower case, to compare it with another; empty if there is none.

    The result is None if a join, subquery or limit also decides which rows match.
    """
    words = [token for token in _outer_words(sql) if token.kind == "word"]
    plain = [_plain(token) for token in words]
    if {"having", "limit", "join", "union", "with"} & {*plain} or sql.lower().count("select") > 1:
        return None
    end = _find_word(words, "returning", "group", "order", "on")
    text = sql[: end.start if end else None]
    where = _find_word(words, "where")
    clause = " ".join(text[where.start :].lower().rstrip(" \n;").split()) if where else ""
    return "" if clause in ("where true", "where 1") else clause


@lru_cache
def searches_range(sql: str) -> bool:
    """Return whether a WHERE clause has a range such as `start < ?`, or LIKE or GLOB."""
    kinds = ("space", "quoted", "end")
    words = [token.text.lower() for token in SQLITE.tokens(sql) if token.kind not in kinds]
    after = " ".join(words[words.index("where") + 1 :]) if "where" in words else ""
    # `<>` is no range, nor is an operator of JSON: `->` or `->>`.
    return bool({"<", ">", "between", "like", "glob"} & {*re.sub("< >|- >( >)?", "", after).split()})


def searches_for_any(sql: str, texts: Collection[str]) -> bool:
    """Return whether a query only finds rows with one of `texts`, as in `id = 'a1b2'`; False if in doubt.

    `texts` are random values that the call has made, such as a UUID. No other process adds such a row.
    """
    if not texts:
        return False
    tokens = [token for token in SQLITE.tokens(sql) if token.kind not in ("space", "end")]
    words = [_plain(token) for token in tokens if token.kind == "word"]
    if (
        "where" not in words
        or _WIDENING_WORDS & {*words}
        or words.count("select") - words.count("exists") != 1
    ):
        return False
    values = [
        value.lower() for value in _compared_values(tokens[[*map(_plain, tokens)].index("where") + 1 :])
    ]
    return any(text.lower() in value for value in values for text in texts)


def _compared_values(tokens: Iterable[Token]) -> Iterator[str]:
    """Yield the texts in comparisons that AND connects, such as "Ann" for `name = 'Ann' AND n > 0`."""
    groups, depth, condition = 0, 0, ""
    for token in tokens:
        if token.text == "(" and not condition:  # The parenthesis groups conditions.
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
    """Return whether an INSERT or UPDATE has OR IGNORE or DO NOTHING, and so may write no row."""
    words = (_plain(token) for token in SQLITE.tokens(sql) if token.kind == "word")
    return any(pair in (("or", "ignore"), ("do", "nothing")) for pair in pairwise(words))


def random_texts(drawn: bytes) -> tuple[str, ...]:
    """Return random bytes in text formats in which a program may store them: hexadecimal, base64, UUID."""
    encoded = (base64.b64encode(drawn), base64.urlsafe_b64encode(drawn), base64.b32encode(drawn))
    uuids = (uuid.UUID(bytes=drawn, version=4),) if len(drawn) == 16 else ()
    return (
        drawn.hex(),
        *(text.decode().rstrip("=") for text in encoded),
        *(text for uuid_ in uuids for text in (str(uuid_), uuid_.hex)),
    )


def inserts_from_select(sql: str) -> bool:
    """Return whether an INSERT takes its rows from a SELECT."""
    source = _find_word(_outer_words(sql), "values", "select")
    return source is not None and _plain(source) == "select"


class ChangeParts(NamedTuple):
    """Parts of an UPDATE or DELETE."""

    before: str
    """WITH clause; empty if there is none."""
    table: str
    """Table name, with an alias if there is one."""
    condition: str
    """WHERE clause; empty if there is none."""
    sets: str
    """Assignments after SET; empty for a DELETE."""


def _single_table_source(sql: str) -> str:
    """Return a query's text after FROM; empty if the query has a subquery, grouping or LIMIT."""
    words = [token for token in SQLITE.tokens(sql) if token.kind == "word"]
    plain = [_plain(token) for token in words]
    source = _find_word(_outer_words(sql), "from")
    is_simple = plain[:1] == ["select"] and plain.count("select") == 1
    if not source or not is_simple or {"group", "having", "limit"} & {*plain}:
        return ""
    return sql[source.start + len(source.text) :].rstrip().rstrip(";")


def _refusing_words(kind: str, text: str) -> Iterator[str]:
    tokens = [token for token in SQLITE.tokens(text) if token.kind != "space"]
    words = [_plain(token) for token in tokens]
    if kind == "trigger":
        yield from words if "raise" in words else ()
        return
    for position, word in enumerate(words):
        depth = 0
        for next_word in words[position + 1 :] if word == "check" else ():
            depth += (next_word == "(") - (next_word == ")")
            yield next_word
            if depth <= 0:
                break


def parse_change(sql: str) -> ChangeParts | None:
    """Return the parts of an UPDATE or DELETE; None for other statements and UPDATE ... FROM."""
    outer = _outer_words(sql)
    verb = _find_word(outer, "update", "delete")
    after = outer[outer.index(verb) :] if verb else []
    name = _find_word(after, "from") if verb and _plain(verb) == "delete" else verb
    if not verb or not name:
        return None
    where, end = _find_word(after, "where"), _find_word(after, *_ENDS)
    stop = end.start if end else len(sql.rstrip().rstrip(";"))
    upto = begin = until = where.start if where else stop
    if _plain(verb) == "update":
        sets = _find_word(after, "set")
        if not sets or _find_word(after[after.index(sets) :], "from"):
            return None
        # In `UPDATE OR IGNORE t`, the table's name follows the third word.
        name = after[2] if len(after) > 2 and _plain(after[1]) == "or" else name
        upto, begin = sets.start, sets.start + len(sets.text)
    return ChangeParts(
        sql[: verb.start],
        sql[name.start + len(name.text) : upto],
        sql[where.start : stop] if where else "",
        sql[begin:until],
    )


def parse_sets(sets: str) -> dict[str, str]:
    """Return the new value of each column in a SET clause, such as {"n": "n + 1"} for `n = n + 1`.

    The result is empty for a clause with a list, such as `(a, b) = (1, 2)`.
    """
    parts = [part.partition("=") for part in _split_list(sets)]
    is_simple = not any("(" in column for column, _, _ in parts)
    return {column.strip().strip(_QUOTES).lower(): value for column, _, value in parts if is_simple}


def inserted_values(sql: str) -> dict[str, str]:
    """Return the value of each column in the first row of an INSERT ... VALUES, such as {"n": "7"}.

    The result is empty for other statements, and for an INSERT without a list of columns.
    """
    columns, source = _parse_insert(sql) or ([], "")
    if not source.lower().startswith("values"):
        return {}
    values = map(str.strip, _split_list(source.partition("(")[2]))
    return dict(zip(columns, values, strict=False))


def _split_list(text: str) -> list[str]:
    """Return the parts of a list that commas separate, up to a parenthesis that closes it."""
    depth, begin = 0, 0
    parts: list[str] = []
    for token in SQLITE.tokens(text):
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0:
            return [*parts, text[begin : token.start]]
        if token.text == "," and not depth:
            parts.append(text[begin : token.start])
            begin = token.start + 1
    return [*parts, text[begin:]]


def _parse_insert(sql: str) -> tuple[list[str], str] | None:
    """Return the columns of an INSERT, and a query for its rows, such as "VALUES (7)"; None if unknown."""
    outer = _outer_words(sql)
    into, query = _find_word(outer, "into"), _find_word(outer, "values", "select", "default")
    verb = _find_word(outer, "insert", "replace")
    if not verb or not into or not query or into.start > query.start or _plain(query) == "default":
        return None
    tokens = [token for token in SQLITE.tokens(sql, into.start, query.start) if token.kind != "space"]
    opens = next((position for position, token in enumerate(tokens) if token.text == "("), len(tokens))
    columns = [_plain(token) for token in tokens[opens:] if token.kind in ("word", "quoted")]
    ends = [
        word.start for word, then in pairwise(outer) if (_plain(word), _plain(then)) == ("on", "conflict")
    ]
    ends += [token.start for token in outer if _plain(token) == "returning"]
    # The text before the verb is a WITH clause, or empty.
    return columns, sql[: verb.start] + sql[query.start : min(ends, default=len(sql))]


def _outer_words(sql: str) -> list[Token]:
    depth, words = 0, []
    for token in SQLITE.tokens(sql):
        depth += (token.text == "(") - (token.text == ")")
        if not depth and token.kind in ("word", "quoted"):
            words.append(token)
    return words


def _find_word(tokens: Sequence[Token], *words: str) -> Token | None:
    return next((token for token in tokens if token.kind == "word" and token.text.lower() in words), None)


def _plain(token: Token) -> str:
    return token.text.strip(_QUOTES).lower()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def sql_literal(value: Any) -> str:
    """Return a value as an SQL literal, such as "'Ann'" for a text, and "NULL" for None."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
