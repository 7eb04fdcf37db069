"""Workers' halves over a store that does nothing, to record the calls that a real store would get."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlstress.engine.loop import back_to_back_stamps
from sqlstress.engine.protocols import Chunk, Source
from sqlstress.engine.values import Stamp, Values
from sqlstress.experiments.kv.acks import AckArea, area_of
from sqlstress.experiments.kv.spec import Load
from sqlstress.experiments.kv.worker import KINDS
from sqlstress.report.case import Case
from tests.halves import open_source, open_work

NOWHERE = Path("nowhere")
SALT = 7
GET, REPLACE, UPDATE, PAIR = KINDS


@dataclass(frozen=True)
class Call:
    """One operation that the store would have done."""

    kind: str
    bucket: int
    params: Any
    """Parameters of the operation."""


class Recorder:
    """A worker whose store records its calls."""

    def __init__(
        self, load: Load, buckets: int = 1, worker: int = 1, concurrency: int = 1, **more: Any
    ) -> None:
        self.case = Case(driver="dry", spec=load, buckets=buckets, concurrency=concurrency, **more)
        self.work: Any = open_work(self.case, NOWHERE, SALT, {})
        self.work.prepare(lambda: None)
        self.source: Any = open_source(self.case, NOWHERE, worker, SALT, self.work.shared)
        self.calls: list[Call] = []
        self.values = Values(SALT, load.value_size)
        self._listen()

    def _listen(self) -> None:
        store = self.source.store
        for name, kind in (("gets", GET), ("pairs", PAIR), ("puts", REPLACE), ("batches", REPLACE)):
            answers = getattr(store, name)
            setattr(store, name, [self._recording(kind, bucket, each) for bucket, each in enumerate(answers)])

    def _recording(self, kind: str, bucket: int, answer: Any) -> Any:
        def operation(params: Any) -> Any:
            self.calls.append(Call(kind, bucket, params))
            return answer(params)

        return operation

    def run(self, operations: int, size: int = 100) -> list[Call]:
        """Do `operations` operations in chunks of `size`, stamped by a clock that ticks once an operation."""
        before = len(self.calls)
        for first in range(0, operations, size):
            do(self.source, self.source.next_chunk(min(size, operations - first)))
        return self.calls[before:]

    def stamps(self, calls: Iterable[Call]) -> list[Stamp | None]:
        """Return the stamps of the written values, in their order; None for a value without a stamp."""
        return [self.values.read(value) for call in calls for _, value in rows_of(call)]

    def area(self, worker: int = 1) -> AckArea:
        """Return a worker's area as the parent sees it."""
        return area_of(self.case, self.work.shared[0], worker)


def rows_of(call: Call) -> list[tuple[Any, Any]]:
    """Return the rows that an operation writes."""
    if call.kind != REPLACE:
        return []
    return list(call.params) if isinstance(call.params, list) else [call.params]


def do(source: Source, chunk: Chunk | None, fails: dict[int, Exception] | None = None) -> list[Any]:
    """Do a chunk as the timed loop does it, with stamps 1, 2, 3, …; `fails` are errors by operation."""
    assert chunk
    results: list[Any] = []
    source.stamps.begins[0] = 1
    for index, (call, params) in enumerate(zip(chunk.calls, chunk.params, strict=False)):
        if fails and index in fails:
            source.give_up(chunk, index, fails[index])
            results.append(None)
        else:
            results.append(call(params))
        source.stamps.ends[index] = index + 2
    source.settle(chunk, len(results), results, back_to_back_stamps(1, list(range(2, len(results) + 2))))
    return results
