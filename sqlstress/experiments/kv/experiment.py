"""The key-value experiment `kv`, and the experiment `classic` that repeats a published benchmark script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from sqlstress.errors import UsageError
from sqlstress.experiment import CommandLine, Experiment
from sqlstress.experiments.kv.spec import (
    CHECKPOINTER,
    PINNED_READER,
    USUAL_BUSY_TIMEOUT_S,
    WAL_WATCHER,
    Checkpointing,
    KvSelection,
    Load,
    LoadRequest,
)
from sqlstress.options.option import options_of, select_options
from sqlstress.options.parsing import choice
from sqlstress.report.case import (
    COMMON,
    DEFAULT_TEXT,
    SETTINGS,
    Case,
    Server,
    Settings,
    common,
    layout,
    otherwise,
)
from sqlstress.request import (
    OPEN_LOOP_OPTIONS,
    SERVER_OPTIONS,
    cases_at_rates,
    check_locking,
    check_options,
    check_servers,
    check_window,
    drivers_of,
    is_exclusive,
    supported_traits,
)
from sqlstress.statistics.units import format_duration
from sqlstress.target import driver_help, keyvalue_drivers, stores_nothing
from sqlstress.targets import target_of

if TYPE_CHECKING:
    from sqlstress.engine.protocols import Companion
    from sqlstress.experiments.kv.show import KeyValueShown
    from sqlstress.experiments.kv.work import KeyValueWork, PresetWork


_OF_ANY = (*SETTINGS, "begin")
"""Options that are an error if no selected target (SQLite, PostgreSQL) supports them.

If at least one target supports such an option, the other targets ignore it.
"""
_OF_ALL = ("checkpointer", "checkpoint-interval", "pinned-reader", "preset")
"""Options that are an error if a selected target (SQLite, PostgreSQL) does not support them."""
_FREE = frozenset(
    {"buckets", "concurrency", "driver", "target", "repeat", "seed", "verify", "max-failed", "preset"}
)
"""Options that may be combined with `--preset classic`."""
PUBLISHED = Case(
    workload="classic",
    duration_s=0.0,
    warmup_s=0.0,
    ops=5000,
    settings=Settings(synchronous=None),
    spec=Load(key_space=(1 << 31) + 1, begin="deferred"),
)
"""Case (set of options) of `--preset classic`. A setting is None if the script does not set it."""
MAX_DATA_BYTES = 1 << 40
"""Maximum size of all values together, in bytes. Every key gets a value before the load."""
MAX_TRANSACTION_BYTES = 1 << 30
"""Maximum size of the rows that a transaction writes, in bytes. A worker holds these rows in memory."""


def _companion(request: LoadRequest) -> str:
    checkpointing = request.selection.checkpointing
    return "checkpointer" if checkpointing.mode != "none" else "pinned-reader" * checkpointing.pinned_reader


def _repeat(request: LoadRequest) -> int:
    return request.case.repeat if "repeat" in request.given else 1


def _published(request: LoadRequest) -> Case:
    for name, behaviour in _contradictions(request):
        raise UsageError(f"--{name} contradicts --preset classic, which {behaviour}. Leave one of them out.")
    free = {name: getattr(request.case, name) for name in ("driver", "seed", "verify", "max_failed")}
    return replace(PUBLISHED, **free, repeat=_repeat(request))


def _contradictions(request: LoadRequest) -> Iterator[tuple[str, str]]:
    """Yield (option, behaviour of the published script) for each option that contradicts the script."""
    contradicting = request.given - _FREE
    if name := _companion(request):
        yield name, "has none"
    yield from (
        (name, "asks for one pair after the other") for name in OPEN_LOOP_OPTIONS if name in contradicting
    )
    yield from ((name, "is SQLite's") for name in SERVER_OPTIONS if name in contradicting)
    for part, fixed in (
        (request.case, PUBLISHED),
        (request.settings, PUBLISHED.settings),
        (request.spec, PUBLISHED.spec),
    ):
        for field, option in options_of(cast(Any, type(part))).items():
            value = getattr(fixed, field)
            if option.name in contradicting and getattr(part, field) != value:
                unset = value in (None, ()) or option.name in ("duration", "warmup")
                shown = COMMON[option.name].default if option.name in SETTINGS else value
                yield option.name, "leaves it unset" if unset else f"fixes it at {shown}"


def _checked(request: LoadRequest, drivers: Sequence[str]) -> Case:
    case, load, checkpointing = request.case, request.spec, request.selection.checkpointing
    if load.read_ratio + load.update_ratio > 1 + 1e-9:
        raise UsageError(
            "--read-ratio and --update-ratio add up to more than 1. Lower one of them; the rest are replaces."
        )
    if load.batch > load.key_space:
        raise UsageError(
            "--batch is larger than --key-space, but a transaction writes distinct keys. Lower --batch."
        )
    sizes = (
        ("key-space", load.key_space, MAX_DATA_BYTES, "1 TiB"),
        ("batch", load.batch, MAX_TRANSACTION_BYTES, "1 GiB"),
    )
    for name, count, most, bound in sizes:
        if count * load.value_size > most:
            raise UsageError(f"--{name} times --value-size is more than {bound}. Lower one of them.")
    check_window(request)
    if "begin" in request.given and load.batch == 1 and not load.update_ratio:
        raise UsageError(
            "--begin needs transactions of several statements. Add --batch or --update-ratio, or leave "
            "it out."
        )
    if _companion(request):
        _check_checkpointing(request)
        load = replace(load, checkpointing=checkpointing)
    case = replace(case, spec=replace(load, loop=_loop_for(request, drivers)))
    check_locking(request)
    if checkpointing.mode != "none":
        case = replace(case, settings=request.with_settings(wal_autocheckpoint=0))
    return case if case.ops is None else replace(case, warmup_s=0.0, repeat=_repeat(request))


def _check_checkpointing(request: LoadRequest) -> None:
    settings, which = request.settings, f"--{_companion(request)}"
    if settings.journal_mode != "wal":
        raise UsageError(f"{which} needs a WAL. Leave out --journal-mode {settings.journal_mode}.")
    if stores_nothing(request.case.driver):
        raise UsageError(f"{which} needs a database. Choose another --driver; dry stores nothing.")
    if is_exclusive(settings):
        raise UsageError(
            f"{which} is a further process, but locking_mode=exclusive allows one only. Leave one of them "
            "out."
        )
    autocheckpoints = "wal-autocheckpoint" in request.given and settings.wal_autocheckpoint
    if request.selection.checkpointing.mode != "none" and autocheckpoints:
        raise UsageError("--checkpointer turns off automatic checkpoints. Leave out --wal-autocheckpoint.")


def _loop_for(request: LoadRequest, drivers: Sequence[str]) -> str:
    loop, at_a_rate = request.spec.loop, request.case.arrivals
    if at_a_rate and loop == "native":
        raise UsageError("--loop native does not support --rate. Use --loop python.")
    if at_a_rate or loop == "python":
        return "python"
    lacking = next(((name, why) for name in drivers if (why := target_of(name).lacks_native(name))), None)
    if lacking and loop == "native":
        name, why = lacking
        raise UsageError(f"--loop native is not available with --driver {name}: {why}. Use --loop python.")
    return "python" if lacking else "native"


WINDOW_S, PASSES = 0.25, 8
"""Default length of a measured window, in seconds, and default number of trials per case."""

OPERATION_S, KEY_S, BUCKET_S = 150e-6, 0.3e-6, 1e-3
"""Estimated time per operation, per key (to restore and check it), and per database file, in seconds."""


def _load_s(case: Case) -> float:
    """Return the estimated duration of a trial, in seconds, without the time to fill and check keys."""
    operations = (case.ops or 0) * case.concurrency
    load = case.duration_s + case.warmup_s if case.ops is None else operations * OPERATION_S
    return load + BUCKET_S * case.buckets


class KeyValueExperiment(Experiment):
    """The experiment `kv`: random reads and writes of keys."""

    name = "kv"
    spec = Load
    key = "load"
    top_level_fields = ("checkpointing",)
    command = CommandLine(
        name="kv",
        summary="Random reads and writes of keys by N processes (default).",
        help=(
            "Measure random reads and writes of keys by N processes, on one database file or several. It "
            "takes about 30 seconds, and longer on a busy machine."
        ),
        example="sqlstress kv --concurrency 1-8 --buckets 1,20 -o report.json",
        main_options=(
            *("concurrency", "buckets", "read-ratio", "synchronous", "duration", "where", "driver", "output"),
        ),
    )
    options = (
        *common("concurrency", "buckets"),
        # Many short windows are better than few long windows: each case is measured at more different times.
        otherwise("duration", default=format_duration(WINDOW_S)),
        otherwise("warmup", default="30ms"),
        *common("ops", *OPEN_LOOP_OPTIONS),
        otherwise("repeat", default=PASSES),
        *select_options(options_of(Load)),
        *common(*SETTINGS),
        *select_options(options_of(Checkpointing)),
        otherwise("driver", parse=choice(*keyvalue_drivers()), help=driver_help(keyvalue_drivers())),
        *select_options(options_of(Server)),
        *common("verify", "max-failed"),
        *select_options(options_of(KvSelection)),
        *common("name", "seed"),
    )
    selection = KvSelection
    single_case_values = MappingProxyType({"name": None, "preset": None, "target": None})
    sweeps = True
    windowed = True
    keeps_workers = True
    activity = "random gets and writes, in transactions"

    def cases(self, request: LoadRequest) -> Iterator[Case]:
        """Yield a case per combination of buckets, concurrency, target and rate. Raises UsageError."""
        selection = request.selection
        if "checkpoint-interval" in request.given and not _companion(request):
            raise UsageError(
                "--checkpoint-interval needs --checkpointer or --pinned-reader. Add one of them."
            )
        drivers = drivers_of(request, selection.target, keyvalue_drivers())
        first = _published(request) if selection.preset == "classic" else _checked(request, drivers)
        check_options(request, drivers, _OF_ANY, any)
        check_options(request, drivers, _OF_ALL, all)
        check_servers(request, drivers, keyvalue_drivers())
        for driver in drivers:
            if request.spec.where and (problem := target_of(driver).untold(driver)):
                raise UsageError(f"--where is not available: {problem}. Leave it out.")
        for buckets in request.values_for("buckets"):
            for concurrency in request.values_for("concurrency"):
                for driver in drivers:
                    case = replace(first, driver=driver, buckets=buckets, concurrency=concurrency)
                    yield from cases_at_rates(
                        request, target_of(driver).checked(case, selection.server, selection.anyway)
                    )

    def table(self) -> str:
        return KeyValueExperiment.name

    def traits(self, case: Case) -> dict[str, str]:
        """Return the case's options as text, by name.

        The options of a checkpointer and of a pinned reader are combined under the name "checkpointer".
        """
        checkpointing, default = case.spec.checkpointing or Checkpointing(), Checkpointing()
        traits = supported_traits(case)
        if case.name:
            return traits
        if checkpointing.mode != "none":
            # A checkpointer sets this option to 0. Hide that, so that cases differ only in "checkpointer".
            traits["wal-autocheckpoint"] = DEFAULT_TEXT
        trait = checkpointing.mode
        if checkpointing.interval_s != default.interval_s:
            trait += f" every {format_duration(checkpointing.interval_s)}"
        return {**traits, "checkpointer": trait + " + pinned reader" * checkpointing.pinned_reader}

    def work_key(self, case: Case) -> Case:
        # Some computers lack the loop in C. Results of both loops must remain comparable, so the key, which
        # identifies comparable work, has the default loop.
        return replace(case, spec=replace(case.spec, loop=Load().loop))

    def work_label(self, case: Case) -> str:
        return layout(case)

    def writes(self, case: Case) -> bool:
        load: Load = case.spec
        return load.read_ratio < 1 or load.update_ratio > 0

    def loop_of(self, case: Case) -> str:
        return str(case.spec.loop)

    def estimated_s(self, case: Case) -> float:
        load: Load = case.spec
        return _load_s(case) + KEY_S * load.key_space

    def needs_longer_window(self, case: Case) -> bool:
        may_wait = case.settings.busy_timeout_ms > USUAL_BUSY_TIMEOUT_S * 1000
        is_shared = case.concurrency > 1 and not case.rate and not case.server
        writes = self.writes(case) and not stores_nothing(case.driver)
        return self.has_default_windows(case) and writes and may_wait and is_shared

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> KeyValueWork:
        from sqlstress.experiments.kv.work import KeyValueWork

        return KeyValueWork(case, place, salt, carry)

    def worker_half(self) -> Callable[..., Any]:
        from sqlstress.experiments.kv.worker import open_source

        return open_source

    def presenter(self) -> KeyValueShown:
        from sqlstress.experiments.kv.show import KeyValueShown

        return KeyValueShown()

    def companions(self) -> dict[str, Callable[..., Companion]]:
        from sqlstress.experiments.kv.companions import Checkpointer, PinnedReader, WalWatcher

        return {CHECKPOINTER: Checkpointer, PINNED_READER: PinnedReader, WAL_WATCHER: WalWatcher}

    def preloads(self, case: Case) -> tuple[str, ...]:
        return ("sqlstress.experiments.kv.native_loop",) if case.spec.loop == "native" else ()


class ClassicExperiment(KeyValueExperiment):
    """The experiment `classic`: a published benchmark script, measured with `kv --preset classic`."""

    name = "classic"
    command = CommandLine()
    windowed = False
    common_start = False
    activity = "the published script, in pairs of a set and a get"

    def unit(self, case: Case) -> str:
        return "pair"

    def count_transactions(self, case: Case, operations: int) -> int:
        return operations // 2

    def loop_of(self, case: Case) -> str:
        return ""

    def estimated_s(self, case: Case) -> float:
        return _load_s(case)  # The script fills no table before the load.

    def open_work(self, case: Case, place: Any, salt: int, carry: dict[Any, Any]) -> PresetWork:
        from sqlstress.experiments.kv.work import PresetWork

        return PresetWork(case, place, salt, carry)

    def worker_half(self) -> Callable[..., Any]:
        from sqlstress.experiments.kv.worker import ClassicSource

        return ClassicSource

    def companions(self) -> dict[str, Callable[..., Any]]:
        return {}
