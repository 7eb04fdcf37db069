"""Parsed options of an experiment, and checks of options that several experiments share.

A target stores the data: SQLite or a server. A driver is the Python package through which workers use a
target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from sqlstress.errors import UsageError
from sqlstress.report.case import SETTINGS, Case, Settings, traits
from sqlstress.target import DriverInfo, serves, takes, target_name

S = TypeVar("S")
E = TypeVar("E")


@dataclass(frozen=True)
class Request(Generic[S, E]):
    """Parsed options of a command, from which an experiment makes its cases.

    S is the type of the spec: the experiment's own options, which a case stores. E is the type of the
    selection: options from which the cases are made, and which they do not store.
    """

    case: Case
    """Case with the first value of each list, from which the experiment makes the requested cases."""
    selection: E
    """Options from which the cases are made, and which they do not store."""
    lists: Mapping[str, tuple[Any, ...]]
    """Values of options that take a list: {"concurrency": (1, 2, 4)} makes three cases."""
    given: frozenset[str]
    """Names of the options set by the user."""

    @property
    def spec(self) -> S:
        """Options that only cases of this experiment have."""
        return cast(S, self.case.spec)

    @property
    def settings(self) -> Settings:
        """SQLite settings of every connection."""
        return self.case.settings

    @property
    def most_processes(self) -> int:
        """Largest requested number of processes."""
        return cast(int, max(self.lists.get("concurrency", (self.case.concurrency,))))

    def values_for(self, name: str) -> tuple[Any, ...]:
        """Return all requested values of an option. Raises KeyError for an option not in `lists`."""
        return self.lists[name]

    def with_settings(self, **changes: Any) -> Settings:
        """Return a copy of the settings with `changes`."""
        return replace(self.settings, **changes)


def is_exclusive(settings: Settings) -> bool:
    """Return whether connections lock the database exclusively (PRAGMA locking_mode)."""
    return any(name == "locking_mode" and value.lower() == "exclusive" for name, value in settings.pragmas)


def check_locking(request: Request[Any, Any]) -> None:
    """Raise UsageError for several processes with PRAGMA locking_mode=exclusive."""
    if is_exclusive(request.settings) and request.most_processes > 1:
        raise UsageError("PRAGMA locking_mode=exclusive allows one process only. Use --concurrency 1.")


OPEN_LOOP_OPTIONS = ("rate", "arrival", "latency-limit")
"""Options of an open loop, whose operations are due at a rate. The first requests the loop."""


def cases_at_rates(request: Request[Any, Any], case: Case) -> Iterator[Case]:
    """Yield a copy of a case for each requested rate; if no rate is requested, the case itself."""
    for rate in request.values_for("rate"):
        yield (
            case
            if rate is None
            else replace(case, arrivals=request.case.arrivals and request.case.arrivals.at(rate))
        )


def check_window(request: Request[Any, Any]) -> None:
    """Raise UsageError if options on the measured window contradict each other."""
    for name in ("duration", "warmup"):
        if request.case.ops is not None and name in request.given:
            raise UsageError(f"--ops replaces the window. Leave out --ops or --{name}.")
    if request.case.arrivals is None:
        for name in OPEN_LOOP_OPTIONS[1:]:
            if name in request.given:
                raise UsageError(f"--{name} needs an open loop. Add --rate.")
    elif request.case.ops is not None:
        raise UsageError("--rate needs a window. Leave out --ops or --rate.")


SERVER_OPTIONS = ("dsn", "isolation", "anyway")
"""Options that only servers support."""


def drivers_of(
    request: Request[Any, Any], targets: Sequence[str] | None, known: Mapping[str, DriverInfo]
) -> tuple[str, ...]:
    """Return the drivers to measure with, one for each of the `targets` (option --target).

    A target gets the driver of --driver if that driver uses the target, else its first driver in `known`. If
    `targets` is None, return only the driver of --driver. Raises UsageError if it uses none of the targets.
    """
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
    """Raise UsageError if the user set one of `options` that the drivers `names` do not support.

    If `enough` is `all`, every driver must support an option. If it is `any`, a single driver suffices.
    """
    for option in options:
        if option in request.given and not enough(takes(name, option) for name in names):
            unsupporting = [target_name(name) for name in names if not takes(name, option)]
            raise UsageError(f"--{option} is not supported by {' and '.join(unsupporting)}. Leave it out.")


def check_servers(request: Request[Any, Any], names: Sequence[str], known: Mapping[str, DriverInfo]) -> None:
    """Raise UsageError for an option of servers if none of the drivers `names` uses a server."""
    for option in SERVER_OPTIONS:
        if option in request.given and not any(map(serves, names)):
            servers = " or ".join(dict.fromkeys(driver.target for driver in known.values() if driver.serves))
            raise UsageError(f"--{option} needs a server. Add --target {servers}, or leave it out.")


def supported_traits(case: Case) -> dict[str, str]:
    """Return a case's options as text, by name, without options that the driver does not support."""
    values = {
        name: value
        for name, value in traits(case).items()
        if name not in SETTINGS or takes(case.driver, name)
    }
    return {**values, "isolation": case.server.isolation} if case.server else values
