"""A worker's half whose whole timed window runs in C: it says what is to be done, and takes what was.

Keys, kinds and values are drawn as the Python loop draws them, by the same generator, chunk for chunk; the
acknowledgements are the same words. What the loop in C does beyond that: it holds each value that it reads
against the worker's own last acknowledged write, too.
"""

from __future__ import annotations

from array import array
from random import Random
from typing import TYPE_CHECKING, Any

from sqlstress.engine.loop import Totals, Window
from sqlstress.engine.protocols import Findings, SelfDriven
from sqlstress.engine.values import HEADER, Values
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.keys import Zipf, encoder, zipf
from sqlstress.experiments.kv.placement import Placement
from sqlstress.experiments.kv.worker import KINDS, PATIENCE_S, RESOLUTION, foreign_read, stale_read, torn_pair
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.place import Place


LARGEST_CHUNK = 64
"""Operations: what is drawn for them takes so little memory that SQLite's own stays in the caches."""
_NO_LIMIT = -1
# In the order of loop.h.
_DISTRIBUTIONS = ("uniform", "zipfian", "sequential")
_KEY_TYPES = ("int", "text", "blob")


class NativeSource(SelfDriven):
    """Gets, replaces, updates, batches and pairs, in C."""

    def __init__(self, case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        words, bucket_table, order = shared
        self.case, self.worker, load = case, worker, case.spec
        self.values = Values(salt, load.value_size)
        self.placement = Placement(case, bucket_table, order)
        self.shape = acks.shape_of(case, load.key_space)
        self.area = acks.Area(memoryview(words).cast("B").cast("q"), self.shape, worker)
        self.encode = encoder(load.key_type)
        self.store = place.native(worker, load.begin)
        # Now, since the window is open when it is asked for.
        self.plan = {
            **self._drawn_from(Random(f"{case.seed}:{salt}:{worker}")),
            **self._work(),
            **self._acknowledgements(),
        }
        """All but the window: what is drawn, what is done, and where it is acknowledged."""
        self._findings = Findings()

    def run(self, window: Window, limit: int | None, progress: Any, stop: Any) -> Totals:
        plan = self.plan | {
            "opens": window.opens_ns,
            "closes": window.closes_ns,
            "bin_ns": window.bin_ns,
            "limit": _NO_LIMIT if limit is None else limit,
            "progress": progress,
            "stop": stop,
        }
        done = self.store.run(plan)
        # The next window, if there is one, begins where this one ended: no value is written twice.
        self.plan |= {name: done[name] for name in ("random", "sequence", "position")}
        self._learn(done)
        return _totals(done)

    def _work(self) -> dict[str, Any]:
        case, load = self.case, self.case.spec
        proves = case.verify != "none"
        return {
            "key_type": _KEY_TYPES.index(load.key_type),
            "base": self.values.base(self.worker),
            "salt": self.values.salt,
            "value_size": load.value_size,
            "padding": None if load.value_size == HEADER else self.values.padding(self.worker),
            "timeout_ns": case.settings.busy_timeout_ms * NS_PER_MS,
            "patience_ns": _NO_LIMIT if case.ops is None else int(PATIENCE_S * NS_PER_S),
            "proves": proves,
            "acknowledges": proves and load.read_ratio < 1,
        }

    def _drawn_from(self, random: Random) -> dict[str, Any]:
        load, placement = self.case.spec, self.placement
        _, state, _ = random.getstate()
        scattered = zipf(load.key_space) if load.distribution == "zipfian" else Zipf(0.0, 0.0, 0.0, 0.0, 1)
        return {
            "random": array("I", state),
            "simple": load.batch == 1 and not load.update_ratio,
            "only_reads": load.read_ratio == 1,
            "batch": load.batch,
            "read_ratio": float(load.read_ratio),
            "read_below": round(load.read_ratio * RESOLUTION),
            "update_below": round((load.read_ratio + load.update_ratio) * RESOLUTION),
            "distribution": _DISTRIBUTIONS.index(load.distribution),
            "key_space": load.key_space,
            "position": (self.worker - 1) * load.key_space // self.case.concurrency,
            "sequence": 1,
            **scattered._asdict(),
            "bucket_of": placement.table,
            "order": placement.order,
            "starts": array("q", placement.starts),
            "pairs": array("q", placement.pairs),
        }

    def _acknowledgements(self) -> dict[str, Any]:
        slots = acks.Slots(self.case.spec.key_space, self.shape.slots)
        return {
            "worker": self.worker,
            "largest_chunk": min(self.shape.operations, LARGEST_CHUNK),
            "slots": self.shape.slots,
            "slot_step": slots.step,
            "meta": self.area.meta,
            "begins": self.area.stamps.begins,
            "ends": self.area.stamps.ends,
            "rows": self.area.rows,
            "written": self.area.written,
            "last": self.area.last,
            "counts": self.area.counts,
        }

    def _learn(self, done: dict[str, Any]) -> None:
        found = self._findings
        for name in ("reads_checked", "bad_reads", "pairs_checked", "torn"):
            setattr(found, name, getattr(found, name) + done[name])
        found.bad_read_examples += [self._bad_read(*bad) for bad in done["bad_examples"]]
        found.torn_examples += [self._torn(rows) for rows in done["torn_examples"]]

    def _bad_read(self, number: int, header: int, last: int, value: Any) -> str:
        key = self.encode(number)
        stamp = self.values.stamp(header)
        return stale_read(key, stamp, self.worker, last) if stamp else foreign_read(key, value)

    def _torn(self, rows: list[tuple[Any, Any, int]]) -> str:
        return torn_pair((key, value, self.values.stamp(header)) for key, value, header in rows)

    def findings(self) -> Findings:
        self._findings.effective = self.store.effective()
        return self._findings

    def close(self) -> None:
        self.store.close()


def _totals(done: dict[str, Any]) -> Totals:
    """Return what was counted, kinds of which there was none left out."""
    plain = (
        "first_ns",
        "last_ns",
        "rows",
        "failed",
        "busy",
        "busy_snapshot",
        "harness_ns",
        "proof_ns",
        "bins",
    )
    counts = dict(zip(KINDS, done["operations"], strict=True))
    kinds = [kind for kind, count in counts.items() if count]
    largest = dict(zip(KINDS, done["largest_ns"], strict=True))
    buckets = dict(zip(KINDS, done["buckets"], strict=True))
    return Totals(
        operations={kind: counts[kind] for kind in kinds},
        buckets={kind: buckets[kind] for kind in kinds},
        largest_ns={kind: largest[kind] for kind in kinds},
        longest_wait_ns=max(done["longest_wait_ns"], *largest.values()),
        **{name: done[name] for name in plain},
    )
