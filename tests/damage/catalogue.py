"""The workloads, and the possible damage of each of their files."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from sqlstress.experiments.classics.spec import ID_TYPES, SCHEMAS, Cycling, Method, Picks
from sqlstress.experiments.crash.spec import Transactions
from sqlstress.experiments.hunt.rounds import draw_round
from sqlstress.experiments.kv.spec import Load
from sqlstress.plan import cases_of
from sqlstress.report.case import Case, Settings
from sqlstress.targets.sqlite.connections import native_unavailable
from tests.damage import rows
from tests.damage.flips import ENTRY, PAGE_HEADER, POINTER, ROW, TRUNK, flip
from tests.damage.rows import drop, give, swap, tear
from tests.damage.trial import Mutation, Trial, Words, measure, measure_killed

WAL = Settings(synchronous="off", page_size=512, wal_autocheckpoint=16)
"""Small pages, so that a few rows take several pages."""
ROLLBACK = replace(WAL, journal_mode="delete", wal_autocheckpoint=None)
SALT = 1000

ROWS = ("drop", "restore", "swap", "duplicate", "add", "tear")
"""Changes of rows, as the headings of the table."""
BYTES = {"row byte": ROW, "index byte": ENTRY, "pointer": POINTER, "page header": PAGE_HEADER, "trunk": TRUNK}
"""Parts of which bytes are changed, by the headings of the table."""
CLEAN = "clean"
"""No change at all."""

ONE_ROW = "a transaction is one row"
ONCE = "a row is written once"
NO_INDEX = {"index byte": "there is no index"}
NO_FREE_PAGES = {"trunk": "there are no free pages"}

Possible = Mapping[str, Mutation | str]
"""Changes by name; a string is the reason why a change is impossible."""


@dataclass(frozen=True)
class Workload:
    """A workload with its changes."""

    name: str
    case: Callable[[int], Case]
    """Seed → case."""
    changes: Possible
    trials: int = 1
    """Trials over the same files; the last one is verified."""

    def run(self, seed: int, folder: Path, driver: str) -> Trial:
        """Let real processes work on real files."""
        case = replace(self.case(seed), driver=driver, seed=seed)
        if case.workload == "crash":
            return measure_killed(case, folder, SALT)
        return measure(case, folder, SALT + seed, self.trials)


def _possible(words: Words, changes: Possible, *without: Mapping[str, str]) -> Possible:
    """Return changes of rows and of bytes; `without` has the reasons for impossible changes of bytes."""
    bytes_: Possible = {name: flip(part, words) for name, part in BYTES.items()}
    return {**changes, **bytes_, **{name: why for reasons in without for name, why in reasons.items()}}


KV: Possible = {
    "drop": drop(rows.written_rows),
    "restore": rows.kv_restore,
    "swap": swap(rows.written_rows),
    "duplicate": give(rows.written_rows),
    "add": rows.kv_add,
    "tear": ONE_ROW,
}
COUNTERS: Possible = {
    "drop": drop(rows.counters),
    "restore": rows.counter_restore,
    "swap": swap(rows.counters),
    "duplicate": rows.counter_duplicate,
    "add": rows.counter_add,
    "tear": ONE_ROW,
}
SAMPLES: Possible = {
    "drop": drop(rows.samples),
    "restore": ONCE,
    "swap": swap(rows.samples),
    "duplicate": rows.sample_duplicate,
    "add": rows.sample_add,
    "tear": tear(rows.samples),
}
ALLOCATED: Possible = {
    "drop": drop(rows.results),
    "restore": ONCE,
    "swap": "all rows hold the same value",
    "duplicate": rows.result_duplicate,
    "add": rows.result_add,
    "tear": tear(rows.results),
}
QUERIED: Possible = {
    **ALLOCATED,
    "swap": swap(rows.results),
    "duplicate": give(rows.results),
    "tear": "nothing is written",
}
PICKS: Possible = {
    "drop": drop(rows.picks_of_one),
    "restore": ONCE,
    "swap": rows.pick_swap,
    "duplicate": rows.pick_duplicate,
    "add": rows.pick_add,
    "tear": tear(rows.picks_of_one),
}
CYCLES: Possible = {
    "drop": drop(rows.cycles),
    "restore": rows.cycle_restore,
    "swap": swap(rows.cycles),
    "duplicate": rows.cycle_duplicate,
    "add": rows.cycle_add,
    "tear": tear(rows.cycles),
}
CRASH: Possible = {
    "drop": rows.crash_drop,
    "restore": rows.crash_restore,
    "swap": swap(rows.records),
    "duplicate": rows.crash_duplicate,
    "add": rows.crash_add,
    "tear": rows.crash_tear,
}

PARTS: Possible = {
    "drop": drop(rows.parts),
    "restore": rows.part_restore,
    "swap": swap(rows.parts),
    "duplicate": give(rows.parts),
    "add": rows.part_add,
    "tear": rows.part_tear,
}

INSERTS = (("1b1", True), ("BLK", False), ("BLK/n", True), ("JSON", False))
ALLOCATIONS = (*INSERTS, ("SPC", False))
QUERIES = (("1b1", False), ("BLK", False), ("JSON", False), ("SPC", False))


def _kv(name: str, changes: Possible, buckets: int = 1, **load: Any) -> Workload:
    settings = WAL if buckets == 1 else ROLLBACK
    spec = Load(**{"key_space": 120, "read_ratio": 0.2, **load})
    case = Case(concurrency=2, buckets=buckets, ops=150, settings=settings, spec=spec)
    return Workload(name, lambda _: case, _possible(rows.kv_words, changes, NO_INDEX, NO_FREE_PAGES))


def _classic(buckets: int) -> Workload:
    spec = Load(key_space=(1 << 31) + 1, begin="deferred")
    case = Case(
        workload="classic", concurrency=2, buckets=buckets, ops=40, warmup_s=0, settings=WAL, spec=spec
    )
    changes: Possible = {
        **KV,
        "restore": ONCE,
        "duplicate": give(rows.written_rows) if buckets == 1 else rows.kv_duplicate_elsewhere,
        "add": rows.kv_add_unknown,
    }
    possible = _possible(rows.kv_words, changes, NO_INDEX, NO_FREE_PAGES)
    return Workload(f"classic, {buckets} file{'s' * (buckets > 1)}", lambda _: case, possible, trials=2)


def _methods(phase: str, variants: tuple[tuple[str, bool], ...], scale: int, changes: Possible) -> Workload:
    def case(seed: int) -> Case:
        name, transaction = variants[seed % len(variants)]
        method = Method(phase, name, transaction, scale, timeout_s=60.0, samples=16, chunk=7)
        return Case(workload="methods", settings=ROLLBACK, spec=method)

    return Workload(f"methods, {phase}", case, _possible(rows.method_words, changes, NO_FREE_PAGES))


def _keys(schema: str, id_type: str) -> Workload:
    def case(_: int) -> Case:
        picks = Picks(schema, id_type, users=12, picks=10, items=40)
        return Case(workload="keys", concurrency=2, duration_s=0, warmup_s=0, settings=WAL, spec=picks)

    paired: Possible = {"duplicate": rows.pick_duplicate_elsewhere} if schema.startswith("pair-") else {}
    possible = _possible(rows.pick_words, {**PICKS, **paired}, NO_FREE_PAGES)
    return Workload(f"keys, {schema}, {id_type}", case, possible)


def _cycles(name: str, transaction: str, settings: Settings) -> Workload:
    spec = Cycling(cycles=3, rows=30, transaction=transaction)
    case = Case(workload="cycles", duration_s=0, warmup_s=0, settings=settings, spec=spec)
    torn: Possible = {"tear": ONE_ROW} if transaction == "none" else {}
    possible = _possible(rows.cycle_words, {**CYCLES, **torn}, NO_INDEX)
    return Workload(f"cycles, {name}", lambda _: case, possible)


def _crash(buckets: int) -> Workload:
    case = Case(
        workload="crash",
        concurrency=2,
        buckets=buckets,
        duration_s=0,
        warmup_s=0,
        settings=WAL if buckets == 1 else ROLLBACK,
        spec=Transactions(batch=4, value_size=16),
        verify="full",
    )
    possible = _possible(rows.crash_words, CRASH, NO_FREE_PAGES)
    return Workload(f"crash, {buckets} file{'s' * (buckets > 1)}", lambda _: case, possible)


def _hunt(name: str, **given: str) -> Workload:
    """Return rounds of a hunt, drawn from the seed except for the given options.

    There are no checkpoints: a library with the WAL-reset bug would lose commits even in unchanged files.
    """
    fixed = {"duration": "300ms", "writers": "3", "keys": "16", "churn": "off", **given}
    fixed |= {"checkpointers": "0", "wal-autocheckpoint": "0"}
    (base,) = cases_of(fixed, "hunt")

    def case(seed: int) -> Case:
        return draw_round(replace(base, seed=seed), seed)

    return Workload(name, case, _possible(rows.hunt_words, PARTS, NO_FREE_PAGES))


def _all() -> Iterator[Workload]:
    elsewhere: Possible = {**KV, "duplicate": rows.kv_duplicate_elsewhere}
    yield _kv("kv, 1 file", KV)
    yield _kv("kv, 3 files", elsewhere, buckets=3, key_type="text", value_size=100)
    yield _kv("kv, batches", {**KV, "tear": rows.kv_tear}, batch=5, key_type="blob")
    yield _kv("kv, updates", COUNTERS, update_ratio=0.6)
    if native_unavailable("sqlite3") is None:  # if so, C checks the rows first
        yield _kv("kv, 1 file, in C", KV, loop="native")
        yield _kv("kv, 3 files, in C", elsewhere, buckets=3, key_type="text", value_size=100, loop="native")
        yield _kv("kv, batches, in C", {**KV, "tear": rows.kv_tear}, batch=5, key_type="blob", loop="native")
    yield _classic(1)
    yield _classic(3)
    yield _methods("insert", INSERTS, 40, SAMPLES)
    yield _methods("allocate", ALLOCATIONS, 12, ALLOCATED)
    yield _methods("query", QUERIES, 36, QUERIED)
    for schema, id_type in product(SCHEMAS, ID_TYPES):
        yield _keys(schema, id_type)
    yield _cycles("a statement each", "none", WAL)
    yield _cycles("one transaction", "run", ROLLBACK)
    yield _crash(1)
    yield _crash(2)
    yield _hunt("hunt, as drawn", batch="2")
    # All names of a change with six rows must appear, and a verdict has five examples.
    yield _hunt("hunt, batches", batch="6", filler="0")


WORKLOADS = {workload.name: workload for workload in _all()}
