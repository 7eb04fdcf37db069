"""The key-value experiment, and its preset: the published script's measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlstress.errors import UsageError
from sqlstress.experiment import Alike, Behaviour, CommandLine, Experiment, Words
from sqlstress.options.option import LOAD, SQLITE, TRUST, chosen, either, option, options_of
from sqlstress.options.parsing import choice, duration_with_unit, ratio, switch, whole
from sqlstress.plan import AT_A_RATE, Request, at_rates, check_locking, check_rate, is_exclusive
from sqlstress.report.case import BEGINS, COMMON, SETTINGS, UNSET, Case, Settings, common, layout, otherwise
from sqlstress.report.server import Server, anyway_option, target_option
from sqlstress.statistics.units import format_duration
from sqlstress.target import for_keyvalue, target_names, told
from sqlstress.targets import options as target_options
from sqlstress.targets import target_of
from sqlstress.targets.options import OF_SERVERS, traits_there

# What a key-value case says beside what all cases say.


DISTRIBUTIONS = ("uniform", "zipfian", "sequential")
KEY_TYPES = ("int", "text", "blob")
LOOPS = ("native", "python")
CHECKPOINT_MODES = ("none", "passive", "restart", "truncate")


@dataclass(frozen=True, slots=True)
class Checkpointing:
    """What happens to the WAL beside the load, by processes of their own."""

    mode: str = option(
        choice(*CHECKPOINT_MODES),
        "none",
        SQLITE,
        f"How a process of its own checkpoints: {either(CHECKPOINT_MODES[1:])}; "
        "the workers' autocheckpoint is 0 then.",
        name="checkpointer",
        metavar="MODE",
    )
    interval_s: float = option(
        duration_with_unit(0.001),
        "20ms",
        SQLITE,
        "Pause between two checkpoints, and between two looks at the WAL, with its unit.",
        name="checkpoint-interval",
        metavar="TIME",
        meaning="Pause between two checkpoints, and between two looks at the WAL, in seconds.",
    )
    pinned_reader: bool = option(
        switch,
        False,
        SQLITE,
        "One more process holds a snapshot open: shows what starves a checkpoint.",
        flag=True,
        meaning="Whether one more process holds a snapshot open over the whole window.",
    )


@dataclass(frozen=True, slots=True)
class Load:
    """What the workers of a key-value case do."""

    read_ratio: float = option(
        ratio, "50%", LOAD, "Share of gets: 90% or 0.9.", metavar="SHARE", meaning="Share of gets, 0 to 1."
    )
    update_ratio: float = option(
        ratio,
        "0%",
        LOAD,
        "Share of transactions that read a counter and write it plus one: 20% or 0.2.",
        metavar="SHARE",
        meaning="Share of transactions that read a counter and write it plus one, 0 to 1.",
    )
    key_space: int = option(whole(1, 10**8), 100_000, LOAD, "Number of keys, all preloaded.")
    distribution: str = option(
        choice(*DISTRIBUTIONS),
        "uniform",
        LOAD,
        f"How keys are drawn: {either(DISTRIBUTIONS)}.",
        metavar="NAME",
    )
    key_type: str = option(
        choice(*KEY_TYPES), "int", LOAD, f"Type of the keys: {either(KEY_TYPES)}.", metavar="TYPE"
    )
    value_size: int = option(whole(8, 1 << 20), 8, LOAD, "Bytes in a value, 8 or more.", metavar="BYTES")
    batch: int = option(whole(1, 100_000), 1, LOAD, "Replaces in a transaction.")
    begin: str = option(
        choice(*BEGINS),
        "immediate",
        LOAD,
        f"How a transaction of several statements begins: {either(BEGINS)}.",
        metavar="HOW",
    )
    loop: str = option(
        choice(*LOOPS),
        None,
        LOAD,
        "What drives the load: native (C, in the driver's library) or python; native where it can be had.",
        metavar="LOOP",
        meaning="What drove the load: native, in C, or python.",
        unsaid="python",
    )
    where: bool = option(
        switch,
        False,
        TRUST,
        "Tell where the time of an operation goes, and who held the lock.",
        flag=True,
        meaning="Whether it is told where the time of an operation goes, and who held the lock.",
    )
    checkpointing: Checkpointing | None = None
    """What processes beside the workers do to the WAL; None: there are none."""


_UNSAID = Server()


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that only say which cases there are."""

    preset: str | None = option(
        choice("classic"), None, TRUST, "classic: the published script's measurement.", metavar="NAME"
    )
    target: tuple[str, ...] | None = target_option(target_names(for_keyvalue()))
    anyway: bool = anyway_option()
    checkpointing: Checkpointing = Checkpointing()
    """What is asked for beside the load."""
    server: Server = _UNSAID
    """What is said of a server."""


# On which targets a key-value case is measured, and what of the options means something there.


_OF_ANY = (*SETTINGS, "begin")
"""Options that are refused where they mean something to no target."""
_OF_ALL = ("checkpointer", "checkpoint-interval", "pinned-reader", "preset")
"""Options that are refused where they mean nothing to a target."""


def drivers_of(request: Request[Load, Extra]) -> tuple[str, ...]:
    """Return the drivers that are asked for, one of each target. Raises UsageError."""
    return target_options.drivers(request, request.extra.target, for_keyvalue())


def check_options(request: Request[Load, Extra], names: Sequence[str]) -> None:
    """Raise UsageError for an option that means nothing to these drivers."""
    target_options.check_options(request, names, _OF_ANY, any)
    target_options.check_options(request, names, _OF_ALL, all)
    target_options.check_servers(request, names, for_keyvalue())
    for name in names:
        if request.spec.where and (problem := target_of(name).untold(name)):
            raise UsageError(f"--where can't be had: {problem}. Leave it out.")


def checked(case: Case, extra: Extra) -> Case:
    """Return a case as its target carries it out. Raises UsageError."""
    return target_of(case.driver).checked(case, extra.server, extra.anyway)


def loop_for(request: Request[Load, Extra], names: Sequence[str]) -> str:
    """Return what drives the load on all of these drivers: what was asked for, or native where that can be
    had. Raises UsageError.
    """
    if request.case.arrivals and request.spec.loop == "native":
        raise UsageError("--loop native knows no --rate: use --loop python.")
    if request.case.arrivals or request.spec.loop == "python":
        return "python"
    lacking = next(((name, why) for name in names if (why := target_of(name).lacks_native(name))), None)
    if lacking and request.spec.loop == "native":
        name, why = lacking
        raise UsageError(f"--loop native is not to be had with the driver {name}: {why}. Use --loop python.")
    return "python" if lacking else "native"


# What a key-value load may ask for, and what contradicts itself.


MOST_DATA = 1 << 40
"""Bytes of all values together, each key's being preloaded."""
MOST_WRITTEN = 1 << 30
"""Bytes that a transaction writes: the worker holds them in memory."""


def check_sizes(load: Load) -> None:
    """Raise UsageError for what can't be."""
    if load.read_ratio + load.update_ratio > 1 + 1e-9:
        raise UsageError(
            "--read-ratio and --update-ratio add up to more than 1. Lower one of them; the rest are replaces."
        )
    if load.batch > load.key_space:
        raise UsageError("--batch is larger than --key-space: a transaction writes distinct keys.")
    sizes = (("key-space", load.key_space, MOST_DATA, "1 TiB"), ("batch", load.batch, MOST_WRITTEN, "1 GiB"))
    for name, count, most, bound in sizes:
        if count * load.value_size > most:
            raise UsageError(f"--{name} times --value-size is more than {bound}: lower one of them.")


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

LoadRequest = Request[Load, Extra]


def cases(request: LoadRequest) -> Iterator[Case]:
    """Yield the cases, layouts outside, then concurrencies, targets, rates. Raises UsageError."""
    if "checkpoint-interval" in request.given and not _beside(request):
        raise UsageError("--checkpoint-interval needs --checkpointer or --pinned-reader.")
    drivers = drivers_of(request)
    first = _published(request) if request.extra.preset == "classic" else _checked(request, drivers)
    check_options(request, drivers)
    for buckets in request.some("buckets"):
        for concurrency in request.some("concurrency"):
            for driver in drivers:
                case = replace(first, driver=driver, buckets=buckets, concurrency=concurrency)
                yield from at_rates(request, checked(case, request.extra))


def _beside(request: LoadRequest) -> bool:
    """Return whether anything runs beside the load."""
    return request.extra.checkpointing.mode != "none" or request.extra.checkpointing.pinned_reader


def _published(request: LoadRequest) -> Case:
    """Return the published script's case. Raises UsageError when something else was asked for too."""
    if _beside(request):
        name = "checkpointer" if request.extra.checkpointing.mode != "none" else "pinned-reader"
        raise UsageError(_contradiction(name, "has none"))
    for name, what in _NOT_PUBLISHED.items():
        if name in request.given:
            raise UsageError(_contradiction(name, what))
    for part, fixed in (
        (request.case, PUBLISHED),
        (request.settings, PUBLISHED.settings),
        (request.spec, PUBLISHED.spec),
    ):
        for field, known in options_of(cast(Any, type(part))).items():
            if known.name in request.given and known.name not in _FREE:
                value = getattr(fixed, field)
                if getattr(part, field) != value:
                    raise UsageError(_contradiction(known.name, _fixed(known.name, value)))
    case = _counted(request)
    return replace(
        PUBLISHED,
        driver=case.driver,
        repeat=case.repeat,
        seed=case.seed,
        verify=case.verify,
        max_failed=case.max_failed,
    )


def _counted(request: LoadRequest) -> Case:
    """Return the case; a number of operations is asked for once, unless something else is said."""
    return request.case if "repeat" in request.given else replace(request.case, repeat=1)


def _contradiction(name: str, what: str) -> str:
    return f"--{name} contradicts --preset classic, which {what}. Leave one of them out."


def _fixed(name: str, value: object) -> str:
    unset = value in (None, ()) or name in ("duration", "warmup")
    return (
        "leaves it unset" if unset else f"fixes it at {COMMON[name].default if name in SETTINGS else value}"
    )


def _checked(request: LoadRequest, drivers: Sequence[str]) -> Case:
    """Return the case. Raises UsageError when options contradict each other."""
    check_sizes(request.spec)
    check_rate(request)
    case, beside = request.case, request.extra.checkpointing
    for name in ("duration", "warmup"):
        if case.ops is not None and name in request.given:
            raise UsageError(f"--ops takes the place of a window: leave out --ops or --{name}.")
    if "begin" in request.given and request.spec.batch == 1 and not request.spec.update_ratio:
        raise UsageError(
            "--begin is of transactions of several statements: give --batch or --update-ratio, or leave it."
        )
    if _beside(request):
        _check_checkpointing(request)
        case = replace(case, spec=replace(request.spec, checkpointing=beside))
    case = replace(case, spec=replace(case.spec, loop=loop_for(request, drivers)))
    check_locking(request)
    if beside.mode != "none":
        case = replace(case, settings=request.with_settings(wal_autocheckpoint=0))
    return case if case.ops is None else replace(case, warmup_s=0.0, repeat=_counted(request).repeat)


def _check_checkpointing(request: LoadRequest) -> None:
    """Refuse what a process beside the workers can't do."""
    mode, settings = request.extra.checkpointing.mode, request.settings
    which = "--checkpointer" if mode != "none" else "--pinned-reader"
    if settings.journal_mode != "wal":
        raise UsageError(f"{which} needs a WAL: leave out --journal-mode {settings.journal_mode}.")
    if not target_of(request.case.driver).STORES:
        raise UsageError(f"{which} needs a database: the dry driver stores nothing.")
    if is_exclusive(settings):
        raise UsageError(f"{which} is a process of its own, and locking_mode=exclusive lets one in.")
    if mode != "none" and "wal-autocheckpoint" in request.given and settings.wal_autocheckpoint:
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
    command=CommandLine(
        name="kv",
        summary="Random gets and replaces by N processes (the default).",
        help="Measure random gets and replaces by N processes, on one database or on hash-partitioned files.",
        example="sqlstress kv --concurrency 1-8 --buckets 1,20 -o report.json",
        main_options=(
            *("concurrency", "buckets", "duration", "read-ratio", "synchronous", "busy", "driver", "preset"),
        ),
    ),
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
    by_itself={"preset": None, "target": None},
    extra=Extra,
    cases=cases,
    words=Words(does="random gets and writes, in transactions", work_of=layout),
    alike=Alike(traits=_traits, same_work=_same_work),
    behaviour=Behaviour(
        loop_of=lambda case: case.spec.loop,
        sweeps=True,
        windowed=True,
        writes=lambda case: case.spec.read_ratio < 1 or case.spec.update_ratio > 0,
        guess_s=_guess_s,
    ),
    work="sqlstress.experiments.kv.work:KeyValueWork",
    worker="sqlstress.experiments.kv.worker:open_source",
    imports=lambda case: ("sqlstress.experiments.kv.native_loop",) if case.spec.loop == "native" else (),
    companions={
        "checkpointer": "sqlstress.experiments.kv.companions:Checkpointer",
        "pinned reader": "sqlstress.experiments.kv.companions:PinnedReader",
        "WAL watcher": "sqlstress.experiments.kv.companions:WalWatcher",
    },
    shown="sqlstress.experiments.kv.show:KeyValueShown",
)

CLASSIC = replace(
    KV,
    name="classic",
    command=CommandLine(),
    alike=replace(KV.alike, table=KV.name),
    words=replace(KV.words, does="the published script, in pairs of a set and a get", unit="pair"),
    behaviour=replace(
        KV.behaviour,
        loop_of=lambda case: "",
        operations_each=2,
        windowed=False,
        writes=lambda case: True,
        whole_script=True,
    ),
    work="sqlstress.experiments.kv.classic_work:ClassicWork",
    worker="sqlstress.experiments.kv.classic_worker:ClassicSource",
    imports=lambda case: (),
    companions={},
)
