"""The commands that measure, and the options of each."""

from __future__ import annotations

from sqlstress.experiment import commands, faces
from sqlstress.options.option import Option
from sqlstress.plan import options_of_command
from sqlstress.studies.ab_options import ab_options

PLANNED = tuple(one.name for one in faces() if one.in_plans)
"""The experiments that a plan can name."""
MEASURING = (*commands(), "ab")


def by_name(command: str) -> dict[str, Option]:
    """Return the options of a command that measures, by their names."""
    options = ab_options() if command == "ab" else options_of_command(command)
    return {option.name: option for option in options}
