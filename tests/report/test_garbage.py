"""Tests of doing without a search for garbage."""

from __future__ import annotations

import gc

import pytest

from sqlstress.report.document import no_search


def test_there_is_no_search_meanwhile_and_then_as_before() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), no_search():
        assert not gc.isenabled()
        with no_search():
            pass
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()
