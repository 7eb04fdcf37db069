"""Options: name, parser, default and help of each setting of a case.

An option is a field of a dataclass, made by `option`. It defines the flag, the key in a plan, the field in
JSON with its description in the schema, and the entry in the reference.
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
"""Number of words of a positional argument; REST takes all words up to the end, also options."""


@dataclass(frozen=True, slots=True)
class Option:
    """Definition of an option."""

    name: str
    """Long name, without dashes; also the key in a plan."""
    parse: Parse
    default: Any
    """Unparsed default value, or None."""
    group: str
    """Heading in `--help`."""
    help: str
    short: str = ""
    metavar: str = "N"
    multiple: bool = False
    flag: bool = False
    """Whether the option takes no value on the command line: its presence means yes."""
    argument: str = ""
    """ONE, MANY or REST if the command line has it as a positional argument; empty if with its name."""
    varies: bool = False
    """Whether its value is a list, of which each case has one item."""
    meaning: str = ""
    """Description of the field in JSON; empty if `help` describes it."""
    column: str | None = ""
    """Name of the column in the CSV; empty if the field's name serves, None if there is no column."""
    aliases: tuple[str, ...] = ()
    """Old spellings, with their dashes, which are accepted but not shown by `--help`."""

    @property
    def value(self) -> Any:
        """Parsed default: a tuple of all items if the option varies."""
        return None if self.default is None else self.parse(self.default)

    @property
    def described(self) -> str:
        """Description of the field in JSON."""
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
    """Return a dataclass field for an option. The field's default is the parsed default of the option.

    `name` is the name of the option if it differs from the field's, `more` has other attributes of the
    Option. A `required` field has no default: code that makes a case always sets it. `unsaid` is the field's
    default if it differs from the option's: the value in reports without the field.
    """
    definition = Option(name, parse, default, group, help, **more)
    if required:
        return field(metadata={_KEY: definition})
    value = definition.value if unsaid is ... else unsaid
    return field(
        default=value[0] if definition.varies and unsaid is ... else value, metadata={_KEY: definition}
    )


@cache
def options_of(cls: Any) -> Mapping[str, Option]:
    """Return the options of a dataclass, by name of the field."""
    return {
        item.name: replace(option, name=option.name or item.name.replace("_", "-"))
        for item in fields(cls)
        if (option := item.metadata.get(_KEY))
    }


def has_default(one: Field[Any]) -> bool:
    """Return whether the field has a default."""
    return one.default is not MISSING or one.default_factory is not MISSING


def select_options(options: Mapping[str, Option], *names: str) -> tuple[Option, ...]:
    """Return the options with these names, in this order; without names, all options."""
    by_name = {option.name: option for option in options.values()}
    return tuple(by_name[name] for name in names or by_name)


@dataclass(frozen=True, slots=True)
class NoOptions:
    """Spec of an experiment without options of its own."""
