"""The ledger says how far a worker has come, whenever it is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sqlstress.engine.ordered import CHUNK, Ledger, shared_words

chunks = st.lists(
    st.integers(1, CHUNK).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=8
)
"""(operations announced, operations done) of one chunk after the other; the next begins after those done."""


@settings(deadline=None)  # longest chunks, on a busy machine
@given(chunks)
def test_it_counts_every_operation_as_soon_as_it_has_its_end(told: list[tuple[int, int]]) -> None:
    words = shared_words(2)
    ledger, reader = Ledger(words, 2), Ledger(words, 2)
    done = 0
    for announced, finished in told:
        ledger.announce(done, announced)
        assert (reader.acknowledged(), reader.under_way()) == (done, True)
        for index in range(finished):
            ledger.ends[index] = 1000 + index
            assert reader.acknowledged() == done + index + 1
            assert reader.under_way() == (index + 1 < announced)
        ledger.settled(finished)
        done += finished
        assert (reader.acknowledged(), reader.under_way()) == (done, False)
    assert Ledger(words, 1).acknowledged() == 0


def test_the_ends_of_an_earlier_chunk_count_in_no_later_one() -> None:
    ledger = Ledger(shared_words(1), 1)
    ledger.announce(0, 3)
    ledger.ends[0], ledger.ends[1], ledger.ends[2] = 5, 6, 7
    ledger.settled(3)
    ledger.announce(3, 3)
    assert ledger.acknowledged() == 3


def test_a_chunk_may_be_as_long_as_it_can_be() -> None:
    ledger = Ledger(shared_words(1), 1)
    ledger.announce(0, CHUNK)
    ledger.ends[:CHUNK] = memoryview(bytes([1]) * 8 * CHUNK).cast("q")
    assert ledger.acknowledged() == CHUNK
    assert not ledger.under_way()


class Overtaken:
    """Ends whose first reader is held up in their midst, until the worker has gone on to its next chunk."""

    def __init__(self, worker: Ledger) -> None:
        self._worker, self._ends = worker, worker.ends
        self._held_up = False

    def __getitem__(self, places: slice) -> Iterator[int]:
        for place in range(places.stop):
            if place == 2 and not self._held_up:
                self._held_up = True
                self._worker.settled(4)
                self._worker.announce(4, 4)
                self._worker.ends[0] = 9
            yield self._ends[place]


def test_a_reader_that_the_worker_overtakes_counts_none_less_than_there_were_before() -> None:
    words = shared_words(1)
    worker, reader = Ledger(words, 1), Ledger(words, 1)
    worker.announce(0, 4)
    worker.ends[:4] = memoryview(bytes([1]) * 32).cast("q")
    overtaken: Any = Overtaken(worker)
    reader.ends = overtaken
    assert reader.acknowledged() == 5
