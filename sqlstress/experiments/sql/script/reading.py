"""Reads a script: SQL statements, and lines of backslash commands between them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from sqlstress.experiments.sql.script.expressions import read as read_expression
from sqlstress.experiments.sql.script.tree import (
    Branch,
    Call,
    Command,
    Constant,
    Expression,
    If,
    Script,
    Set,
    Sleep,
    Sql,
    Variable,
)
from sqlstress.options.sql_text import SQLITE, Dialect
from sqlstress.user_work.statements import Place, place_of, refuse, split, tokens

BASE = ("client_id", "default_seed", "random_seed", "scale")
"""Variables that every script has."""
_NAME = re.compile(r"\w+", re.ASCII)
_LINE = re.compile(r"(?:[^\n\\]|\\\r?\n|\\)*")
_META = re.compile(r"\\([A-Za-z]\w*)?[ \t]*")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_REFUSED = {
    "setshell": "runs a program in each transaction: measure a program with sqlstress exec",
    "shell": "runs a program in each transaction: measure a program with sqlstress exec",
    "aset": "needs several results in one statement, which is not to be had: use \\gset",
    **dict.fromkeys(("startpipeline", "syncpipeline", "endpipeline"), "is not to be had: pipelines are not"),
}
_COMMANDS = "\\set, \\if, \\elif, \\else, \\endif, \\sleep and \\gset"
_DEEPEST = 50


class Meta(NamedTuple):
    """A line of a backslash command."""

    name: str
    place: Place
    start: int
    """Where its arguments begin."""
    end: int


Part = Sql | Meta


def read(file: str, text: str, variables: Collection[str] = (), dialect: Dialect = SQLITE) -> Script:
    """Return a script, checked; `variables` are those that have a value before it. Raises UsageError."""
    script = Script(file, _Reader(file, text, dialect).script())
    if not any(True for _ in statements(script.commands)):
        raise place_of(file, text, 0).error("it holds no SQL")
    _check_variables(script.commands, {*BASE, *variables}, is_known=True)
    return script


def statements(commands: Collection[Command]) -> Iterator[Sql]:
    """Yield the SQL of commands, in its order."""
    for command in commands:
        if isinstance(command, Sql):
            yield command
        elif isinstance(command, If):
            for branch in command.branches:
                yield from statements(branch.body)
            yield from statements(command.otherwise)


class _Reader:
    def __init__(self, file: str, text: str, dialect: Dialect) -> None:
        self._file, self._text, self._dialect = file, text, dialect
        self._parts = list(self._cut())
        self._at = self._depth = 0

    def script(self) -> tuple[Command, ...]:
        """Return all commands."""
        found = self._body()
        if self._at < len(self._parts):
            meta = self._parts[self._at]
            raise meta.place.error(f"\\{meta.name} without \\if")  # type: ignore[union-attr]
        return found

    def _cut(self) -> Iterator[Part]:
        """Yield the statements and the lines of commands."""
        start, at = 0, 0
        while True:
            found = tokens(self._file, self._text, at, dialect=self._dialect)
            backslash = next((one.start for one in found if one.text == "\\"), None)
            if backslash is None:
                yield from self._sql(start, len(self._text))
                return
            meta = self._meta(backslash)
            own = list(self._sql(start, backslash))
            start = at = meta.end
            if meta.name == "gset":
                yield from self._gset(own, meta)
                continue
            if own and not self._is_ended(own[-1]):
                raise meta.place.error(f'expected ";" before \\{meta.name}: the statement is not ended')
            yield from own
            yield meta

    def _sql(self, start: int, end: int) -> Iterator[Sql]:
        for one in split(self._file, self._text, start, end, self._dialect):
            refuse(self._file, self._text, one, self._dialect)
            for token in one.parameters:
                if token.text[0] != ":":
                    place = place_of(self._file, self._text, token.start)
                    raise place.error(f"{token.text} has no value: a variable is written :name")
            yield Sql(one, place_of(self._file, self._text, one.start))

    def _is_ended(self, one: Sql) -> bool:
        return self._text[one.statement.end - 1] == ";"

    def _gset(self, own: list[Sql], meta: Meta) -> Iterator[Sql]:
        prefix = self._text[meta.start : meta.end].strip()
        if prefix and not _NAME.fullmatch(prefix):
            raise place_of(self._file, self._text, meta.start).error(
                "expected a prefix of letters and digits"
            )
        if not own:
            raise meta.place.error("\\gset stands behind a query, whose columns become variables")
        *others, last = own
        if not last.statement.returns:
            raise meta.place.error("\\gset stands behind a query: this returns no row")
        yield from others
        yield last._replace(prefix=prefix)

    def _meta(self, at: int) -> Meta:
        place = place_of(self._file, self._text, at)
        found = _META.match(self._text, at)
        line = _LINE.match(self._text, found.end() if found else at + 1)
        assert found and line
        name = (found[1] or "").lower()
        if name in _REFUSED:
            raise place.error(f"\\{name} {_REFUSED[name]}")
        if name not in ("set", "if", "elif", "else", "endif", "sleep", "gset"):
            raise place.error(f"there is no command \\{name}: there are {_COMMANDS}")
        return Meta(name, place, line.start(), line.end())

    def _body(self) -> tuple[Command, ...]:
        found: list[Command] = []
        while self._at < len(self._parts):
            part = self._parts[self._at]
            if isinstance(part, Sql):
                found.append(part)
            elif part.name in ("elif", "else", "endif"):
                break
            else:
                found.append(self._command(part))
            self._at += 1
        return tuple(found)

    def _command(self, meta: Meta) -> Command:
        if meta.name == "set":
            return self._set(meta)
        if meta.name == "sleep":
            return self._sleep(meta)
        return self._if(meta)

    def _expression(self, meta: Meta, start: int | None = None, end: int | None = None) -> Expression:
        first = meta.start if start is None else start
        return read_expression(self._file, self._text, first, meta.end if end is None else end)

    def _set(self, meta: Meta) -> Set:
        name = _NAME.match(self._text, meta.start, meta.end)
        if not name:
            raise place_of(self._file, self._text, meta.start).error("expected the name of a variable")
        return Set(name[0], self._expression(meta, name.end()), meta.place)

    def _sleep(self, meta: Meta) -> Sleep:
        words = self._text[meta.start : meta.end].split()
        unit = words[1].lower() if len(words) > 1 else "s"
        if not words or len(words) > 2 or unit not in _UNITS:
            raise meta.place.error("expected \\sleep NUMBER or :VARIABLE, then us, ms or s")
        found = self._expression(meta, meta.start, meta.start + len(words[0]))
        if isinstance(found, Call):
            raise meta.place.error("expected a number or a variable behind \\sleep")
        return Sleep(found, _UNITS[unit], meta.place)

    def _if(self, meta: Meta) -> If:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise meta.place.error(f"\\if more than {_DEEPEST} levels deep")
        branches, otherwise, closing = [], None, meta
        while closing.name != "endif":
            self._at += 1
            if closing.name == "else":
                self._nothing(closing)
                otherwise = self._body()
            else:
                condition = self._expression(closing)
                branches.append(Branch(condition, self._body(), closing.place))
            after = self._parts[self._at] if self._at < len(self._parts) else None
            if not isinstance(after, Meta):
                raise meta.place.error("\\if without \\endif")
            if otherwise is not None and after.name != "endif":
                raise after.place.error(f"\\{after.name} behind \\else")
            closing = after
        self._nothing(closing)
        self._depth -= 1
        return If(tuple(branches), otherwise or ())

    def _nothing(self, meta: Meta) -> None:
        rest = self._text[meta.start : meta.end].strip()
        if rest:
            raise place_of(self._file, self._text, meta.start).error(f"nothing stands behind \\{meta.name}")


def _check_variables(commands: Collection[Command], known: set[str], *, is_known: bool) -> bool:
    """See that each variable has a value before it is used; `known` grows.

    Behind \\gset nobody can say which there are: then, as the answer says, it is seen when it runs.
    """
    for command in commands:
        if isinstance(command, Sql):
            if is_known:
                for token in command.statement.parameters:
                    _check(token.text[1:], command.place, known)
            is_known = is_known and command.prefix is None
        elif isinstance(command, If):
            bodies = [(branch.condition, branch.body) for branch in command.branches]
            for condition, body in (*bodies, (Constant(None), command.otherwise)):
                _check_expression(condition, known, is_known)
                is_known = _check_variables(body, known, is_known=is_known)
        else:
            _check_expression(command.expression, known, is_known)
            if isinstance(command, Set):
                known.add(command.name)
    return is_known


def _check_expression(expression: Expression, known: set[str], is_known: bool) -> None:
    if isinstance(expression, Variable) and is_known:
        _check(expression.name, expression.place, known)
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            _check_expression(argument, known, is_known)


def _check(name: str, place: Place, known: Collection[str]) -> None:
    if name not in known:
        raise place.error(f"the variable :{name} has no value: \\set it before, or give -D {name}=VALUE")
