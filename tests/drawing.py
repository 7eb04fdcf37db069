"""How many cases Hypothesis draws: few and always the same ones every day, many and new ones in CI."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

QUICK = "quick"
THOROUGH = "thorough"
CHARACTERS = st.characters(exclude_categories=["Cs"])
"""All but half surrogates. Where none are named these are drawn too, but each process of a fresh checkout
encodes a million characters to find them: two seconds."""


def register() -> None:
    """Make both profiles known, and the quick one the usual one."""
    # How fast a machine is says nothing about whether the code is right.
    common = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile(QUICK, common, max_examples=12, derandomize=True, database=None)
    settings.register_profile(THOROUGH, common, max_examples=100, print_blob=True)
    settings.load_profile(QUICK)


def examples(share: float) -> int:
    """Return so many times the profile's number of examples, for tests unlike others."""
    usual: int = settings().max_examples
    return max(1, round(share * usual))
