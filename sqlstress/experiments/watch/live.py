"""What is shown while a watch goes on: the table of a moment, or a line."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.experiments.watch.results import WRITE, Watch
from sqlstress.experiments.watch.show import about, process_table
from sqlstress.experiments.watch.watch_findings import holds, named, pinned
from sqlstress.show.blocks import Lines
from sqlstress.show.phrases import phrase
from sqlstress.show.text import drawn
from sqlstress.statistics.units import NS_PER_S


def now(watch: Watch) -> Finding:
    """Return what is true at this moment."""
    holder = next((one for one in watch.processes if holds(one, WRITE).now_s), None)
    pin = next((one for one in watch.pins if one.lasts), None)
    state = Finding("watch-line-free")
    if holder:
        state = Finding(
            "watch-line-held", process=named(holder), now_ns=holds(holder, WRITE).now_s * NS_PER_S
        )
    elif not watch.open_samples:
        state = Finding("watch-line-closed", database=watch.database)
    wal = (
        Finding("watch-line-wal", frames=watch.frames, checkpointed=watch.checkpointed)
        if watch.frames
        else None
    )
    behind = (
        Finding("watch-line-pin", process=pinned(watch, pin), took_ns=pin.seconds * NS_PER_S) if pin else None
    )
    return Finding("watch-line", at=watch.seconds, state=state, wal=wal, pin=behind)


def now_line(watch: Watch) -> str:
    """Return the moment as a line."""
    return phrase(now(watch))


def now_page(watch: Watch) -> str:
    """Return the moment as a page, in lines of 80 columns."""
    said = drawn(Lines((*about(watch), phrase(now(watch)))))
    return f"{said}\n\n{drawn(process_table(watch))}" if watch.processes else said
