"""On which targets scripts are run, and what of the options means something there."""

from __future__ import annotations

from sqlstress.experiments.sql.spec import Extra, Scripts
from sqlstress.plan import Ask
from sqlstress.report.case import SETTINGS
from sqlstress.target import for_scripts
from sqlstress.targets import options as asked_for


def drivers(asked: Ask[Scripts, Extra]) -> tuple[str, ...]:
    """Return the drivers that are asked for, one of each target. Raises UsageError."""
    found = asked_for.drivers(asked, asked.extra.target, for_scripts())
    asked_for.check_options(asked, found, SETTINGS, any)
    asked_for.check_options(asked, found, ("database",), all)
    asked_for.check_servers(asked, found, for_scripts())
    return found
