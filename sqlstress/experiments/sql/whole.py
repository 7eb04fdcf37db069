"""Whether a script is one transaction: begun again, it would do twice what was committed by itself."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlstress.experiments.sql.script.tree import Command, If, Script, Sql
from sqlstress.report.case import Settings
from sqlstress.target import target_name


class _State(NamedTuple):
    """What may be so at a place of a script."""

    is_open: bool
    has_written: bool


def begun_again_by(max_tries: int, settings: Settings, driver: str) -> str:
    """Return what begins scripts again as a whole, in words; nothing where nothing does."""
    if max_tries > 1:
        return "--max-tries begins a script again"
    if settings.busy != "fair" or target_name(driver) != "sqlite":
        return ""
    # Help loads this, and needs no SQLite.
    from sqlstress.targets.sqlite.drivers import load_driver

    return "" if load_driver(driver).HANDLES_BUSY else f"--busy fair begins a script again with {driver}"


def check_whole(script: Script, again: str) -> None:
    """See that a script is one transaction, whatever branches it takes. Raises UsageError, with its place."""
    _walked(script.commands, {_State(False, False)}, again)


def _walked(commands: Collection[Command], states: set[_State], again: str) -> set[_State]:
    for command in commands:
        if isinstance(command, Sql):
            states = {_behind(command, state, again) for state in states}
        elif isinstance(command, If):
            bodies = (*(branch.body for branch in command.branches), command.otherwise)
            states = set().union(*(_walked(body, states, again) for body in bodies))
    return states


def _behind(one: Sql, state: _State, again: str) -> _State:
    if state.has_written and not state.is_open:
        raise one.place.error(
            f"{again} as a whole, and what stands before this is committed by itself: put all of it into one "
            "transaction, or into scripts of their own"
        )
    is_open = (state.is_open or one.statement.begins) and not one.statement.ends
    return _State(is_open, state.has_written or may_write(one))


def may_write(one: Sql) -> bool:
    """Return whether a statement may write, as far as its words say it."""
    return not (one.statement.reads or one.statement.begins or one.statement.ends)
