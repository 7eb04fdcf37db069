"""Definition of options: name, parser, default and help of each setting of a case.

An option is a dataclass field, made by the function `option`. It defines the option on the command line, the
key in a plan, the entry in the reference, and the field in the JSON report and its schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from typing import Any

from sqlstress.options.parsing import Parse

SWEEP, LOAD, SQLITE, TRUST = "What to run", "Load", "SQLite", "Checks"

REMOVED = {"busy": "--busy was removed in 0.2.0: only SQLite's busy handler waits for locks. Leave it out."}
"""Messages of the errors for options of earlier versions, by name of the option."""

_KEY = "option"
"""Key of the Option in the metadata of a dataclass field."""


ONE, MANY, REST = "one", "many", "rest"
"""Number of words of a positional argument: one, several, or all words up to the end, including options."""


@dataclass(frozen=True, slots=True)
class Option:
    """Definition of an option."""

    name: str
    """Long name on the command line, without dashes; also the key in a plan."""
    parse: Parse
    """Function that parses a value of the command line or a plan. Raises ValueError for an invalid value."""
    default: Any
    """Unparsed default value; None if there is no default."""
    group: str
    """Heading under which `--help` shows the option."""
    help: str
    """Sentences on the option for `--help`."""
    short: str = ""
    """Short name, one letter without its dash; empty if there is none."""
    metavar: str = "N"
    """Name of the value in `--help`."""
    multiple: bool = False
    """Whether the option may be given several times on the command line."""
    flag: bool = False
    """Whether the option takes no value on the command line, where its presence means yes."""
    argument: str = ""
    """ONE, MANY or REST for a positional argument of the command line; empty for other options."""
    varies: bool = False
    """Whether the value is a list, with a case for each of its items."""
    meaning: str = ""
    """Description of the field in the JSON Schema; empty if `help` describes it."""
    column: str | None = ""
    """Name of the column in the CSV file; None if there is no column, empty for the name of the field."""
    aliases: tuple[str, ...] = ()
    """Old spellings, with their dashes, which are accepted but not shown by `--help`."""

    @property
    def value(self) -> Any:
        """Parsed default value; a tuple if the option requests a case for each of its items."""
        return None if self.default is None else self.parse(self.default)

    @property
    def described(self) -> str:
        """Description of the field in the JSON Schema."""
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
    """Return a dataclass field that is an option, with the option's parsed default.

    `name` is needed if it differs from the field's. `more` has further attributes of the Option. A `required`
    field has no default, because all code that makes a case sets the field. `unsaid` is the value that a
    report without the field means, if this is not the option's default.
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
    """Return the options of a dataclass by field name. Fields that are no options are left out."""
    return {
        item.name: replace(option, name=option.name or item.name.replace("_", "-"))
        for item in fields(cls)
        if (option := item.metadata.get(_KEY))
    }


def has_default(item: Field[Any]) -> bool:
    return item.default is not MISSING or item.default_factory is not MISSING


def select_options(options: Mapping[str, Option], *names: str) -> tuple[Option, ...]:
    """Return the options with these names; all options without names. Raises KeyError for an unknown name."""
    by_name = {option.name: option for option in options.values()}
    return tuple(by_name[name] for name in names or by_name)


@dataclass(frozen=True, slots=True)
class NoOptions:
    """Spec (options that only one experiment has) of an experiment without options of its own."""
