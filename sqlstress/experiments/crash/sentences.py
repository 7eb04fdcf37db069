"""Sentences of crash tests: one function per sentence, whose parameters are its facts."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.analysis.wording import listing
from sqlstress.statistics.units import plural


def kills_wrong(*, kills: int, wrong: Sequence[str], keeps_nothing: str | None = None) -> str:
    advice = ""
    if keeps_nothing:
        advice = f" journal_mode={keeps_nothing} keeps nothing on disk to roll back with: use WAL or DELETE."
    return f"FAILED: after {plural(kills, 'kill')}, {listing(wrong)}.{advice}"


def kills_unproved() -> str:
    return "Nothing is proved: no transaction was acknowledged before its writer died."


def kills_proved(*, acknowledged: int, kills: int) -> str:
    return (
        f"Nothing was lost: all {plural(acknowledged, 'acknowledged transaction')} survived "
        f"{plural(kills, 'kill')}, none was torn, and integrity_check found nothing. This says nothing "
        "about power loss: the system still writes what a dead process has written, even with "
        "synchronous=OFF."
    )
