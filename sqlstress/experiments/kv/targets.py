"""On which targets a key-value case is measured, and what of the options means something there."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.errors import UsageError
from sqlstress.experiments.kv.spec import Extra, Load
from sqlstress.plan.ask import Ask
from sqlstress.report.case import SETTINGS, Case
from sqlstress.target import driver_for, for_keyvalue, serves, takes, target_name
from sqlstress.targets import target_of

_OF_ANY = (*SETTINGS, "begin")
"""Options that are refused where they mean something to no target."""
OF_SERVERS = ("dsn", "isolation", "anyway")
"""Options that say something of a server."""
_OF_ALL = ("checkpointer", "checkpoint-interval", "pinned-reader", "preset")
"""Options that are refused where they mean nothing to a target."""


def drivers(asked: Ask[Load, Extra]) -> tuple[str, ...]:
    """Return the drivers that are asked for, one of each target. Raises UsageError."""
    wanted, targets = asked.case.driver, asked.extra.target
    if targets is None:
        return (wanted,)
    if "driver" in asked.given and target_name(wanted) not in targets:
        raise UsageError(
            f"--driver {wanted} is of {target_name(wanted)}, which --target leaves out: name it there too, "
            "or leave out --driver."
        )
    return tuple(driver_for(target, wanted) for target in targets)


def check_options(asked: Ask[Load, Extra], names: Sequence[str]) -> None:
    """Raise UsageError for an option that means nothing to these drivers."""
    for options, enough in ((_OF_ANY, any), (_OF_ALL, all)):
        for option in options:
            if option in asked.given and not enough(takes(name, option) for name in names):
                strangers = [target_name(name) for name in names if not takes(name, option)]
                raise UsageError(f"--{option} means nothing to {' and '.join(strangers)}: leave it out.")
    for option in OF_SERVERS:
        if option in asked.given and not any(map(serves, names)):
            servers = " or ".join(name for name, known in for_keyvalue().items() if known.serves)
            raise UsageError(f"--{option} is for a server: add --driver {servers}, or leave it out.")
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
