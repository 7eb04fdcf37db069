"""The ledger has a worker's progress at any time."""

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.engine.ordered import CHUNK, OperationLedger, shared_words

chunks = st.lists(
    st.integers(1, CHUNK).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=8
)
"""(operations announced, operations done) of consecutive chunks; each begins after those done before."""


@settings(deadline=None)  # longest chunks, on a busy machine
@given(chunks)
def test_ledger_counts_each_operation_when_its_end_is_written(chunks_done: list[tuple[int, int]]) -> None:
    words = shared_words(2)
    ledger, reader = OperationLedger(words, 2), OperationLedger(words, 2)
    done = 0
    for announced, finished in chunks_done:
        ledger.announce(done, announced)
        assert (reader.acknowledged(), reader.under_way()) == (done, True)
        for index in range(finished):
            ledger.ends[index] = 1000 + index
            assert reader.acknowledged() == done + index + 1
            assert reader.under_way() == (index + 1 < announced)
        ledger.settle(finished)
        done += finished
        assert (reader.acknowledged(), reader.under_way()) == (done, False)
    assert OperationLedger(words, 1).acknowledged() == 0


def test_ends_of_an_earlier_chunk_do_not_count_in_a_later_one() -> None:
    ledger = OperationLedger(shared_words(1), 1)
    ledger.announce(0, 3)
    ledger.ends[0], ledger.ends[1], ledger.ends[2] = 5, 6, 7
    ledger.settle(3)
    ledger.announce(3, 3)
    assert ledger.acknowledged() == 3


def test_ledger_accepts_a_chunk_of_maximum_length() -> None:
    ledger = OperationLedger(shared_words(1), 1)
    ledger.announce(0, CHUNK)
    ledger.ends[:CHUNK] = memoryview(bytes([1]) * 8 * CHUNK).cast("q")
    assert ledger.acknowledged() == CHUNK
    assert not ledger.under_way()


class Overtaken:
    """Ends whose first reader pauses halfway while the worker goes on to its next chunk."""

    def __init__(self, worker: OperationLedger) -> None:
        self._worker, self._ends = worker, worker.ends
        self._held_up = False

    def __getitem__(self, places: slice) -> Iterator[int]:
        for place in range(places.stop):
            if place == 2 and not self._held_up:
                self._held_up = True
                self._worker.settle(4)
                self._worker.announce(4, 4)
                self._worker.ends[0] = 9
            yield self._ends[place]


def test_overtaken_reader_never_counts_too_few_operations() -> None:
    words = shared_words(1)
    worker, reader = OperationLedger(words, 1), OperationLedger(words, 1)
    worker.announce(0, 4)
    worker.ends[:4] = memoryview(bytes([1]) * 32).cast("q")
    overtaken: Any = Overtaken(worker)
    reader.ends = overtaken
    assert reader.acknowledged() == 5
