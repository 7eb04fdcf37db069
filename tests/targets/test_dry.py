"""The store that does nothing looks like one that does."""

from __future__ import annotations

from pathlib import Path

from sqlstress.report.case import Case
from sqlstress.targets.dry import DryPlace
from sqlstress.targets.views import Store

VALUE = object()


def test_it_answers_with_the_value_it_was_given_and_forgets_every_write() -> None:
    dry: Store = DryPlace(Case(driver="dry", buckets=3), Path("nowhere")).keyvalue(1, "immediate", VALUE)
    operations = (dry.gets, dry.pairs, dry.puts, dry.batches, dry.updates)
    assert [*map(len, operations)] == [3] * len(operations)
    for bucket in range(3):
        dry.puts[bucket]((7, "forgotten"))
        dry.batches[bucket]([(7, "forgotten")])
        dry.updates[bucket]((1,))
        assert dry.gets[bucket]((7,)) is VALUE
        assert dry.pairs[bucket]((7, 8)) == [(7, VALUE), (8, VALUE)]
    assert (dry.was_busy(Exception()), dry.busy_counts(), dry.effective()) == (False, (0, 0), {})
    dry.close()
