"""How the main job is shown: the mix of its load, and one table."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstress.analysis.group import Group
from sqlstress.display.blocks import Block, Paragraph
from sqlstress.experiments.kv.shown import beside as kv_beside
from sqlstress.experiments.kv.shown.legend import legend
from sqlstress.experiments.kv.shown.table import build
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case
from sqlstress.statistics.units import format_count


def what(group: Group) -> str:
    """Return what the processes did."""
    return _classic(group.case) if group.case.workload == "classic" else _key_value(group.case)


def blocks(group: Group) -> Iterator[Block]:
    """Yield the table, and what its columns mean."""
    table = build(group)
    yield table
    yield Paragraph(legend(group, table))
    yield from kv_beside.blocks(group)


def _key_value(case: Case) -> str:
    load = case.spec
    keys = f"{format_count(load.key_space)} {load.key_type} keys, {load.distribution}"
    values = f"{format_count(load.value_size)}-byte values"
    others = [kv_beside.words(case.spec.checkpointing)] if case.spec.checkpointing else []
    return "; ".join((_mix(load), keys, values, *others))


def _mix(load: Load) -> str:
    replaces = max(0.0, 1 - load.read_ratio - load.update_ratio)
    batch = f" (transactions of {format_count(load.batch)})" if load.batch > 1 else ""
    shares = (
        (load.read_ratio, "gets"),
        (replaces, f"replaces{batch}"),
        (load.update_ratio, "updates"),
    )
    parts = [f"{share * 100:.4g}% {kind}" for share, kind in shares if share > 1e-9]
    begins = f", BEGIN {load.begin.upper()}" if load.batch > 1 or load.update_ratio else ""
    return f"{', '.join(parts)}{begins}"


def _classic(case: Case) -> str:
    number = f"{format_count(case.ops)} " if case.ops is not None else ""
    return (
        f"The published script: each process sets {number}random integer keys, a commit each, and gets "
        "them shuffled (unit: pair)"
    )
