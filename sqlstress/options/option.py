"""Definition of options: name, parser, default and help of each setting of a case.

An option is a dataclass field, made by the function `option`. The field defines the option on the command
line, the key in a plan (a TOML file), the entry in docs/options.md, and the field in the JSON report and its
schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from typing import Any

from sqlstress.options.parsing import Parse

SWEEP, LOAD, SQLITE, TRUST = "What to run", "Load", "SQLite", "Checks"

REMOVED = {"busy": "--busy was removed in 0.2.0: only SQLite's busy handler waits for locks. Leave it out."}
"""Error messages for options of earlier versions, by name of the option."""

_KEY = "option"
"""Key of the `Option` in a dataclass field's metadata."""


ONE, MANY, REST = "one", "many", "rest"
"""Number of words of a positional argument: one, several, or all remaining words and options."""


@dataclass(frozen=True, slots=True)
class Option:
    """Definition of an option, from which the command line, plans and the JSON Schema are built."""

    name: str
    """Long name on the command line, without dashes; also the key in a plan."""
    parse: Parse
    """Parser of values from the command line or a plan. Raises ValueError for an invalid value."""
    default: Any
    """Unparsed default value; None if there is no default."""
    group: str
    """Heading under which `--help` lists the option."""
    help: str
    """Sentences for `--help`."""
    short: str = ""
    """Short name, a letter without dash; empty if there is none."""
    metavar: str = "N"
    """Name of the value in `--help`."""
    multiple: bool = False
    """Whether the option may be given several times on the command line."""
    flag: bool = False
    """Whether the option takes no value on the command line."""
    argument: str = ""
    """ONE, MANY or REST for a positional argument; else empty."""
    varies: bool = False
    """Whether the value is a list that requests a case per item."""
    meaning: str = ""
    """Description in the JSON Schema; empty if `help` serves as description."""
    column: str | None = ""
    """Name of the CSV column; empty for the field's name, None for no column."""
    aliases: tuple[str, ...] = ()
    """Old spellings, with dashes. They are accepted but not shown."""

    @property
    def value(self) -> Any:
        """Parsed default value; a tuple if the option requests a case per item."""
        return None if self.default is None else self.parse(self.default)

    @property
    def described(self) -> str:
        """Description in the JSON Schema."""
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
    """Return a dataclass field that is an option, with the parsed default.

    `name` is the option's name, if it differs from the field's. `more` has further attributes of the Option.
    A `required` field has no default, because all code that makes a case sets it. `unsaid` is the value for
    an older report without the field, if it is not the default.
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
    """Return the options among the fields of a dataclass, by field name."""
    return {
        item.name: replace(option, name=option.name or item.name.replace("_", "-"))
        for item in fields(cls)
        if (option := item.metadata.get(_KEY))
    }


def has_default(item: Field[Any]) -> bool:
    return item.default is not MISSING or item.default_factory is not MISSING


def select_options(options: Mapping[str, Option], *names: str) -> tuple[Option, ...]:
    """Return the options with these names, or all if there is no name. Raises KeyError if one is unknown."""
    by_name = {option.name: option for option in options.values()}
    return tuple(by_name[name] for name in names or by_name)


@dataclass(frozen=True, slots=True)
class NoOptions:
    """Empty set of options, for an experiment without options of its own."""
