"""Fixture that keeps measurements of experiments as short as those of commands."""

import pytest


@pytest.fixture(autouse=True)
def all_are_brief(brief_runs: None) -> None:
    """Keep all runs short, and repeat no trial because of other tests' processor load."""
