"""Option: the name of one setting of a case, how its value is read, and what it means.

An option is a field of a dataclass, made by `option`: from that come the flag, the key in a plan, the field
in JSON, its description in the schema, and the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from typing import Any

from sqlstress.options.parsing import Parse

SWEEP, LOAD, SQLITE, TRUST = "What to run", "Load", "SQLite", "Checks"

REMOVED = {"busy": "--busy was removed in 0.2.0: only SQLite's busy handler waits for locks. Leave it out."}
"""Options of earlier versions, by name: the text of the error."""

_KEY = "option"


ONE, MANY, REST = "one", "many", "rest"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a case."""

    name: str
    """Its long name, without dashes: the key in a plan."""
    parse: Parse
    default: Any
    """What stands for it when it is not given, unparsed; None: unset."""
    group: str
    """Under which heading `--help` shows it."""
    help: str
    short: str = ""
    metavar: str = "N"
    multiple: bool = False
    flag: bool = False
    """Whether naming it on the command line means yes."""
    argument: str = ""
    """What it is on the command line, without its name: ONE word, MANY, all the REST; "": an option."""
    varies: bool = False
    """Whether it is read as several values, of which each case has one."""
    meaning: str = ""
    """What the field says in JSON, where that is not what the option says."""
    column: str | None = ""
    """Name of the column in the CSV; empty if the field's name serves, None if there is no column."""
    aliases: tuple[str, ...] = ()
    """Old spellings, with their dashes: they are still taken, and `--help` does not show them."""

    @property
    def value(self) -> Any:
        """The default, parsed; of several values all."""
        return None if self.default is None else self.parse(self.default)

    @property
    def described(self) -> str:
        """What the field says in JSON."""
        return self.meaning or self.help


def option(
    parse: Parse,
    default: Any,
    group: str,
    help: str,
    *,
    name: str = "",
    required: bool = False,
    unsaid: Any = ...,
    **more: Any,
) -> Any:
    """Return a field of a dataclass that is an option; its default value is the option's, parsed.

    `name` is the option's where the field has another one, `more` what else an Option has. A `required`
    field has no default of its own: what makes a case always says it. `unsaid` is the field's where it is not
    the option's: what a report means that does not have it.
    """
    made = Option(name, parse, default, group, help, **more)
    if required:
        return field(metadata={_KEY: made})
    value = made.value if unsaid is ... else unsaid
    return field(default=value[0] if made.varies and unsaid is ... else value, metadata={_KEY: made})


@cache
def options_of(cls: Any) -> Mapping[str, Option]:
    """Return the options that the fields of a dataclass are, by field."""
    return {
        one.name: replace(found, name=found.name or one.name.replace("_", "-"))
        for one in fields(cls)
        if (found := one.metadata.get(_KEY))
    }


def has_default(one: Field[Any]) -> bool:
    """Say whether a dataclass can be made without this field."""
    return one.default is not MISSING or one.default_factory is not MISSING


def chosen(options: Mapping[str, Option], *names: str) -> tuple[Option, ...]:
    """Return options by their names, in that order; all of them where none is named."""
    by_name = {one.name: one for one in options.values()}
    return tuple(by_name[name] for name in names or by_name)


@dataclass(frozen=True, slots=True)
class Nothing:
    """What the cases of an experiment say beside what all cases say, where that is nothing."""
