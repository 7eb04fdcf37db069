"""The database of a trial: a copy of the user's, or an empty one, and then what the setup makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from sqlstress.errors import EnvironmentFailure, SqlstressError, UsageError, said
from sqlstress.options.dialects import Dialect
from sqlstress.own.data import Data, setup_text
from sqlstress.own.files import digest
from sqlstress.own.original import copy
from sqlstress.own.statements import Place, Statement, dialect_of, place_of, split
from sqlstress.system.processes import call_apart
from sqlstress.targets.place import SqlPlace
from sqlstress.targets.sql import LACKING, Answer, Maker, Reader

if TYPE_CHECKING:
    from sqlstress.system.pulse import Pulse
    from sqlstress.targets.sqlite.place import SqlitePlace


def make(place: SqlPlace, data: Data, own: Iterable[str], pulse: Pulse) -> None:
    """Make the database of a place anew, and see that the case's settings were taken.

    `own` are statements of ours, run after the user's setup. Raises UsageError, with the place in the file,
    for what the setup can't do.
    """
    place.discard()
    if data.database:
        # It is refused where no file is to be measured.
        call_apart(pulse, copy, data.database, cast("SqlitePlace", place).paths[0])
    with place.making(pulse) as maker:
        if data.setup:
            _set_up(maker, dialect_of(place.case.driver), data)
        for sql in own:
            maker.watched(lambda sql=sql: maker.run(sql))  # type: ignore[misc]


def _set_up(maker: Maker, dialect: Dialect, data: Data) -> None:
    text = setup_text(data.setup)
    if digest(text) != data.setup_digest:
        raise EnvironmentFailure(f"{data.setup} changed while it was measured: measure again.")
    maker.watched(lambda: _run(maker, dialect, data.setup, text))
    if maker.in_transaction():
        raise UsageError(f"{data.setup}: the transaction that it begins is never ended: add COMMIT.")


def _run(maker: Maker, dialect: Dialect, file: str, text: str) -> None:
    for one in split(file, text, dialect=dialect):
        try:
            maker.run(one.text)
        except Exception as error:
            raise failed(file, text, one, maker.answer(error), error) from error


def explained(reader: Reader, place: Place, one: Statement) -> None:
    """See that the database can run a statement, without running it. Raises UsageError, with its place."""
    try:
        reader.understood(one.text, [token.text[1:] for token in one.parameters])
    except Exception as error:
        answer = reader.answer(error)
        if answer and answer.kind == LACKING:
            raise
        raise place.error(answer.text if answer else said(error).removesuffix(".")) from error


def failed(file: str, text: str, one: Statement, answer: Answer | None, error: Exception) -> SqlstressError:
    """Return what went wrong with a statement of a file, with its place there."""
    place = place_of(file, text, one.start)
    if answer and answer.kind == LACKING:
        return EnvironmentFailure(f"{place}: {answer.text}.")
    return place.error(answer.text if answer else said(error).removesuffix("."))
