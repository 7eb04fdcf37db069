"""Plan: flags or a TOML file become a list of Cases."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

from sqlstress.errors import NoWork, UsageError
from sqlstress.experiment import DEFAULT, Experiment, commands, face, faces
from sqlstress.options.option import Option, has_default, options_of
from sqlstress.options.parsing import NEAREST, sentence, shown, suggestion
from sqlstress.report.case import SETTINGS, Arrivals, Case, Settings, traits
from sqlstress.system.files import read_text
from sqlstress.target import Known, serves, takes, target_name

S = TypeVar("S")
E = TypeVar("E")
T = TypeVar("T")


@dataclass(frozen=True)
class Request(Generic[S, E]):
    """The options of one experiment: S is its spec, E what says only which cases there are."""

    case: Case
    """The first of the cases that were asked for, as far as the options say it; its spec is `spec`."""
    extra: E
    lists: Mapping[str, tuple[Any, ...]]
    """The values of the options of which each case has one, by name."""
    given: frozenset[str]
    """The names of the options that were given."""

    @property
    def spec(self) -> S:
        """What only cases of this experiment have."""
        return cast(S, self.case.spec)

    @property
    def settings(self) -> Settings:
        """How every connection is opened."""
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


def built(cls: type[T], values: Mapping[str, Any], **known: Any) -> T:
    """Return a dataclass whose fields are options from their values; what has no value keeps its default.

    What only the experiment itself can say, such as the scale of a cell, is None until it does.
    """
    known_options = options_of(cast(Any, cls)).items()
    found = {name: values[option.name] for name, option in known_options if option.name in values}
    for one in fields(cast(Any, cls)):
        if one.name not in found and one.name not in known and is_dataclass(one.default):
            found[one.name] = built(type(cast(Any, one.default)), values)
    unsaid = {
        one.name: None for one in fields(cast(Any, cls)) if one.name not in found and not has_default(one)
    }
    return cls(**{**unsaid, **found, **known})


def is_exclusive(settings: Settings) -> bool:
    """Return whether one connection locks a database for itself."""
    return any(name == "locking_mode" and value.lower() == "exclusive" for name, value in settings.pragmas)


def check_locking(request: Request[Any, Any]) -> None:
    """Raise UsageError when several are to share what one locks for itself."""
    if is_exclusive(request.settings) and request.most_processes > 1:
        raise UsageError("PRAGMA locking_mode=exclusive allows one process only. Use --concurrency 1.")


MOST_CASES = 1000


class Planned(NamedTuple):
    """What is to be measured."""

    cases: tuple[Case, ...]
    experiment: Experiment | None = None
    """The one whose options asked for it; None: a plan, whose cases are of any."""
    extra: Any = None
    """Its options that stand in no case."""


def options_of_command(command: str) -> tuple[Option, ...]:
    """Return the options of a command: those of the experiment that it measures."""
    return commands()[command].options


def parsed(option: Option, value: Any) -> Any:
    """Parse one option's value; raises UsageError that names the option."""
    try:
        return None if value is None else option.parse(value)
    except ValueError as error:
        name = option.name.upper() if option.argument else f"--{option.name}"
        raise UsageError(f"{name}: {sentence(error)}") from error


def all_parsed(options: Iterable[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options by name: as they are given, unparsed, else their defaults."""
    return {one.name: parsed(one, given.get(one.name, one.default)) for one in options}


def options_of_load(
    command: str, otherwise: Mapping[str, Mapping[str, Any]], left_out: Collection[str]
) -> tuple[Option, ...]:
    """Return the options of a load that a study measures: what some are there otherwise, without others."""
    return tuple(
        replace(known, **otherwise.get(known.name, {}))
        for known in face(command).options
        if known.name not in left_out
    )


def planned(given: Mapping[str, Any], command: str = DEFAULT) -> Planned:
    """Return what one set of options asks for.

    `given` holds unparsed values by option name; what is missing or None has its default. Raises UsageError,
    also for more cases than anybody waits for, before they take memory.
    """
    given = {name: value for name, value in seeded(given).items() if value is not None}
    experiment = commands()[command]
    known = {option.name: option for option in experiment.options}
    for name in given:
        if name not in known:
            raise UsageError(_stray(experiment, command, name))
    values = {name: option.value for name, option in known.items()}
    values |= {name: parsed(known[name], value) for name, value in given.items()}
    lists = {name: values[name] or (None,) for name, option in known.items() if option.varies}
    first_values = {**values, **{name: several[0] for name, several in lists.items()}}
    window = {} if "duration" in values else {"duration_s": 0.0, "warmup_s": 0.0}
    case = built(
        Case,
        first_values,
        workload=experiment.name,
        arrivals=None if first_values.get("rate") is None else built(Arrivals, first_values),
        settings=built(Settings, first_values),
        spec=built(experiment.spec, first_values),
        **window,
    )
    extra = built(experiment.extra, values) if experiment.extra else None
    request: Request[Any, Any] = Request(case, extra, lists, frozenset(given))
    cases = tuple(islice(experiment.cases(request), MOST_CASES + 1))
    check_count(len(cases))
    return Planned(cases, experiment, extra)


def _stray(experiment: Experiment, command: str, name: str) -> str:
    """Say what an option is for that the experiment has not got."""
    if why := experiment.without.get(name):
        return f"--{name}: {why}."
    known = [option.name for option in experiment.options]
    return f"--{name} is not an option of {command}.{suggestion(name, known)}"


def cases_of(given: Mapping[str, Any], command: str = DEFAULT) -> tuple[Case, ...]:
    """Return the cases of one set of options. Raises UsageError."""
    return planned(given, command).cases


def seeded(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with a seed: a random one, unless one is given."""
    seed = given.get("seed")
    return {**given, "seed": secrets.randbelow(1 << 32) if seed is None else seed}


def check_count(cases: int) -> None:
    """Raise UsageError for more cases than anybody waits for."""
    if cases > MOST_CASES:
        raise UsageError(f"the plan has more than {MOST_CASES:,} cases. Split it.")


# The cases of an experiment that has both loops: closed, or open at each rate that was asked for.


AT_A_RATE = ("rate", "arrival", "latency-limit")
"""The options of an open loop."""


def at_rates(request: Request[Any, Any], case: Case) -> Iterator[Case]:
    """Yield a case at each rate; as it is, in a closed loop, where none was asked for."""
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


# A plan in a TOML file: options at the top are defaults, each [[case]] has its own.


LARGEST = 128 << 10
"""Bytes of a plan: a thousand cases of a hundred bytes."""
LONGEST_LINE = 500
"""Characters of a line: tomllib takes time and memory that grow with the square of a dotted key's length."""


def from_toml(path: Path) -> tuple[Case, ...]:
    """Return the cases of a plan: options at the top are defaults, each [[case]] has its own.

    Raises UsageError that names the file and the case.
    """
    document = _read(path)
    tables = document.pop("case", None)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        names = [name for name, value in document.items() if isinstance(value, list | dict)]
        near = next((name for name in names if suggestion(name, ["case"])), None)
        misspelt = f" It has [[{near}]]: rename it." if near else ""
        raise UsageError(f"{path}: a plan needs at least one [[case]].{misspelt}")
    document = seeded(document)
    workloads = [one.name for one in faces() if one.in_plans]
    known = {name: {option.name for option in options_of_command(name)} for name in workloads}
    planned: list[Case] = []
    named = (table.get("workload", document.get("workload")) for table in tables)
    # The options that any workload of the plan has: a default that belongs to another one is not for a case.
    elsewhere = {name for one in named if isinstance(one, str) for name in known.get(one, ())}
    for number, table in enumerate(tables, 1):
        try:
            planned += _cases(document, table, known, elsewhere)
            check_count(len(planned))
        except NoWork as error:
            raise UsageError(f"{path}, case {number}: {error.assigned}") from error
        except UsageError as error:
            raise UsageError(f"{path}, case {number}: {error}") from error
    return tuple(planned)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = read_text(path, LARGEST)
        long = next((i for i, line in enumerate(text.split("\n"), 1) if len(line) > LONGEST_LINE), None)
        if long:
            raise ValueError(f"line {long} has more than {LONGEST_LINE} characters")
        return tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read the plan {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        # tomllib lets more than its own TOMLDecodeError through, such as for huge numbers.
        raise UsageError(f"{path} is not a TOML file: {error!s:.160}.") from error


def _cases(
    document: Mapping[str, Any], table: Mapping[str, Any], known: Mapping[str, set[str]], elsewhere: set[str]
) -> tuple[Case, ...]:
    """Return the cases of one [[case]]; `known` are the options of each workload."""
    workload = table.get("workload", document.get("workload"))
    if not isinstance(workload, str) or workload not in known:
        if workload is None:
            raise UsageError(f"workload is missing. Give one of {', '.join(known)}.")
        near = suggestion(workload, known, NEAREST)
        raise UsageError(f"workload = {shown(workload)} is not one of {', '.join(known)}.{near}")
    own = known[workload]
    defaults = {name: value for name, value in document.items() if name in own or name not in elsewhere}
    given = {name: value for name, value in {**defaults, **table}.items() if name != "workload"}
    for name in given:
        if name not in own:
            raise UsageError(f"{shown(name)} is not an option of {workload}.{suggestion(name, own)}")
    return cases_of(given, workload)


# On which targets cases are measured, and what of the options means something there.


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
