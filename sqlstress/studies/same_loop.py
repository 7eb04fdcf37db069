"""The arms of an A/B test are driven by the same loop, unless somebody asks for another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.experiment import face_of
from sqlstress.report.case import Case


def check_loops(cases: tuple[Case, Case], options: Sequence[Mapping[str, Any]]) -> None:
    """Raise UsageError where another loop drives the load of each arm, and nobody has asked for that.

    `options` are those of each arm, by name.
    """
    a, b = (face_of(case).loop_of(case) for case in cases)
    if a != b and not any("loop" in own for own in options):
        raise UsageError(
            f"the {a} loop would drive the load of A, and the {b} loop that of B, which says nothing of the "
            f'rest: give --{"a" if a == "native" else "b"} "--loop python".'
        )
