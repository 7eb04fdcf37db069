"""Sentences of crash, a function each; its parameters are the facts of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.analysis.finding import Finding, texts
from sqlstress.analysis.wording import listing
from sqlstress.statistics.units import plural, whole


def kills_wrong(*, kills: int, wrong: Sequence[Finding], keeps_nothing: str | None = None) -> str:
    keeps_nothing_part = (
        (f" journal_mode={keeps_nothing} keeps nothing on disk to roll back with: use WAL or DELETE.")
        if keeps_nothing
        else ""
    )
    return f"FAILED: after {plural(kills, 'kill')}, {listing(texts(wrong))}.{keeps_nothing_part}"


def kills_not_acknowledged(*, count: int, once: bool | None = None, times: int | None = None) -> str:
    return f"{plural(count, 'transaction')} did not match what was acknowledged"


def kills_not_whole(*, count: int, once: bool | None = None, times: int | None = None) -> str:
    return f"{plural(count, 'record')} did not match the log"


def kills_not_sound(*, once: bool = False, times: int | None = None) -> str:
    times_part = f"{whole(times)} times" if times is not None else ""
    return f"integrity_check reported errors {'once' if once else ''}{times_part}"


def kills_not_gone_on(*, once: bool = False, times: int | None = None) -> str:
    times_part = f"{whole(times)} times" if times is not None else ""
    return f"{'once' if once else ''}{times_part} the other writers did not continue after a kill"


def kills_check_failed(*, name: str) -> str:
    return f"{name} failed"


def kills_unproved() -> str:
    return "Nothing is proved: no transaction was acknowledged before its writer died."


def kills_proved(*, acknowledged: int, kills: int) -> str:
    return (
        f"Nothing was lost: all {plural(acknowledged, 'acknowledged transaction')} survived "
        f"{plural(kills, 'kill')}, none was torn, and integrity_check found nothing. This says nothing "
        "about power loss: the system still writes what a dead process has written, even with "
        "synchronous=OFF."
    )
