"""Profiles of Hypothesis: few, fixed examples every day; many new examples in CI."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

QUICK = "quick"
THOROUGH = "thorough"
CHARACTERS = st.characters(exclude_categories=["Cs"])
"""All characters except surrogates. The default of Hypothesis is the same, but then each process of a fresh
checkout encodes a million characters to find them: two seconds."""


def register() -> None:
    """Register both profiles, and load the quick one."""
    # The speed of a machine does not show whether the code is right.
    common = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile(QUICK, common, max_examples=12, derandomize=True, database=None)
    settings.register_profile(THOROUGH, common, max_examples=100, print_blob=True)
    settings.load_profile(QUICK)


def examples(share: float) -> int:
    """Return `share` times the profile's number of examples, for tests that need more or fewer."""
    usual: int = settings().max_examples
    return max(1, round(share * usual))
