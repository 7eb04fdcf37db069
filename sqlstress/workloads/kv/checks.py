"""What a worker checks of the values that it reads, while it runs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from operator import rshift
from typing import Any

from sqlstress.workloads.base import Findings
from sqlstress.workloads.kv.values import SALT_SHIFT, Values

EXAMPLES = 3


class ReadCheck:
    """Says of every value read that a write of this trial made it, and of pairs that one did."""

    def __init__(self, values: Values, batch: int) -> None:
        self._values = values
        self._batch = batch
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
        try:
            if self._values.size == 8:
                return set(map(rshift, values, repeat(SALT_SHIFT))) <= {self._values.salt}
            return {value[:1] for value in values} <= {(self._values.salt >> 7).to_bytes(1, "big")} and set(
                map(len, values)
            ) <= {self._values.size}
        except TypeError:
            return False

    def _bad(self, value: Any, param: Any) -> None:
        self.findings.bad_reads += 1
        if len(self.findings.bad_read_examples) < EXAMPLES:
            what = (
                "nothing"
                if value is None
                else f"the value {str(value)[:40]}, which no write of this trial made"
            )
            self.findings.bad_read_examples.append(f"a get of key {param[0]!r} read {what}")

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
            told = " and ".join(f"{key!r} by {self._writer(value)}" for key, value in rows) or "no rows"
            self.findings.torn_examples.append(f"a snapshot of a pair of one transaction read {told}")

    def _writer(self, value: Any) -> str:
        stamp = self._values.read(value)
        if stamp is None:
            return f"nobody ({str(value)[:40]})"
        return f"worker {stamp.worker}'s write {stamp.sequence}" if stamp.worker else "the preload"
