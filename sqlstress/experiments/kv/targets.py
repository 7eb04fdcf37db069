"""On which targets a key-value case is measured, and what of the options means something there."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.errors import UsageError
from sqlstress.experiments.kv.spec import Extra, Load
from sqlstress.plan.ask import Ask
from sqlstress.report.case import SETTINGS, Case
from sqlstress.target import for_keyvalue
from sqlstress.targets import asked as asked_for
from sqlstress.targets import target_of

_OF_ANY = (*SETTINGS, "begin")
"""Options that are refused where they mean something to no target."""
_OF_ALL = ("checkpointer", "checkpoint-interval", "pinned-reader", "preset")
"""Options that are refused where they mean nothing to a target."""


def drivers(asked: Ask[Load, Extra]) -> tuple[str, ...]:
    """Return the drivers that are asked for, one of each target. Raises UsageError."""
    return asked_for.drivers(asked, asked.extra.target, for_keyvalue())


def check_options(asked: Ask[Load, Extra], names: Sequence[str]) -> None:
    """Raise UsageError for an option that means nothing to these drivers."""
    asked_for.check_options(asked, names, _OF_ANY, any)
    asked_for.check_options(asked, names, _OF_ALL, all)
    asked_for.check_servers(asked, names, for_keyvalue())
    for name in names:
        if asked.spec.where and (problem := target_of(name).untold(name)):
            raise UsageError(f"--where can't be had: {problem}. Leave it out.")


def checked(case: Case, extra: Extra) -> Case:
    """Return a case as its target carries it out. Raises UsageError."""
    return target_of(case.driver).checked(case, extra.server, extra.anyway)


def loop_for(asked: Ask[Load, Extra], names: Sequence[str]) -> str:
    """Return what drives the load on all of these drivers: what was asked for, or native where that can be
    had. Raises UsageError.
    """
    if asked.case.arrivals and asked.spec.loop == "native":
        raise UsageError("--loop native knows no --rate: use --loop python.")
    if asked.case.arrivals or asked.spec.loop == "python":
        return "python"
    lacking = next(((name, why) for name in names if (why := target_of(name).lacks_native(name))), None)
    if lacking and asked.spec.loop == "native":
        name, why = lacking
        raise UsageError(f"--loop native is not to be had with the driver {name}: {why}. Use --loop python.")
    return "python" if lacking else "native"
