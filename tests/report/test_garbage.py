"""Suspension of garbage collection."""

from __future__ import annotations

import gc

import pytest

from sqlstress.report.document import no_search


def test_garbage_collection_is_off_inside_and_restored_afterwards() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), no_search():
        assert not gc.isenabled()
        with no_search():
            pass
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()
