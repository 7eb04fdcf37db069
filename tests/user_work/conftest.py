"""Tests of user programs are measured as briefly as commands are."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def all_are_brief(brief_runs: None) -> None:
    """Keep all runs brief, and run no trial again because of the load of parallel tests."""
