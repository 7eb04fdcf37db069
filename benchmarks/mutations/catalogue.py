"""The workloads, and what each of their files can suffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.mutations import counters, crash, cycles, keys, kv, methods
from benchmarks.mutations.change import Mutation, Words
from benchmarks.mutations.flips import flip
from benchmarks.mutations.sites import ENTRY, PAGE_HEADER, POINTER, ROW, TRUNK
from benchmarks.mutations.trial import Trial, measure, measure_killed
from sqlstress.experiments.crash.spec import Transactions
from sqlstress.experiments.cycles.experiment import Cycling
from sqlstress.experiments.keys.experiment import ID_MAKERS, ID_TYPES, SCHEMAS, Picks
from sqlstress.experiments.kv.experiment import Load
from sqlstress.experiments.methods.experiment import Method
from sqlstress.report.case import Case, Settings

WAL = Settings(synchronous="off", page_size=512, wal_autocheckpoint=16)
"""Small pages, so that a few rows take several of them."""
ROLLBACK = replace(WAL, journal_mode="delete", wal_autocheckpoint=None)
SALT = 1000

ROWS = ("drop", "restore", "swap", "duplicate", "add", "tear")
"""Changes of rows, as the table heads them."""
BYTES = {
    "row byte": ROW,
    "index byte": ENTRY,
    "pointer": POINTER,
    "page header": PAGE_HEADER,
    "trunk": TRUNK,
}
"""Changes of bytes, as the table heads them: what they are part of."""
CLEAN = "clean"
"""No change at all."""

ONE_ROW = "a transaction is one row"
ONCE = "a row is written once"
NO_INDEX = "there is no index"
NO_FREE_PAGES = "there are no free pages"

Possible = Mapping[str, Mutation | str]
"""What can be changed; a string says why nothing can."""


@dataclass(frozen=True)
class Workload:
    """A workload to be tried."""

    name: str
    case: Callable[[int], Case]
    """Seed → case."""
    changes: Possible
    words: Words
    trials: int = 1
    """Trials over the same files; the last one is verified."""

    def run(self, seed: int, folder: Path, driver: str) -> Trial:
        """Let real processes work on real files."""
        case = replace(self.case(seed), driver=driver, seed=seed)
        if case.workload == "crash":
            return measure_killed(case, folder, SALT, self.words)
        return measure(case, folder, SALT + seed, self.words, self.trials)


def _possible(rows: Mapping[str, Mutation | str], **bytes_: str) -> Possible:
    """Return changes of rows and of bytes; `bytes_` says which bytes there are none of."""
    return {**rows, **{name: flip(part) for name, part in BYTES.items()}, **bytes_}


def _kv(name: str, changes: Mapping[str, Mutation | str], buckets: int = 1, **load: Any) -> Workload:
    settings = WAL if buckets == 1 else ROLLBACK
    case = Case(
        concurrency=2,
        buckets=buckets,
        ops=150,
        settings=settings,
        spec=Load(**{"key_space": 120, "read_ratio": 0.2, **load}),
    )
    possible = _possible(changes, **{"index byte": NO_INDEX, "trunk": NO_FREE_PAGES})
    return Workload(name, lambda seed: case, possible, kv.words)


KV: Possible = {
    "drop": kv.drop,
    "restore": kv.restore,
    "swap": kv.swap,
    "duplicate": kv.duplicate,
    "add": kv.add,
    "tear": ONE_ROW,
}
COUNTERS: Possible = {
    "drop": counters.drop,
    "restore": counters.restore,
    "swap": counters.swap,
    "duplicate": counters.duplicate,
    "add": counters.add,
    "tear": ONE_ROW,
}


def _classic(buckets: int) -> Workload:
    load = Load(key_space=(1 << 31) + 1, begin="deferred")
    case = Case(
        workload="classic", concurrency=2, buckets=buckets, ops=40, warmup_s=0, settings=WAL, spec=load
    )
    name = f"classic, {buckets} file{'s' * (buckets > 1)}"
    changes: Possible = {
        **KV,
        "restore": ONCE,
        "duplicate": kv.duplicate if buckets == 1 else kv.duplicate_elsewhere,
        "add": kv.add_unknown,
    }
    possible = _possible(changes, **{"index byte": NO_INDEX, "trunk": NO_FREE_PAGES})
    return Workload(name, lambda seed: case, possible, kv.words, trials=2)


INSERTS = (("1b1", True), ("BLK", False), ("BLK/n", True), ("JSON", False))
ALLOCATIONS = (*INSERTS, ("SPC", False))
QUERIES = (("1b1", False), ("BLK", False), ("ROW", False), ("VALUES", False), ("JSON", False), ("SPC", False))


def _methods(
    phase: str, variants: tuple[tuple[str, bool], ...], scale: int, changes: Mapping[str, Mutation | str]
) -> Workload:
    def case(seed: int) -> Case:
        name, transaction = variants[seed % len(variants)]
        method = Method(phase, name, transaction, scale, timeout_s=60.0, samples=16, chunk=7)
        return Case(workload="methods", concurrency=2, settings=ROLLBACK, spec=method)

    return Workload(f"methods, {phase}", case, _possible(changes, trunk=NO_FREE_PAGES), methods.words)


def _keys(schema: str, id_type: str) -> Workload:
    def case(seed: int) -> Case:
        made_by = ID_MAKERS[seed % len(ID_MAKERS)] if schema.startswith("id-") else ID_MAKERS[0]
        picks = Picks(schema, id_type, made_by, users=12, picks=10, items=40)
        return Case(workload="keys", concurrency=2, duration_s=0, warmup_s=0, settings=WAL, spec=picks)

    changes: dict[str, Mutation | str] = {
        "drop": keys.drop,
        "restore": ONCE,
        "swap": keys.swap,
        "duplicate": keys.duplicate_elsewhere if schema.startswith("pair-") else keys.duplicate,
        "add": keys.add,
        "tear": keys.tear,
    }
    possible = _possible(changes, trunk=NO_FREE_PAGES)
    return Workload(f"keys, {schema}, {id_type}", case, possible, keys.words)


def _cycles(transaction: str, settings: Settings) -> Workload:
    settings = replace(settings, busy="fair")  # the default lets one wait for long
    cycling = Cycling(cycles=3, rows=30, transaction=transaction)
    case = Case(workload="cycles", concurrency=2, duration_s=0, warmup_s=0, settings=settings, spec=cycling)
    changes: dict[str, Mutation | str] = {
        "drop": cycles.drop,
        "restore": cycles.restore,
        "swap": cycles.swap,
        "duplicate": cycles.duplicate,
        "add": cycles.add,
        "tear": ONE_ROW if transaction == "none" else cycles.tear,
    }
    possible = _possible(changes, **{"index byte": NO_INDEX})
    name = "a statement each" if transaction == "none" else "a transaction each"
    return Workload(f"cycles, {name}", lambda seed: case, possible, cycles.words)


def _crash(buckets: int) -> Workload:
    settings = WAL if buckets == 1 else ROLLBACK
    case = Case(
        workload="crash",
        concurrency=2,
        buckets=buckets,
        duration_s=0,
        warmup_s=0,
        settings=settings,
        spec=Transactions(batch=4, value_size=16),
        verify="full",
    )
    changes: dict[str, Mutation | str] = {
        "drop": crash.drop,
        "restore": crash.restore,
        "swap": crash.swap,
        "duplicate": crash.duplicate,
        "add": crash.add,
        "tear": crash.tear,
    }
    possible = _possible(changes, trunk=NO_FREE_PAGES)
    return Workload(f"crash, {buckets} file{'s' * (buckets > 1)}", lambda seed: case, possible, crash.words)


def _all() -> Iterator[Workload]:
    yield _kv("kv, 1 file", KV)
    yield _kv(
        "kv, 3 files", {**KV, "duplicate": kv.duplicate_elsewhere}, buckets=3, key_type="text", value_size=100
    )
    yield _kv("kv, batches", {**KV, "tear": kv.tear}, batch=5, key_type="blob")
    yield _kv("kv, updates", COUNTERS, update_ratio=0.6)
    yield _classic(1)
    yield _classic(3)
    yield _methods(
        "insert",
        INSERTS,
        40,
        {
            "drop": methods.drop_sample,
            "restore": ONCE,
            "swap": methods.swap_samples,
            "duplicate": methods.duplicate_sample,
            "add": methods.add_sample,
            "tear": methods.tear_samples,
        },
    )
    yield _methods(
        "allocate",
        ALLOCATIONS,
        12,
        {
            "drop": methods.drop_result,
            "restore": ONCE,
            "swap": "all rows hold the same value",
            "duplicate": methods.duplicate_pending,
            "add": methods.add_result,
            "tear": methods.tear_results,
        },
    )
    yield _methods(
        "query",
        QUERIES,
        36,
        {
            "drop": methods.drop_result,
            "restore": ONCE,
            "swap": methods.swap_results,
            "duplicate": methods.duplicate_result,
            "add": methods.add_result,
            "tear": "nothing is written",
        },
    )
    for schema, id_type in product(SCHEMAS, ID_TYPES):
        yield _keys(schema, id_type)
    yield _cycles("none", WAL)
    yield _cycles("cycle", ROLLBACK)
    yield _crash(1)
    yield _crash(2)


WORKLOADS = {workload.name: workload for workload in _all()}
