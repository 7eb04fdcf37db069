"""The experiment with an application of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.experiment import Alike, CommandLine, Experiment, Words
from sqlstress.options.option import LOAD, ONE, chosen, option, options_of
from sqlstress.plan import Request, at_rates
from sqlstress.report.case import KEPT, Case, Settings, common, otherwise
from sqlstress.targets.options import traits_there
from sqlstress.user_work.files import digest, text_of
from sqlstress.user_work.options import (
    BEHAVIOUR,
    CHECKS,
    COMPANIONS,
    DATA,
    ITS_OWN,
    MOST_INVARIANTS,
    NO_DATA,
    NO_OPTIONS,
    NOWHERE,
    SEED,
    SWEPT,
    WHERE,
    Data,
    DataOptions,
    Invariant,
    Where,
    check_together,
    drivers,
    name,
    on_target,
    read,
)
from sqlstress.user_work.statements import dialect_of

# What a case of an application says beside what all cases say.


@dataclass(frozen=True, slots=True)
class Weighted:
    """A transaction of the application."""

    name: str
    """The name of its function."""
    weight: int = 1
    """How often it is called, relative to the others."""


def app_file(value: Any) -> str:
    """Read the name of a Python file."""
    found = name(value)
    if not found.endswith(".py"):
        raise ValueError(f"{found!r:.60} is no Python file: its name ends with .py")
    return found


@dataclass(frozen=True, slots=True)
class App:
    """An application of the user's, as a Python file declares it."""

    file: str = ""
    """The Python file."""
    digest: str = ""
    """The SHA-256 of that file; what it imports is not in it."""
    transactions: tuple[Weighted, ...] = ()
    """Its transactions."""
    data: Data = NO_DATA
    """The database that they find, and what must hold of it."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that the case has in another form."""

    file: str | None = option(
        app_file,
        None,
        LOAD,
        "A Python file that declares transactions: see docs/app.md.",
        metavar="FILE",
        argument=ONE,
    )
    data: DataOptions = NO_OPTIONS
    where: Where = NOWHERE


MOST = 4 << 20
"""Bytes of a Python file."""

PATIENCE_MS = 15_000
"""How long our own connections wait for a lock. A transaction that takes a minute is taken for hung then."""

AppRequest = Request[App, Extra]


def cases(request: AppRequest) -> Iterator[Case]:
    """Yield the cases, one for each number of processes, each target and each rate. Raises UsageError."""
    firsts = [_first(request, driver) for driver in drivers(request, request.extra.where)]
    for concurrency in request.some("concurrency"):
        for first in firsts:
            yield from at_rates(request, replace(first, concurrency=concurrency))


def _first(request: AppRequest, driver: str) -> Case:
    """Return the first case on the target of a driver. Raises UsageError."""
    # Here, because help and the reading of old reports need neither processes nor SQLite.
    from sqlstress.experiments.app import apart
    from sqlstress.user_work.options import journal_mode_apart

    file, data = request.extra.file, read(request.extra.data, dialect_of(driver))
    if file is None:
        raise UsageError("app needs a Python file: sqlstress app bank.py.")
    text = text_of(file, MOST)
    # First: to look at a file is to tell it of a database, which takes what its target needs.
    bare = on_target(request, replace(request.case, settings=_kept(request)), driver, request.extra.where)
    if data.database:
        journal_mode_apart(data.database)  # which says what is no database
    seen = apart.look(file, driver)
    app = App(
        file,
        digest(text),
        tuple(Weighted(name, weight) for name, weight in seen.weights.items()),
        _checked(data, file, seen.checks),
    )
    return check_together(replace(request, case=replace(bare, spec=app)), app.data)


def _kept(request: AppRequest) -> Settings:
    """Return the settings of our own connections: what the application has set is left alone."""
    return request.with_settings(journal_mode=KEPT, synchronous=None, busy_timeout_ms=PATIENCE_MS)


def _checked(data: Data, file: str, names: tuple[str, ...]) -> Data:
    """Return what must hold, the checks of the file before the others."""
    checks = (*(Invariant(name, f"{file}:{name}") for name in names), *data.checks)
    if len(checks) > MOST_INVARIANTS:
        raise UsageError(f"these are more than {MOST_INVARIANTS} checks.")
    return replace(data, checks=checks)


def named(case: Case) -> str:
    """Return which application a case runs."""
    return str(case.spec.file)


def traits(case: Case) -> dict[str, str]:
    """Return a case in words, by option."""
    data = case.spec.data
    own = {"setup": f"{data.setup} {data.setup_digest}", "database": data.database, "check": str(data.checks)}
    return {**traits_there(case), "file": f"{case.spec.file}", **own}


APP = Experiment(
    name="app",
    spec=App,
    key="app",
    command=CommandLine(
        name="app",
        summary="Your application: the transactions of a Python file, by N processes at once.",
        help=(
            "Measure the transactions that a Python file declares, by N processes at once, with your own "
            "library.\n\n"
            "The file says how a database is set up, what the transactions are, how often each comes, and "
            "what must hold of the data. What your connections really run with is shown beside the "
            "figures."
        ),
        example="sqlstress app examples/app/bank.py",
    ),
    options=(
        *chosen(options_of(Extra), "file"),
        *DATA,
        *SWEPT,
        *WHERE,
        *CHECKS,
        *common("verify"),
        otherwise("max-failed", default="0%"),
        *SEED,
    ),
    extra=Extra,
    without=ITS_OWN,
    cases=cases,
    alike=Alike(traits=traits),
    behaviour=replace(BEHAVIOUR, sets=False),
    words=Words(work_of=named, in_label=frozenset(("file",)), strangers="a transaction, or another program,"),
    work="sqlstress.experiments.app.work:AppWork",
    worker="sqlstress.experiments.app.worker:AppSource",
    shown="sqlstress.experiments.app.show:AppShown",
    companions=COMPANIONS,
)
