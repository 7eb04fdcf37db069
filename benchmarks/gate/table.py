"""The results as Markdown: a row for each share, with the targets."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from tabulate import tabulate

from benchmarks.gate.experiments import Outcome, Results
from benchmarks.gate.rates import clopper_pearson

FALSE_ALARMS, DETECTED, MINUTES = 0.01, 0.9, 3.0
"""Targets on a noisy machine with 2 cores: at most, at least (of a drop of 20 %), at most."""
DETECTED_AT = 0.2
HEADERS = (
    "B slower by",
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
        f"a drop of {setting.max_drop:.0%} is allowed",
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
    """Return a row for each share."""
    shares = sorted({outcome.share for outcome in results.outcomes})
    rows = [_row(share, results.of(share)) for share in shares]
    return tabulate(rows, HEADERS, tablefmt="pipe", disable_numparse=True, colalign=("right",) * len(HEADERS))


def _row(share: float, outcomes: list[Outcome]) -> tuple[str, ...]:
    minutes = [outcome.seconds / 60 for outcome in outcomes]
    return (
        f"{share:.0%}",
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
    same, slower = results.of(0.0), results.of(DETECTED_AT)
    if same:
        rate = _count(same, "fail") / len(same)
        yield f"false alarms: {rate:.1%}, at most {FALSE_ALARMS:.0%}: {_met(rate <= FALSE_ALARMS)}"
    if slower:
        rate = _count(slower, "fail") / len(slower)
        reached = _met(rate >= DETECTED)
        yield f"a drop of {DETECTED_AT:.0%} found: {rate:.1%}, at least {DETECTED:.0%}: {reached}"
    if results.outcomes:
        middle = median(outcome.seconds for outcome in results.outcomes) / 60
        yield f"minutes: median {middle:.1f}, at most {MINUTES:g}: {_met(middle <= MINUTES)}"


def _met(reached: bool) -> str:
    return "reached" if reached else "SHORT"


def _errors(results: Results) -> Iterator[str]:
    yield from dict.fromkeys(f"Not measured: {one.error}." for one in results.outcomes if one.error)
