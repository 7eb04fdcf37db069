"""The ledger says how far a worker has come, whenever it is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.workloads.ledger import CHUNK, Ledger, shared_words

chunks = st.lists(
    st.integers(1, CHUNK).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=8
)
"""(operations announced, operations done) of one chunk after the other; the next begins after those done."""


@given(chunks)
def test_it_counts_every_operation_as_soon_as_it_has_its_stamp(told: list[tuple[int, int]]) -> None:
    words = shared_words(2)
    ledger, reader = Ledger(words, 2), Ledger(words, 2)
    done = 0
    for announced, finished in told:
        ledger.announce(done, announced)
        assert (reader.acknowledged(), reader.under_way()) == (done, True)
        for index in range(finished):
            ledger.stamps[index + 1] = 1000 + index
            assert reader.acknowledged() == done + index + 1
            assert reader.under_way() == (index + 1 < announced)
        ledger.settled(finished)
        done += finished
        assert (reader.acknowledged(), reader.under_way()) == (done, False)
    assert Ledger(words, 1).acknowledged() == 0


def test_the_stamps_of_an_earlier_chunk_count_in_no_later_one() -> None:
    ledger = Ledger(shared_words(1), 1)
    ledger.announce(0, 3)
    ledger.stamps[1], ledger.stamps[2], ledger.stamps[3] = 5, 6, 7
    ledger.settled(3)
    ledger.announce(3, 3)
    assert ledger.acknowledged() == 3
