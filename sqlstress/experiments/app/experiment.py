"""The experiment with an application of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlstress.errors import NoWork, UsageError
from sqlstress.experiment import Alike, CommandLine, Experiment, Words
from sqlstress.options.option import LOAD, ONE, TRUST, chosen, option, options_of
from sqlstress.options.parsing import switch
from sqlstress.plan import Request, at_rates, traits_there
from sqlstress.report.case import KEPT, Case, common, otherwise
from sqlstress.target import for_programs
from sqlstress.user_work import options
from sqlstress.user_work.options import NO_DATA, NO_OPTIONS, NOWHERE, Data, DataOptions, Invariant, Where
from sqlstress.user_work.statements import dialect_of

MOST = 4 << 20
"""Bytes of a Python file."""
PATIENCE_MS = 15_000
"""How long our own connections wait for a lock. A transaction that takes a minute is taken for hung then."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """A transaction of the application."""

    name: str
    """The name of its function."""
    weight: int = 1
    """How often it is called, relative to the others."""


def app_file(value: Any) -> str:
    """Read the name of a Python file."""
    found = options.name(value)
    if not found.endswith(".py"):
        raise ValueError(f"{found!r:.60} is not a Python file: its name must end with .py")
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
    ledger: bool = option(
        switch,
        False,
        TRUST,
        "Add a row to each transaction that commits (Python's sqlite3), which proves that every acknowledged "
        "commit is there.",
        flag=True,
        meaning="Whether sqlstress adds a row to each transaction that commits.",
    )
    allow_other_files: bool = option(
        switch,
        False,
        LOAD,
        "Let the file open databases outside the trial's folder. Without it they are refused.",
        flag=True,
        meaning="Whether the file may open databases outside the trial's folder.",
    )
    strict: bool = options.strict_option()
    where: bool = options.where_option()


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that the case has in another form."""

    file: str | None = option(
        app_file,
        None,
        LOAD,
        "Python file that declares transactions; see docs/app.md.",
        metavar="FILE",
        argument=ONE,
    )
    data: DataOptions = NO_OPTIONS
    where: Where = NOWHERE


AppRequest = Request[App, Extra]


def cases(request: AppRequest) -> Iterator[Case]:
    """Yield the cases, one for each number of processes, each target and each rate. Raises UsageError."""
    drivers = options.drivers(request, request.extra.where.target, for_programs())
    firsts = [_first(request, driver) for driver in drivers]
    for concurrency in request.some("concurrency"):
        for first in firsts:
            yield from at_rates(request, replace(first, concurrency=concurrency))


def _first(request: AppRequest, driver: str) -> Case:
    """Return the first case on the target of a driver. Raises UsageError."""
    # Here, because help and the reading of old reports need no processes.
    from sqlstress.experiments.app import user_file

    file, data = request.extra.file, options.read(request.extra.data, dialect_of(driver))
    if file is None:
        raise NoWork(
            "app needs a Python file: sqlstress app bank.py.",
            'app needs a Python file. Give file="bank.py".',
        )
    text = options.text_of(file, MOST)
    # Those of our own connections: what the application has set is left alone.
    settings = request.with_settings(journal_mode=KEPT, synchronous=None, busy_timeout_ms=PATIENCE_MS)
    # First: to look at a file is to tell it of a database, which takes what its target needs.
    bare = options.on_target(request, replace(request.case, settings=settings), driver, request.extra.where)
    if data.database:
        options.journal_mode_apart(data.database)  # which says what is no database
    seen = user_file.look(file, driver, allow_others=request.case.spec.allow_other_files)
    if bare.server and request.case.spec.ledger:
        raise UsageError("--ledger needs SQLite. Leave it out, or choose --target sqlite.")
    # The checks of the file come before the others.
    checks = (
        *(Invariant(name, f"{file}:{name}", at_end=last) for name, last in seen.checks.items()),
        *data.checks,
    )
    if len(checks) > options.MOST_INVARIANTS:
        raise UsageError(f"there are more than {options.MOST_INVARIANTS} checks: remove some.")
    data = replace(data, checks=checks)
    transactions = tuple(Weighted(name, weight) for name, weight in seen.weights.items())
    app = replace(
        request.case.spec, file=file, digest=options.digest(text), transactions=transactions, data=data
    )
    return options.check_together(replace(request, case=replace(bare, spec=app)), data)


def _traits(case: Case) -> dict[str, str]:
    data = case.spec.data
    return {
        **traits_there(case),
        "file": f"{case.spec.file}",
        "setup": f"{data.setup} {data.setup_digest}",
        "database": data.database,
        "check": str(data.checks),
    }


APP = Experiment(
    name="app",
    spec=App,
    key="app",
    command=CommandLine(
        name="app",
        summary="Your application: transactions of a Python file, N at once.",
        help=(
            "Measure the transactions that a Python file declares, by N processes at once, with your own "
            "library.\n\n"
            "The file declares how to set up the database, the transactions, their weights, and checks of "
            "the data. The report also shows the settings that your connections really have. It takes half a "
            "minute to two minutes; -c 4 takes less."
        ),
        takes=(".py",),
        main_options=("concurrency", "database", "check", "duration", "repeat", "where", "target", "output"),
        example="sqlstress app examples/app/bank.py",
    ),
    options=(
        *chosen(options_of(Extra), "file"),
        *options.DATA,
        *options.SWEPT,
        *options.WHERE,
        *options.CHECKS,
        *chosen(options_of(App), "allow-other-files", "ledger", "strict", "where"),
        *common("verify"),
        otherwise("max-failed", default="0%"),
        *options.SEED,
    ),
    extra=Extra,
    without=options.ITS_OWN,
    by_itself={"strict": None},
    cases=cases,
    alike=Alike(traits=_traits, same_work=lambda case: replace(case, spec=replace(case.spec, where=False))),
    behaviour=replace(options.BEHAVIOUR, sets=False, own_folder=True),
    words=Words(
        work_of=lambda case: str(case.spec.file),
        in_label=frozenset(("file",)),
        strangers="a transaction, or another program,",
        instead="; let @setup do that once, with your library",
    ),
    work="sqlstress.experiments.app.work:AppWork",
    worker="sqlstress.experiments.app.worker:AppSource",
    shown="sqlstress.experiments.app.show:AppShown",
    imports=lambda case: (*options.IMPORTS, "sqlstress.experiments.app.user_file"),
    companions=options.COMPANIONS,
)
