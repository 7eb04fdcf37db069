"""Options of one experiment, parsed, and the checks that several experiments share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from sqlstress.errors import UsageError
from sqlstress.report.case import SETTINGS, Case, Settings, traits
from sqlstress.target import Known, serves, takes, target_name

S = TypeVar("S")
E = TypeVar("E")


@dataclass(frozen=True)
class Request(Generic[S, E]):
    """Parsed options of one experiment: S is its spec, E its selection of cases."""

    case: Case
    """First of the requested cases, as far as the options determine it."""
    selection: E
    lists: Mapping[str, tuple[Any, ...]]
    """The values of the options of which each case has one, by name."""
    given: frozenset[str]
    """The names of the options that were given."""

    @property
    def spec(self) -> S:
        """Spec of the case."""
        return cast(S, self.case.spec)

    @property
    def settings(self) -> Settings:
        """Settings of every connection."""
        return self.case.settings

    @property
    def most_processes(self) -> int:
        """The largest number of processes."""
        return cast(int, max(self.lists.get("concurrency", (self.case.concurrency,))))

    def some(self, name: str) -> tuple[Any, ...]:
        """Return the values of an option of which each case has one."""
        return self.lists[name]

    def with_settings(self, **changes: Any) -> Settings:
        """Return the settings, changed."""
        return replace(self.settings, **changes)


def is_exclusive(settings: Settings) -> bool:
    """Return whether one connection locks a database for itself."""
    return any(name == "locking_mode" and value.lower() == "exclusive" for name, value in settings.pragmas)


def check_locking(request: Request[Any, Any]) -> None:
    """Raise UsageError when several are to share what one locks for itself."""
    if is_exclusive(request.settings) and request.most_processes > 1:
        raise UsageError("PRAGMA locking_mode=exclusive allows one process only. Use --concurrency 1.")


AT_A_RATE = ("rate", "arrival", "latency-limit")
"""The options of an open loop."""


def at_rates(request: Request[Any, Any], case: Case) -> Iterator[Case]:
    """Yield a case at each requested rate, or in a closed loop if there is no rate."""
    for rate in request.some("rate"):
        yield (
            case
            if rate is None
            else replace(case, arrivals=request.case.arrivals and request.case.arrivals.at(rate))
        )


def check_window(request: Request[Any, Any]) -> None:
    """Raise UsageError for what means something in a window only, or at a rate only, or nothing there."""
    for name in ("duration", "warmup"):
        if request.case.ops is not None and name in request.given:
            raise UsageError(f"--ops replaces the window. Leave out --ops or --{name}.")
    if request.case.arrivals is None:
        for name in AT_A_RATE[1:]:
            if name in request.given:
                raise UsageError(f"--{name} needs an open loop. Add --rate.")
    elif request.case.ops is not None:
        raise UsageError("--rate needs a window. Leave out --ops or --rate.")


OF_SERVERS = ("dsn", "isolation", "anyway")
"""Options that say something of a server."""


def drivers_of(
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
