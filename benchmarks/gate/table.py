"""The results as Markdown: a row for each kind of test, with the targets."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from tabulate import tabulate

from benchmarks.gate.experiments import Asked, Outcome, Results, Setting
from benchmarks.gate.rates import clopper_pearson, met

WRONG, FOUND, MINUTES = 0.01, 0.9, 3.0
"""Targets: of wrong verdicts at most, of drops at least, at most."""
DEFAULT_SLICE_S = 2.5
"""What a slice of `sqlstress ab` takes where nothing else is asked for: 2 s after 0.5 s."""
HEADERS = (
    "B slower by",
    "--max-drop",
    "tests",
    "fail",
    "pass",
    "inconclusive",
    "not measured",
    "pairs",
    "minutes",
)


def markdown(results: Results) -> str:
    """Return everything as Markdown."""
    setting = results.setting
    facts = (
        f"Measured {results.created}, revision {results.revision or 'unknown'}.",
        *results.surroundings,
        f"slices of {setting.duration_s:g} s after {setting.warmup_s:g} s of warm-up, "
        f"{setting.concurrency} process{'es' * (setting.concurrency != 1)}, synchronous "
        f"{setting.synchronous}, {setting.read_ratio:.0%} gets, {setting.key_space:,} keys; "
        f"at most {setting.max_pairs} pairs and {setting.max_time_s / 60:g} minutes",
    )
    parts = [
        "# How sure the gate is",
        f"```\n{' '.join(results.command)}\n```",
        "\n".join(f"- {fact}" for fact in facts),
        "Each test is a whole `sqlstress ab`. B is A with a busy wait after each operation, in proportion "
        "to it. Rates have exact 95 % intervals (Clopper-Pearson). Pairs: median; minutes: the longest too.",
        table(results),
        "\n".join(f"- {line}" for line in targets(results)),
        *_errors(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(results: Results) -> str:
    """Return a row for each kind of test."""
    kinds = sorted({(outcome.share, outcome.max_drop) for outcome in results.outcomes})
    rows = [_row(asked, results.of(asked)) for asked in kinds]
    return tabulate(rows, HEADERS, tablefmt="pipe", disable_numparse=True, colalign=("right",) * len(HEADERS))


def _row(asked: Asked, outcomes: list[Outcome]) -> tuple[str, ...]:
    minutes = [outcome.seconds / 60 for outcome in outcomes]
    return (
        f"{asked[0]:.0%}",
        f"{asked[1]:.0%}",
        str(len(outcomes)),
        *(_rate(outcomes, verdict) for verdict in ("fail", "pass", "inconclusive")),
        str(_count(outcomes, "undecided")),
        f"{median(outcome.pairs for outcome in outcomes):g}",
        f"{median(minutes):.1f} ({max(minutes):.1f})",
    )


def _count(outcomes: list[Outcome], verdict: str) -> int:
    return sum(outcome.verdict == verdict for outcome in outcomes)


def _rate(outcomes: list[Outcome], verdict: str) -> str:
    hits, runs = _count(outcomes, verdict), len(outcomes)
    low, high = clopper_pearson(hits, runs)
    return f"{hits}: {hits / runs:.1%} ({low:.1%} to {high:.1%})"


def targets(results: Results) -> Iterator[str]:
    """Yield what was to be reached, and whether it was."""
    allowed = [one for one in results.outcomes if one.share <= one.max_drop]
    if allowed:
        rate = _count(allowed, "fail") / len(allowed)
        yield f"false alarms, of what is allowed: {rate:.1%}, at most {WRONG:.0%}: {met(rate <= WRONG)}"
    if slower := results.of((0.2, 0.1)):
        rate = _count(slower, "pass") / len(slower)
        yield f"false passes of a drop of 20%: {rate:.1%}, at most {WRONG:.0%}: {met(rate <= WRONG)}"
    if half := results.of((0.1, 0.05)):
        rate = _count(half, "fail") / len(half)
        reached = met(rate >= FOUND)
        yield f"a drop of 10% found at --max-drop 5%: {rate:.1%}, at least {FOUND:.0%}: {reached}"
    if same := results.of((0.0, 0.1)):
        middle = median(_minutes(one, results.setting) for one in same)
        reached = met(middle <= MINUTES)
        yield f"minutes of A against A, were slices 2 s: median {middle:.1f}, at most {MINUTES:g}: {reached}"


def _minutes(outcome: Outcome, setting: Setting) -> float:
    """Return how long so many pairs would have taken with the default slices."""
    longer = 2 * outcome.pairs * (DEFAULT_SLICE_S - setting.duration_s - setting.warmup_s)
    return (outcome.seconds + longer) / 60


def _errors(results: Results) -> Iterator[str]:
    yield from dict.fromkeys(f"Not measured: {one.error}." for one in results.outcomes if one.error)
