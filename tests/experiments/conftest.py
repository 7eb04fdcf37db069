"""Experiments are measured as briefly as commands are."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def all_are_brief(brief_runs: None) -> None:
    """Let nothing take longer than a test needs, and no trial be run again since the tests beside it work."""
