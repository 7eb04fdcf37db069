"""On which targets programs of the user's are run, which open what they are told of themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlstress.own.where import Where
from sqlstress.plan.ask import Ask
from sqlstress.report.case import SETTINGS, Case
from sqlstress.target import AS_SET, for_programs
from sqlstress.targets import asked as asked_for
from sqlstress.targets import target_of


def drivers(asked: Ask[Any, Any], where: Where) -> tuple[str, ...]:
    """Return the drivers that our own look goes through, one of each target. Raises UsageError."""
    known = for_programs()
    found = asked_for.drivers(asked, where.target, known)
    asked_for.check_options(asked, found, SETTINGS, any)
    asked_for.check_options(asked, found, ("database",), all)
    asked_for.check_servers(asked, found, known)
    return found


def on_target(asked: Ask[Any, Any], case: Case, driver: str, where: Where) -> Case:
    """Return a case as it is carried out on the target of a driver. Raises UsageError."""
    server = where.server if "isolation" in asked.given else replace(where.server, isolation=AS_SET)
    return target_of(driver).checked(replace(case, driver=driver), server, where.anyway)
