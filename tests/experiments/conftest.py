"""Fixture that keeps measurements of experiments as short as those of commands."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def all_are_brief(brief_runs: None) -> None:
    """Keep all runs short, and repeat no trial because of other tests' processor load."""
