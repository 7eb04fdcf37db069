"""What a worker checks of the values that it reads, while it runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlstress.engine.protocols import Findings
from sqlstress.engine.values import HEADER, SALT_SHIFT, Stamp, Values

EXAMPLES = 3


class ReadCheck:
    """Says of every value read that a write of this trial made it, and of pairs that one did."""

    def __init__(self, values: Values, batch: int) -> None:
        self._values = values
        self._batch = batch
        lowest, beyond = values.base(0), values.base(0) + (1 << SALT_SHIFT)
        blobs = values.size > HEADER
        self._lowest: Any = lowest.to_bytes(HEADER, "big") if blobs else lowest
        self._beyond: Any = beyond.to_bytes(HEADER, "big") if blobs else beyond
        self.findings = Findings()

    def values_read(self, values: list[Any], params: Iterable[Any]) -> None:
        """Check the results of gets; `params` are their parameters, used for counter-examples only."""
        self.findings.reads_checked += len(values)
        if not self._all_ours(values):
            for value, param in zip(values, params, strict=False):
                if self._values.read(value) is None:
                    self._bad(value, param)

    def _all_ours(self, values: list[Any]) -> bool:
        # The whole chunk at once, in C; the slow way names the culprit.
        if not values:
            return True
        try:
            return self._lowest <= min(values) and max(values) < self._beyond and self._sizes_fit(values)
        except TypeError:
            return False

    def _sizes_fit(self, values: list[Any]) -> bool:
        return self._values.size == HEADER or set(map(len, values)) == {self._values.size}

    def _bad(self, value: Any, param: Any) -> None:
        self.findings.bad_reads += 1
        if len(self.findings.bad_read_examples) < EXAMPLES:
            self.findings.bad_read_examples.append(foreign_read(param[0], value))

    def pair_read(self, rows: list[tuple[Any, Any]]) -> None:
        """Check two keys that are always written in one transaction, read in one snapshot."""
        self.findings.pairs_checked += 1
        stamps = [self._values.read(value) for _, value in rows]
        if len(rows) != 2 or None in stamps:
            self._torn(rows)
            return
        first, second = sorted(stamp for stamp in stamps if stamp)
        if first.worker == second.worker == 0:
            return
        same_batch = (first.sequence - 1) // self._batch == (second.sequence - 1) // self._batch
        if first.worker != second.worker or second.sequence != first.sequence + 1 or not same_batch:
            self._torn(rows)

    def _torn(self, rows: list[tuple[Any, Any]]) -> None:
        self.findings.torn += 1
        if len(self.findings.torn_examples) < EXAMPLES:
            told = ((key, value, self._values.read(value)) for key, value in rows)
            self.findings.torn_examples.append(torn_pair(told))


def foreign_read(key: Any, value: Any) -> str:
    """Say what a get read that nobody wrote; None: there was nothing."""
    what = "nothing" if value is None else f"the value {str(value)[:40]}, which no write of this trial made"
    return f"a get of key {key!r} read {what}"


def stale_read(key: Any, stamp: Stamp, worker: int, last: int) -> str:
    """Say what a get read instead of the last write of the worker that reads."""
    return f"a get of key {key!r} read {_writer(stamp)} after worker {worker}'s write {last} was acknowledged"


def torn_pair(rows: Iterable[tuple[Any, Any, Stamp | None]]) -> str:
    """Say what a snapshot of a pair read: of each row the key, the value, and who wrote it."""
    told = " and ".join(
        f"{key!r} by {_writer(stamp) if stamp else f'nobody ({str(value)[:40]})'}"
        for key, value, stamp in rows
    )
    return f"a snapshot of a pair of one transaction read {told or 'no rows'}"


def _writer(stamp: Stamp) -> str:
    return f"worker {stamp.worker}'s write {stamp.sequence}" if stamp.worker else "the preload"
