"""On which targets cases are measured, and what of the options means something there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.plan import Request
from sqlstress.report.case import SETTINGS, Case, traits
from sqlstress.target import Known, serves, takes, target_name

OF_SERVERS = ("dsn", "isolation", "anyway")
"""Options that say something of a server."""


def drivers(
    request: Request[Any, Any], targets: Sequence[str] | None, known: Mapping[str, Known]
) -> tuple[str, ...]:
    """Return the drivers to measure with, of those that are known: one of each target. Raises UsageError."""
    wanted = request.case.driver
    if targets is None:
        return (wanted,)
    if "driver" in request.given and target_name(wanted) not in targets:
        raise UsageError(
            f"--driver {wanted} needs --target {target_name(wanted)}. Add it to --target, or leave out "
            "--driver."
        )
    of_targets = [[name for name in known if known[name].target == target] for target in targets]
    return tuple(wanted if wanted in names else names[0] for names in of_targets)


def check_options(
    request: Request[Any, Any],
    names: Sequence[str],
    options: Sequence[str],
    enough: Callable[[Iterable[bool]], bool],
) -> None:
    """Raise UsageError for an option that means nothing to any of these drivers, or not to all of them."""
    for option in options:
        if option in request.given and not enough(takes(name, option) for name in names):
            strangers = [target_name(name) for name in names if not takes(name, option)]
            raise UsageError(f"--{option} is not supported by {' and '.join(strangers)}. Leave it out.")


def check_servers(request: Request[Any, Any], names: Sequence[str], known: Mapping[str, Known]) -> None:
    """Raise UsageError for what is said of a server where there is none."""
    for option in OF_SERVERS:
        if option in request.given and not any(map(serves, names)):
            servers = " or ".join(dict.fromkeys(driver.target for driver in known.values() if driver.serves))
            raise UsageError(f"--{option} needs a server. Add --target {servers}, or leave it out.")


def traits_there(case: Case) -> dict[str, str]:
    """Return a case by option, of the settings those that mean something to its target."""
    values = {
        name: value
        for name, value in traits(case).items()
        if name not in SETTINGS or takes(case.driver, name)
    }
    return {**values, "isolation": case.server.isolation} if case.server else values
