"""Sentences of classics, a function each; its parameters are the facts of a finding."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.analysis import wording
from sqlstress.analysis.finding import Finding, texts, written
from sqlstress.analysis.wording import (
    between,
    capital,
    duration,
    estimate,
    listing,
    percent,
    processes,
    with_interval,
    without_interval,
)
from sqlstress.statistics.compare import Ratio
from sqlstress.statistics.units import plural, rounded, whole


def methods_fastest(*, driver: str, phases: Sequence[Finding], single: bool = False) -> str:
    return f"{'Highest' if single else 'Fastest'} with {driver}: {'; '.join(texts(phases))}."


def phase_fastest(*, doing: str, fastest: Finding, others: Finding | None = None) -> str:
    others_part = f", or without SPC by {others.text}" if others else ""
    return f"{doing} by {fastest.text}{others_part}"


def methods_lead(
    *,
    methods: Sequence[str],
    rate: float,
    about: bool = False,
    ratio: Ratio | None = None,
    base: str | None = None,
    equal: bool = False,
    which: bool = False,
    unclear: bool | None = None,
) -> str:
    ratio_part = (
        (f", {without_interval(ratio, 'as fast as')} {base}, {between(ratio)}")
        if ratio is not None and base
        else ""
    )
    return (
        f"{listing(methods)} ({'about ' if about else ''}{rounded(rate)} "
        f"rows/s{ratio_part}{'; about equal' if equal else ''}"
        f"{'; cannot tell which is fastest' if which else ''})"
    )


def transaction(
    *,
    faster: Sequence[Finding] | None = None,
    both: bool = False,
    unclear: Sequence[str] | None = None,
) -> str:
    faster_part = f"{listing(texts(faster))}" if faster else ""
    unclear_part = f"cannot tell for {listing(unclear)}" if unclear else ""
    return (
        "Put writes into one transaction. Compared with a commit per row: "
        f"{faster_part}{', and ' if both else ''}{unclear_part}."
    )


def wal(
    *,
    how: str,
    faster: Sequence[Finding] | None = None,
    both: bool = False,
    unclear: Sequence[str] | None = None,
) -> str:
    faster_part = f"{listing(texts(faster))}" if faster else ""
    unclear_part = f"cannot tell for {listing(unclear)}" if unclear else ""
    return f"WAL compared with DELETE, {how}: {faster_part}{', and ' if both else ''}{unclear_part}."


def made_faster(*, doing: str, ratio: Ratio) -> str:
    return f"{doing} {with_interval(ratio, 'as fast')}"


def row_values(*, took: Sequence[Finding]) -> str:
    return (
        f"Use VALUES, not ROW: comparing pairs as row values took {listing(texts(took))}. Some versions "
        "of SQLite scan the whole table for them; check with EXPLAIN QUERY PLAN."
    )


def took_as_long(*, ratio: Ratio, driver: str) -> str:
    return f"{with_interval(ratio, 'as long')} with {driver}"


def method_limit(
    *,
    doing: str,
    rows: int,
    method: str,
    drivers: Sequence[str],
    reason: str,
    instead: str | None = None,
    done: int | None = None,
    rate: float | None = None,
) -> str:
    instead_part = (
        (f" {instead} handled {plural(done, 'row')}, at {rounded(rate)} per second.")
        if instead and done is not None and rate is not None
        else ""
    )
    return (
        f"LIMIT when {doing} {plural(rows, 'row')} by {method} ({listing(drivers)}): {reason}.{instead_part}"
    )


def binding(*, ways: Sequence[Finding]) -> str:
    return f"sqlite3 was faster than Peewee, which runs on it: {listing(texts(ways))}."


def contention(*, driver: str, most: int, fewest: int, how: str, ways: Sequence[Finding]) -> str:
    return (
        f"Rows per second with {driver}, {processes(most)} at once compared with {processes(fewest)}: "
        f"{how} when {listing(texts(ways))}."
    )


def way_changed(*, way: str, ratio: Ratio) -> str:
    return f"{way} ({estimate(ratio)} as fast, {between(ratio)})"


def made_inside(
    *,
    times: float | None = None,
    ratio: Ratio | None = None,
    unsure: Ratio | None = None,
    unclear: bool | None = None,
) -> str:
    times_part = f"{wording.times(times)} as long" if times is not None else ""
    ratio_part = f"{with_interval(ratio, 'as long')}" if ratio is not None else ""
    unsure_part = (
        (f"cannot tell whether slower ({between(unsure)} times as long)") if unsure is not None else ""
    )
    return f"Ids generated inside SQLite, by a Python function: {times_part}{ratio_part}{unsure_part}."


def id_type(
    *,
    schema: str,
    int_cost: Finding | None = None,
    has_int: bool = False,
    stays: bool = False,
    chosen: str | None = None,
    dated: bool = False,
    cost: Finding | None = None,
    unclear: Sequence[str] | None = None,
) -> str:
    int_cost_part = f"use int if one database assigns all ids ({int_cost.text}). " if int_cost else ""
    chosen_part = f"{chosen}" if chosen else ""
    cost_part = f" ({cost.text})" if cost else ""
    unclear_part = f" Cannot tell whether {listing(unclear, 'or')} is faster." if unclear else ""
    return (
        f"{schema}: {int_cost_part}{'Otherwise use' if has_int else 'use'} "
        f"{'uuid4 (no other type saves time or space)' if stays else ''}"
        f"{chosen_part}{', which contains its creation time' if dated else ''}{cost_part}.{unclear_part}"
    )


def type_cost(
    *,
    ratio: Ratio | None = None,
    equal: bool = False,
    unclear: bool = False,
    file: float | None = None,
) -> str:
    ratio_part = f"{between(ratio)} of uuid4's time" if ratio is not None else ""
    equal_text = "about equal to uuid4's time" if equal else ""
    file_part = f"; {rounded(file, 2)} of its file size" if file is not None else ""
    return f"{ratio_part}{equal_text}{'cannot tell whether faster than uuid4' if unclear else ''}{file_part}"


def type_least(
    *,
    schema: str,
    quickest: str,
    seconds: float,
    smallest: str | None = None,
    file: float | None = None,
) -> str:
    smallest_part = f"{smallest} " if smallest else ""
    file_part = (
        (f" and {smallest_part}the least space ({rounded(file, 2)} of uuid4's)") if file is not None else ""
    )
    return f"{schema}: {quickest} took the least time ({rounded(seconds)} s){file_part}."


def schema(
    *,
    type: str,
    quickest: Sequence[str],
    seconds: float,
    unique: Finding,
    single: bool = False,
    several: bool = False,
    equal: bool = False,
    unclear: bool = False,
    smallest: Sequence[str] | None = None,
    about: bool = False,
    megabytes: float | None = None,
) -> str:
    smallest_part = (
        (f"; smallest: {listing(smallest)} ({'about ' if about else ''}{rounded(megabytes)} MB)")
        if smallest and megabytes is not None
        else ""
    )
    return (
        f"With {type}, {'least time' if single else 'fastest'}: {listing(quickest)} "
        f"({'about ' if several else ''}{rounded(seconds)} "
        f"s{'; about equal' if equal else ''}{'; cannot tell which is fastest' if unclear else ''})"
        f"{smallest_part}. {unique.text}"
    )


def unique(
    *,
    schemas: Sequence[str],
    one: bool = False,
    unmeasured: bool = False,
    costs: Sequence[Finding] | None = None,
) -> str:
    costs_part = f"; size: {listing(texts(costs))} the smallest file" if costs else ""
    return (
        f"Only {listing(schemas)} prevent{'s' if one else ''} duplicate "
        f"picks{': measure them with --schema' if unmeasured else ''}{costs_part}."
    )


def schema_costs(*, schema: str, times: float) -> str:
    return f"{schema} {wording.times(times)}"


def timeout(*, where: str, reason: str, limit_ns: float | None = None) -> str:
    limit_ns_part = f" after {duration(limit_ns)}" if limit_ns is not None else ""
    return f"TIMEOUT at {where}{limit_ns_part}: {reason}."


def fastest(*, fastest: Finding, single: bool = False, slowest: Finding | None = None) -> str:
    slowest_part = f"; {'most' if single else 'slowest'}: {slowest.text}" if slowest else ""
    return f"{'Least time' if single else 'Fastest'}: {fastest.text}{slowest_part}."


def settings_took(
    *,
    settings: Sequence[str],
    total_ns: float,
    about: bool = False,
    closing_ns: float | None = None,
    times: float | None = None,
    ratio: Ratio | None = None,
    equal: bool = False,
    unclear: bool = False,
) -> str:
    closing_ns_part = (
        (f", plus {duration(closing_ns)} for the closing checkpoint") if closing_ns is not None else ""
    )
    times_part = f", {wording.times(times)} as long" if times is not None else ""
    ratio_part = f", {with_interval(ratio, 'as long')}" if ratio is not None else ""
    return (
        f"{listing(settings)}, {'about ' if about else ''}{duration(total_ns)}{closing_ns_part}"
        f"{times_part}{ratio_part}{' (about equal)' if equal else ''}"
        f"{' (cannot tell which is fastest)' if unclear else ''}"
    )


def beyond_the_sum(*, bounds: Sequence[Finding]) -> str:
    return (
        "The total includes BEGIN and COMMIT, but the sum of the statements does not: "
        f"{listing(texts(bounds))}. Row by row, BEGIN and COMMIT are part of each statement, and the sum "
        "is the total."
    )


def bounds_took(
    *,
    bounds_ns: float,
    total_ns: float,
    share: float,
    where: str,
    one: bool = False,
    commits: float | None = None,
) -> str:
    commits_part = f"{rounded(commits)} COMMITs" if commits is not None else ""
    return (
        f"{duration(bounds_ns)} of {duration(total_ns)} ({percent(share)}; "
        f"{'one COMMIT' if one else ''}{commits_part}) in {where}"
    )


def checkpoints_off(
    *,
    where: str,
    off_ns: float,
    other: str,
    on_ns: float,
    ratio: Ratio | None = None,
    unclear: bool = False,
    frames: int | None = None,
) -> str:
    ratio_part = f", {with_interval(ratio, 'as long')}" if ratio is not None else ""
    frames_part = (
        (f" No effect expected: the WAL never reached {plural(frames, 'frame')}.")
        if frames is not None
        else ""
    )
    return (
        f"Without checkpoints ({where}): {duration(off_ns)}; with them ({other}): "
        f"{duration(on_ns)}{ratio_part}{' (cannot tell which is faster)' if unclear else ''}.{frames_part}"
    )


def checkpoint(
    *,
    where: str,
    frames: int,
    due: int,
    commits: int,
    spike: int,
    spike_ns: float,
    median_ns: float,
    together: int | None = None,
    unseen: bool = False,
    seen: Finding | None = None,
    process: int | None = None,
    is_it: bool = False,
    first: int | None = None,
    slower: float | None = None,
) -> str:
    together_part = f" of each of {whole(together)} processes in step" if together is not None else ""
    seen_part = f"{capital(seen.text)}" if seen else ""
    process_part = f" of process {whole(process)}" if process is not None else ""
    first_part = (
        (f" Cycle {whole(first)} was slower than {percent(slower)} of the cycles.")
        if first is not None and slower is not None
        else ""
    )
    return (
        f"{where}: the checkpoint at {plural(frames, 'frame')} was due in cycle {whole(due)} "
        f"({plural(commits, 'commit')} per cycle{together_part}, one frame each). "
        f"{'None was seen' if unseen else ''}{seen_part}. The slowest cycle except the first is "
        f"{whole(spike)}{process_part} ({duration(spike_ns)}; median {duration(median_ns)}): "
        f"{'the checkpoint' if is_it else 'not a checkpoint'}.{first_part}"
    )


def checkpoint_seen(
    *,
    there: bool = False,
    cycle: int | None = None,
    process: int | None = None,
    cycle_ns: float | None = None,
    early: bool = False,
    later: Sequence[int] | None = None,
    more: int | None = None,
) -> str:
    cycle_part = f"in cycle {whole(cycle)}" if cycle is not None else ""
    process_part = f" of process {whole(process)}" if process is not None else ""
    cycle_ns_part = f" ({duration(cycle_ns)})" if cycle_ns is not None else ""
    later_part = f", then in {written(later)}" if later else ""
    more_part = f" and {whole(more)} later ones" if more is not None else ""
    return (
        f"it was seen {'there' if there else ''}{cycle_part}{process_part}"
        f"{cycle_ns_part}{': commits wrote more than one frame' if early else ''}{later_part}{more_part}"
    )
