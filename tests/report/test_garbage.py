"""Suspension of garbage collection."""

import gc

import pytest

from sqlstress.report.document import without_gc


def test_garbage_collection_is_off_inside_and_restored_afterwards() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), without_gc():
        assert not gc.isenabled()
        with without_gc():
            pass
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()
