"""Text for numbers, cases, layouts and changes in sentences: numbers are rounded, and lists are short.

The layout of a case is its number of buckets: database files that partition the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlstress.experiment import case_label, experiment_of, has_window, unit_of
from sqlstress.report import Host
from sqlstress.report.case import Case
from sqlstress.statistics.compare import NEAR, Ratio
from sqlstress.statistics.sequential import FASTER, SLOWER
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S, digits, format_duration, plural, rounded

_LONGEST_LIST = 8
"""Maximum number of items in a list in a sentence."""


def truncate(text: str, longest: int) -> str:
    """Return `text`, cut to `longest` characters. A cut text ends in an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def percent(share: float) -> str:
    """Return a share from 0 to 1 as a percentage with two digits: 0.0123 → "1.2%"."""
    number = share * 100
    return f"{number:.2g}%" if 1e-3 < abs(number) < 9.95 else f"{rounded(number, 2)}%"


def times(ratio: float) -> str:
    """Return a ratio as text: 1.87 → "1.9 times"."""
    return f"{rounded(ratio, 2)} times"


def between(ratio: Ratio) -> str:
    """Return the interval of a ratio as text: "1.5 to 2.3"."""
    return f"{rounded(ratio.low, 2)} to {rounded(ratio.high, 2)}"


def duration(ns: float) -> str:
    """Return nanoseconds in a readable unit: 2_232_000_000 → "2.2 s"."""
    return _in_units(ns, ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (1000, "µs")), "ns")


def size(count: float) -> str:
    """Return a number of bytes in a readable unit: 85_000_000 → "85 MB"."""
    return _in_units(count, ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (1000, "kB")), "bytes")


def _in_units(number: float, units: Iterable[tuple[int, str]], smallest: str) -> str:
    divisor, unit = next((pair for pair in units if number >= pair[0]), (1, smallest))
    value = number / divisor
    return f"{rounded(value, 3 if value >= 100 else 2)} {unit}"


def processes(count: int) -> str:
    """Return a number of processes as text: "1 process", "8 processes"."""
    return f"{digits(count)} process{'es' * (count != 1)}"


def cores(host: Host) -> str:
    """Return a host's known cores and CPU quota: "8 cores, limited to 2 by a CPU quota"."""
    count = "" if host.cores is None else f"{digits(host.cores)} core{'s' * (host.cores != 1)}"
    return ", ".join(filter(None, (count, quota(host))))


def quota(host: Host) -> str:
    """Return a host's CPU quota: "limited to 2 by a CPU quota"; "" without a quota."""
    return f"limited to {host.cpu_quota:.3g} by a CPU quota" if host.is_limited else ""


def buckets(count: int) -> str:
    """Return a number of buckets as text: "1 bucket", "20 buckets"."""
    return plural(count, "bucket")


def buckets_label(count: int, cases: Iterable[Case]) -> str:
    """Return `count` as "20 buckets"; "" if the cases' experiments use a single file."""
    return buckets(count) if any(experiment_of(case).many_files for case in cases) else ""


def layouts(counts: Sequence[int]) -> str:
    """Return numbers of buckets (ascending) as text: "1 and 20 buckets"."""
    return _numbers(counts, buckets)


def amount(case: Case) -> str:
    """Return the amount of work in a trial: "2s windows after 500ms of warm-up", "9 pairs per process"."""
    if case.ops is not None:
        return f"{plural(case.ops, unit_of(case))} per process"
    if not has_window(case):
        return "a fixed amount of work"
    after = f" after {format_duration(case.warmup_s)} of warm-up" if case.warmup_s else ""
    return f"{format_duration(case.duration_s)} windows{after}"


def busy_policy(case: Case) -> str:
    """Return the limit of lock waits: "lock waits up to 5s (...)"; for a server, also the isolation level."""
    settings = case.settings
    if case.server:
        timeout = format_duration(settings.busy_timeout_ms / 1000)
        retried = ", retried" if experiment_of(case).retries_refused else ""
        return f"{case.server.isolation.replace('-', ' ')}{retried}, lock waits up to {timeout}"
    return f"lock waits up to {format_duration(settings.busy_timeout_ms / 1000)} (SQLite's busy handler)"


def place(case: Case) -> str:
    """Return the label of a case: "8 processes on 20 buckets"; its name if it has no such numbers."""
    if not experiment_of(case).sweeps:
        return case_label(case)
    return f"{processes(case.concurrency)}{layout_suffix(case)}{rate_suffix(case)}"


def layout_suffix(case: Case) -> str:
    """Return a case's number of buckets: " on 20 buckets"; "" for experiments with a single file."""
    layout = buckets_label(case.buckets, [case])
    return f" on {layout}" if layout else ""


def rate_suffix(case: Case) -> str:
    """Return a case's fixed rate: " at 2,000/s"; "" if its operations run back to back."""
    return f" at {case.rate_label}" if case.rate else ""


def listing(items: Sequence[str], last: str = "and") -> str:
    """Return items as text: "a, b and c". A long list is cut: "a, b, c and 12 more"."""
    if len(items) > _LONGEST_LIST:
        items = (*items[: _LONGEST_LIST - 1], f"{len(items) - _LONGEST_LIST + 1} more")
    return f" {last} ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def places(cases: Iterable[Case]) -> str:
    """Return a label of cases: "4 and 8 processes on 1 and 20 buckets"."""
    listed = list(cases)
    if not all(experiment_of(case).sweeps for case in listed):
        return listing([place(case) for case in listed])
    by_rate: dict[int, list[Case]] = {}
    for case in sorted(listed, key=lambda case: case.rate):  # the rate 0 stands for operations back to back
        by_rate.setdefault(case.rate, []).append(case)
    by_layout: dict[tuple[bool, str], list[str]] = {}
    for rate, rate_cases in by_rate.items():
        by_layout.setdefault((rate > 0, _layouts_of(rate_cases)), []).append(f"{digits(rate)}/s")
    return listing(
        [
            f"{layout} at {listing(rates)}" if at_rates else layout
            for (at_rates, layout), rates in by_layout.items()
        ]
    )


def process_counts(cases: Iterable[Case]) -> str:
    """Return the numbers of processes of `cases` as text: "4 and 8 processes"."""
    return _numbers(sorted({case.concurrency for case in cases}), processes)


def _layouts_of(cases: Sequence[Case]) -> str:
    """Return a label of cases at one rate, without the rate: "4 and 8 processes on 1 and 20 buckets"."""
    many_files = any(experiment_of(case).many_files for case in cases)
    by_layout: dict[int, set[int]] = {}
    for case in cases:
        by_layout.setdefault(case.buckets, set()).add(case.concurrency)
    by_concurrency: dict[tuple[int, ...], list[int]] = {}
    for layout, counts in by_layout.items():
        by_concurrency.setdefault(tuple(sorted(counts)), []).append(layout)
    return listing(
        [
            _numbers(counts, processes) + (f" on {layouts(sorted(files))}" if many_files else "")
            for counts, files in by_concurrency.items()
        ]
    )


def _numbers(values: Sequence[int], with_unit: Callable[[int], str]) -> str:
    """Return ascending numbers as text: "1, 2 and 4 processes", "1 and 3 to 8 processes"."""
    ranges: list[list[int]] = []
    for value in values:
        if ranges and value == ranges[-1][-1] + 1:
            ranges[-1].append(value)
        else:
            ranges.append([value])
    parts: list[str] = []
    for numbers in ranges:
        parts += (
            map(digits, numbers) if len(numbers) < 3 else [f"{digits(numbers[0])} to {digits(numbers[-1])}"]
        )
    *first_parts, last = parts
    return listing([*first_parts, last.removesuffix(digits(values[-1])) + with_unit(values[-1])])


# Changes of a figure in tests that can fail a build: A/B tests, and checks against a baseline. `metric` is
# "tps" or "p99".


def signed(ratio: float) -> str:
    """Return a ratio as a change: 1.031 → "+3.1%", 0.76 → "-24%", 6.3 → "6.3 times"."""
    if ratio >= 2:
        return times(ratio)
    share = rounded(abs(ratio - 1) * 100, 2) if abs(ratio - 1) >= 0.0005 else "0"
    return f"{'' if share == '0' else '+' if ratio > 1 else '-'}{share}%"


def noun(metric: str) -> str:
    """Return the noun for a change for the worse: "drop" for TPS, "rise" for p99."""
    return "rise" if metric == "p99" else "drop"


def loss(ratio: float, metric: str) -> float:
    """Return the share by which TPS or p99 (`metric`) got worse; below 0 if better. `ratio` is new / old."""
    return ratio - 1 if metric == "p99" else 1 - ratio


def possible_change(worst: float | None, best: float | None, metric: str) -> str:
    """Return the possible range of a change for the worse: "no drop shown, up to 69% possible".

    `worst` and `best` are the bounds of the ratio new / old; None for too few trials.
    """
    if worst is None or best is None:
        return "not enough was measured to show anything"
    least, most = loss(best, metric), loss(worst, metric)
    shown = (
        f"no {noun(metric)} shown" if least <= 0 else f"a {noun(metric)} of at least {percent(least)} shown"
    )
    return f"{shown}, up to {percent(most)} possible" if most > max(least, 0) else shown


def capital(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def with_interval(ratio: Ratio, what: str) -> str:
    """Return a ratio with its interval: "1.9 times as fast (1.8 to 2.0)". Here `what` is "as fast".

    A ratio that is significantly within 10% (NEAR) of 1 is only "about as fast".
    """
    interval = "" if ratio.is_within(NEAR) else f" ({between(ratio)})"
    return f"{without_interval(ratio, what)}{interval}"


def without_interval(ratio: Ratio, what: str) -> str:
    """Return a ratio as text: "1.9 times as fast". Here `what` is "as fast".

    A ratio that is significantly within 10% (NEAR) of 1 is "about as fast".
    """
    return f"about {what}" if ratio.is_within(NEAR) else f"{times(ratio.estimate)} {what}"


def counts(numbers: Mapping[str, int]) -> str:
    """Return named numbers, such as counts of errors, as text: "busy (12) and locked (3)"."""
    return listing([f"{name} ({digits(number)})" for name, number in numbers.items()])


def quoted(numbers: Mapping[str, int]) -> str:
    """Return messages with the number of occurrences: '"disk full" (2); "no such table" (1)'."""
    return "; ".join(f'"{text}" ({digits(number)})' for text, number in numbers.items())


MOSTLY_WAITED = 0.9
"""Share of failures after the whole busy timeout from which a sentence does not mention the others."""


class FailureTime(NamedTuple):
    """Time until operations failed, and the busy timeout (time limit for a lock, such as SQLite's)."""

    median_ns: float
    longest_ns: float
    timeout_ms: int | None
    """Busy timeout, in ms; None if unknown or different between connections; 0 if not set."""
    failures: int
    waited: int
    """Number of failed operations that waited for the whole timeout, or almost."""
    at_once: bool
    """Whether at least half of the operations failed at once, and none waited for the whole timeout."""


def failure_time(time: FailureTime) -> str:
    """Return the time until operations failed: "after the whole timeout of 5s (median ...)"."""
    median, longest = duration(time.median_ns), duration(time.longest_ns)
    both = f"(median {median}, longest {longest})"
    if time.timeout_ms is None:
        return f"after {median} (median; longest {longest})"
    if not time.timeout_ms:
        return f"at once, without a busy timeout {both}"
    timeout = f"timeout of {format_duration(time.timeout_ms / 1000)}"
    if time.waited >= MOSTLY_WAITED * time.failures:
        return f"after the whole {timeout} {both}"
    if time.at_once:
        return f"at once (median {median}, longest {longest}; the {timeout} was not waited for)"
    if not time.waited:
        return f"before the {timeout} ended {both}"
    some = f"{digits(time.waited)} of {digits(time.failures)}"
    return f"{some} after the whole {timeout}, the others earlier {both}"


class Change(NamedTuple):
    """Change of a figure, such as TPS, from variant A to variant B of an A/B test."""

    direction: str
    """Direction of the change: FASTER, SLOWER or UNCLEAR of `statistics.sequential`."""
    metric: str
    """Name of the figure: "TPS" or "p99"."""
    ratio: float
    """B's figure divided by A's (estimate)."""
    pairs: int
    """Number of pairs of trials (one of A, one of B) behind the estimate."""
    low: float | None = None
    """Lower bound of the ratio; None for too few pairs of trials."""
    high: float | None = None
    where: str = ""
    """Label of the case, such as "at 8 processes"; empty for the mean of all cases."""


def change_figures(change: Change) -> str:
    """Return the figures of a change: "TPS -24% (-31% to -15%, 12 pairs)"."""
    bounds = ""
    if change.low is not None and change.high is not None:
        bounds = f"{signed(change.low)} to {signed(change.high)}, "
    return f"{change.metric} {signed(change.ratio)} ({bounds}{plural(change.pairs, 'pair')})"


def change_text(change: Change) -> str:
    """Return a change as a clause: "B is faster: TPS +3.1% (12 pairs)"."""
    if change.direction in (FASTER, SLOWER):
        where = f"{change.where} " if change.where else ""
        return f"{where}B is {change.direction}: {change_figures(change)}"
    where = f" {change.where}" if change.where else ""
    return f"cannot tell whether B is faster{where}: {change_figures(change)}"
