"""SQL that a server would take, and that a measurement can't: it is told with its place, before any load."""

from __future__ import annotations

from itertools import dropwhile, islice

from sqlstress.options.dialects import POSTGRES, Dialect
from sqlstress.own.statements import Statement, place_of

_MODES = {"immediate", "exclusive", "deferred", "concurrent"}
_DEFINES = {"create", "alter", "drop", "truncate", "comment"}
_WRITES = {"insert", "update", "delete", "merge"}
_BEFORE_THE_NAME = {*_WRITES, "into", "from", "only"}
_LASTING = {
    *("access", "collation", "database", "event", "extension", "foreign", "language", "operator"),
    *("publication", "role", "schema", "server", "subscription", "tablespace", "user", "group", "system"),
}
_OURS = "all is made in one schema of ours, which is dropped"


def refuse(file: str, text: str, one: Statement, dialect: Dialect) -> None:
    """Raise UsageError for a statement of a text that can't be run on a target, as its words say it."""
    if dialect is POSTGRES and (problem := _at_server(one)):
        raise place_of(file, text, one.start).error(problem)


def _at_server(one: Statement) -> str | None:
    """Say why a server of somebody's is not given this statement; None where it is."""
    second = one.words[1] if len(one.words) > 1 else ""
    if one.verb == "begin" and second in _MODES:
        return f"BEGIN {second.upper()} is SQLite's: write BEGIN, and SELECT ... FOR UPDATE before an UPDATE"
    if one.verb == "pragma":
        return "PRAGMA is SQLite's"
    if one.verb == "copy":
        return "COPY has a stream of its own, which is not here: use INSERT (pg_dump --inserts writes it so)"
    if one.verb in ("create", "alter", "drop", "comment") and second in _LASTING:
        return f"{one.verb.upper()} {second.upper()} would stay on the server: {_OURS}"
    if _moves(one, second):
        return f"it lets names be looked for elsewhere: {_OURS}"
    if _leaves(one):
        return f"what another schema holds is not changed: leave its name out, {_OURS}"
    return None


def _moves(one: Statement, second: str) -> bool:
    """Return whether a statement changes in which schema names are looked for."""
    if one.verb == "discard" or (one.verb == "reset" and second in ("all", "search_path")):
        return True
    if one.verb == "set" and {"search_path", "schema"} & {*one.words[1:3]}:
        return True
    return "set_config" in one.words and "search_path" in one.text


def _leaves(one: Statement) -> bool:
    """Return whether a statement changes what has the name of a schema before its own."""
    if one.verb in _DEFINES:
        return "." in _head(one)
    if one.verb not in _WRITES:
        return False
    rest = dropwhile(lambda word: word.lower() in _BEFORE_THE_NAME, _head(one))
    return "." in islice(rest, 1, 2)


def _head(one: Statement) -> list[str]:
    """Return the tokens of a statement up to its first parenthesis, AS or IS."""
    found = []
    for token in POSTGRES.tokens(one.text):
        if token.text == "(" or token.text.lower() in ("as", "is"):
            break
        if token.kind != "space":
            found.append(token.text)
    return found
