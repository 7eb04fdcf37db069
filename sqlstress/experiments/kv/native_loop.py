"""Worker's part of the key-value load if the timed loop runs in C.

The C loop gets a plan (a dictionary of parameters), draws operations like the Python loop, and acknowledges
writes in the shared memory of `acks`. A value that it reads must not be older than the worker's own last
write to the key. One in 256 values is also compared with the last acknowledged write of the worker that wrote
the value.
"""

from __future__ import annotations

from array import array
from random import Random
from typing import TYPE_CHECKING, Any

from sqlstress.engine.loop import Totals, Window
from sqlstress.engine.protocols import Findings, SelfDriven
from sqlstress.engine.values import HEADER, Values
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.keys import DISTRIBUTIONS, Placement, Zipf, encoder, zipf
from sqlstress.experiments.kv.worker import (
    KINDS,
    PATIENCE_S,
    RESOLUTION,
    foreign_read_text,
    refusal_sightings,
    stale_read_text,
    torn_pair_text,
)
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.place import Place

LARGEST_CHUNK = 64
"""Maximum number of operations per chunk: larger chunks evict SQLite's memory from CPU caches."""
_NO_LIMIT = -1


class NativeSource(SelfDriven):
    """Source of a worker's operations that runs them in the C loop.

    The operations are gets, replaces, updates, batches (several replaces) and reads of pairs.
    """

    def __init__(self, case: Case, place: Place, worker: int, salt: int, shared: tuple[Any, ...]) -> None:
        words, bucket_table, order = shared
        self.case, self.worker = case, worker
        self.values = Values(salt, case.spec.value_size)
        self.encode = encoder(case.spec.key_type)
        self.store = place.native(worker, case.spec.begin)
        random, placement = Random(f"{case.seed}:{salt}:{worker}"), Placement(case, bucket_table, order)
        # Build the plan now, because `run` is called when the window is already open.
        first = acks.area_of(case, words, 1)
        self.plan = {
            **acks.plan_of(case, placement, self.values, first),
            **self._work(random, placement),
            **self._acknowledgements(acks.area_of(case, words, worker)),
        }
        """All parameters of the C loop except for the window."""
        self._findings = Findings()

    def _work(self, random: Random, placement: Placement) -> dict[str, Any]:
        case, load = self.case, self.case.spec
        is_proven = case.verify != "none"
        zipf_constants = (
            zipf(load.key_space) if load.distribution == "zipfian" else Zipf(0.0, 0.0, 0.0, 0.0, 1)
        )
        return {
            "random": array("I", random.getstate()[1]),
            "simple": load.batch == 1 and not load.update_ratio,
            "only_reads": load.read_ratio == 1,
            "batch": load.batch,
            "read_ratio": float(load.read_ratio),
            "read_below": round(load.read_ratio * RESOLUTION),
            "update_below": round((load.read_ratio + load.update_ratio) * RESOLUTION),
            "distribution": DISTRIBUTIONS.index(load.distribution),
            "position": (self.worker - 1) * load.key_space // case.concurrency,
            "sequence": 1,
            **zipf_constants._asdict(),
            "order": placement.order,
            "starts": array("q", placement.starts),
            "pairs": array("q", placement.pairs),
            "base": self.values.base(self.worker),
            "padding": None if load.value_size == HEADER else self.values.padding(self.worker),
            "timeout_ns": case.settings.busy_timeout_ms * NS_PER_MS,
            "patience_ns": _NO_LIMIT if case.ops is None else int(PATIENCE_S * NS_PER_S),
            "proves": is_proven,
            "acknowledges": is_proven and load.read_ratio < 1,
        }

    def _acknowledgements(self, area: acks.AckArea) -> dict[str, Any]:
        return {
            "worker": self.worker,
            "largest_chunk": min(area.shape.operations, LARGEST_CHUNK),
            "meta": area.meta,
            "begins": area.stamps.begins,
            "ends": area.stamps.ends,
            "rows": area.rows,
            "written": area.written,
            "last": area.last,
            "counts": area.counts,
        }

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
        # If `run` is called again for a further window, the random numbers, sequence numbers and positions
        # continue, so that no value is written twice.
        self.plan |= {name: done[name] for name in ("random", "sequence", "position")}
        self._learn(done)
        return _totals(done)

    def _learn(self, done: dict[str, Any]) -> None:
        findings, stamp_of = self._findings, self.values.stamp
        for name in ("reads_checked", "bad_reads", "pairs_checked", "torn"):
            setattr(findings, name, getattr(findings, name) + done[name])
        for number, header, last, value in done["bad_examples"]:
            key, stamp = self.encode(number), stamp_of(header)
            writer = stamp.worker or self.worker if stamp else 0
            bad = stale_read_text(key, stamp, writer, last) if stamp else foreign_read_text(key, value)
            findings.bad_read_examples.append(bad)
        for rows in done["torn_examples"]:
            stamped_rows = ((key, value, stamp_of(header)) for key, value, header in rows)
            findings.torn_examples.append(torn_pair_text(stamped_rows))

    def findings(self) -> Findings:
        self._findings.effective = self.store.effective()
        self._findings.sightings = refusal_sightings(self.case, self.store.refusals())
        return self._findings

    def close(self) -> None:
        self.store.close()


def _totals(done: dict[str, Any]) -> Totals:
    names = ("first_ns", "last_ns", "rows", "busy", "busy_snapshot", "bins", "harness_ns", "proof_ns")
    totals = {name: done[name] for name in (*names, "failed", "failed_buckets", "largest_failed_ns")}
    for name in ("operations", "buckets", "largest_ns"):
        counts = zip(KINDS, done[name], done["operations"], strict=True)
        # Omit kinds of operations that never occurred.
        totals[name] = {kind: figure for kind, figure, operations in counts if operations}
    return Totals(**totals, longest_wait_ns=max(done["longest_wait_ns"], *done["largest_ns"]))
