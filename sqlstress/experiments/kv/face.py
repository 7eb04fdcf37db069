"""The key-value experiment, and its preset: the published script's measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from sqlstress.errors import UsageError
from sqlstress.experiment import Experiment
from sqlstress.experiments.kv import targets
from sqlstress.experiments.kv.sizes import check_sizes
from sqlstress.experiments.kv.spec import Checkpointing, Extra, Load
from sqlstress.options.option import chosen, options_of
from sqlstress.options.parsing import choice
from sqlstress.plan.ask import Ask, check_locking, is_exclusive
from sqlstress.plan.rate import AT_A_RATE, at_rates, check_rate
from sqlstress.report.case import COMMON, SETTINGS, Case, Settings, common, otherwise
from sqlstress.report.server import Server
from sqlstress.report.traits import UNSET, layout
from sqlstress.statistics.units import format_duration
from sqlstress.target import for_keyvalue, told
from sqlstress.targets import target_of
from sqlstress.targets.asked import OF_SERVERS, traits_there

OPERATION_S, KEY_S, BUCKET_S = 150e-6, 3e-6, 5e-3
"""What an operation, a key to preload, and a file to make take, about."""

PUBLISHED = Case(
    workload="classic",
    duration_s=0.0,
    warmup_s=0.0,
    ops=5000,
    settings=Settings(synchronous=None),
    spec=Load(key_space=(1 << 31) + 1, begin="deferred"),
)
"""The published script's measurement: what `--preset classic` fixes; None: left alone."""
_FREE = ("buckets", "concurrency", "driver", "target", "repeat", "seed", "verify", "max-failed", "preset")
"""What it leaves to the user."""
_NOT_PUBLISHED = {
    **dict.fromkeys(AT_A_RATE, "asks for one pair after the other"),
    **dict.fromkeys(OF_SERVERS, "is SQLite's"),
}

DRIVER = otherwise("driver", parse=choice(*for_keyvalue()), help=told(for_keyvalue()))

Asked = Ask[Load, Extra]


def cases(asked: Asked) -> Iterator[Case]:
    """Yield the cases, layouts outside, then concurrencies, targets, rates. Raises UsageError."""
    if "checkpoint-interval" in asked.given and not _beside(asked):
        raise UsageError("--checkpoint-interval needs --checkpointer or --pinned-reader.")
    drivers = targets.drivers(asked)
    first = _published(asked) if asked.extra.preset == "classic" else _checked(asked, drivers)
    targets.check_options(asked, drivers)
    for buckets in asked.some("buckets"):
        for concurrency in asked.some("concurrency"):
            for driver in drivers:
                case = replace(first, driver=driver, buckets=buckets, concurrency=concurrency)
                yield from at_rates(asked, targets.checked(case, asked.extra))


def _beside(asked: Asked) -> bool:
    """Return whether anything runs beside the load."""
    return asked.extra.checkpointing.mode != "none" or asked.extra.checkpointing.pinned_reader


def _published(asked: Asked) -> Case:
    """Return the published script's case. Raises UsageError when something else was asked for too."""
    if _beside(asked):
        name = "checkpointer" if asked.extra.checkpointing.mode != "none" else "pinned-reader"
        raise UsageError(_contradiction(name, "has none"))
    for name, what in _NOT_PUBLISHED.items():
        if name in asked.given:
            raise UsageError(_contradiction(name, what))
    for part, fixed in (
        (asked.case, PUBLISHED),
        (asked.settings, PUBLISHED.settings),
        (asked.spec, PUBLISHED.spec),
    ):
        for field, option in options_of(cast(Any, type(part))).items():
            if option.name in asked.given and option.name not in _FREE:
                value = getattr(fixed, field)
                if getattr(part, field) != value:
                    raise UsageError(_contradiction(option.name, _fixed(option.name, value)))
    case = _counted(asked)
    return replace(
        PUBLISHED,
        driver=case.driver,
        repeat=case.repeat,
        seed=case.seed,
        verify=case.verify,
        max_failed=case.max_failed,
    )


def _counted(asked: Asked) -> Case:
    """Return the case; a number of operations is asked for once, unless something else is said."""
    return asked.case if "repeat" in asked.given else replace(asked.case, repeat=1)


def _contradiction(name: str, what: str) -> str:
    return f"--{name} contradicts --preset classic, which {what}. Leave one of them out."


def _fixed(name: str, value: object) -> str:
    unset = value in (None, ()) or name in ("duration", "warmup")
    return (
        "leaves it unset" if unset else f"fixes it at {COMMON[name].default if name in SETTINGS else value}"
    )


def _checked(asked: Asked, drivers: Sequence[str]) -> Case:
    """Return the case. Raises UsageError when options contradict each other."""
    check_sizes(asked.spec)
    check_rate(asked)
    case, beside = asked.case, asked.extra.checkpointing
    for name in ("duration", "warmup"):
        if case.ops is not None and name in asked.given:
            raise UsageError(f"--ops takes the place of a window: leave out --ops or --{name}.")
    if "begin" in asked.given and asked.spec.batch == 1 and not asked.spec.update_ratio:
        raise UsageError(
            "--begin is of transactions of several statements: give --batch or --update-ratio, or leave it."
        )
    if _beside(asked):
        _check_checkpointing(asked)
        case = replace(case, spec=replace(asked.spec, checkpointing=beside))
    case = replace(case, spec=replace(case.spec, loop=targets.loop_for(asked, drivers)))
    check_locking(asked)
    if beside.mode != "none":
        case = replace(case, settings=asked.with_settings(wal_autocheckpoint=0))
    return case if case.ops is None else replace(case, warmup_s=0.0, repeat=_counted(asked).repeat)


def _check_checkpointing(asked: Asked) -> None:
    """Refuse what a process beside the workers can't do."""
    mode, settings = asked.extra.checkpointing.mode, asked.settings
    which = "--checkpointer" if mode != "none" else "--pinned-reader"
    if settings.journal_mode != "wal":
        raise UsageError(f"{which} needs a WAL: leave out --journal-mode {settings.journal_mode}.")
    if not target_of(asked.case.driver).STORES:
        raise UsageError(f"{which} needs a database: the dry driver stores nothing.")
    if is_exclusive(settings):
        raise UsageError(f"{which} is a process of its own, and locking_mode=exclusive lets one in.")
    if mode != "none" and "wal-autocheckpoint" in asked.given and settings.wal_autocheckpoint:
        raise UsageError(
            "--checkpointer takes the workers' checkpoints from them: leave out --wal-autocheckpoint."
        )


def _guess_s(case: Case) -> float:
    load = case.duration_s + case.warmup_s
    if case.ops is not None:
        load = case.ops * case.concurrency * OPERATION_S
    # The published script preloads nothing.
    keys = case.spec.key_space if case.workload == KV.name else 0
    return load + KEY_S * keys + BUCKET_S * case.buckets


def _traits(case: Case) -> dict[str, str]:
    """Return a case by option; who checkpoints is one, whatever follows from it."""
    beside = case.spec.checkpointing or Checkpointing()
    own = traits_there(case)
    often = beside.interval_s != Checkpointing().interval_s
    every = f" every {format_duration(beside.interval_s)}" if often else ""
    pinned = " + pinned reader" if beside.pinned_reader else ""
    if beside.mode != "none":
        own["wal-autocheckpoint"] = UNSET  # it has to be 0 then
    return {**own, "checkpointer": f"{beside.mode}{every}{pinned}"}


def _same_work(case: Case) -> Case:
    """Return a case without its loop: where nothing is said of it, each host takes the one that it has."""
    return replace(case, spec=replace(case.spec, loop=Load().loop))


KV = Experiment(
    name="kv",
    spec=Load,
    key="load",
    beside=("checkpointing",),
    command="kv",
    summary="Random gets and replaces by N processes (the default).",
    help="Measure random gets and replaces by N processes, on one database or on hash-partitioned files.",
    example="sqlstress kv --concurrency 1-8 --buckets 1,20 -o report.json",
    options=(
        *common("concurrency", "buckets", "duration", "warmup", "ops", *AT_A_RATE, "repeat"),
        *chosen(options_of(Load)),
        *common(*SETTINGS),
        *chosen(options_of(Checkpointing)),
        DRIVER,
        *chosen(options_of(Server)),
        *common("verify", "max-failed"),
        *chosen(options_of(Extra)),
        *common("seed"),
    ),
    main_options=(
        *("concurrency", "buckets", "duration", "read-ratio", "synchronous", "busy", "driver", "preset"),
    ),
    by_itself={"preset": None, "target": None},
    extra=Extra,
    cases=cases,
    does="random gets and writes, in transactions",
    traits=_traits,
    same_work=_same_work,
    work_of=layout,
    loop_of=lambda case: case.spec.loop,
    sweeps=True,
    windowed=True,
    writes=lambda case: case.spec.read_ratio < 1 or case.spec.update_ratio > 0,
    guess_s=_guess_s,
    work="sqlstress.experiments.kv.work:KeyValueWork",
    worker="sqlstress.experiments.kv.worker:open_source",
    imports=lambda case: ("sqlstress.experiments.kv.native",) if case.spec.loop == "native" else (),
    companions={
        "checkpointer": "sqlstress.experiments.kv.beside.companions:Checkpointer",
        "pinned reader": "sqlstress.experiments.kv.beside.companions:PinnedReader",
        "WAL watcher": "sqlstress.experiments.kv.beside.companions:WalWatcher",
    },
    shown="sqlstress.experiments.kv.shown:KeyValueShown",
)

CLASSIC = replace(
    KV,
    name="classic",
    command=None,
    in_plans=False,
    table=KV.name,
    does="the published script, in pairs of a set and a get",
    loop_of=lambda case: "",
    unit="pair",
    operations_each=2,
    windowed=False,
    writes=lambda case: True,
    whole_script=True,
    work="sqlstress.experiments.kv.classic_work:ClassicWork",
    worker="sqlstress.experiments.kv.classic:ClassicSource",
    imports=lambda case: (),
    companions={},
)
