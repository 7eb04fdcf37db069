"""The results as Markdown: a row for each workload, or for each experiment, a column for each change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tabulate import tabulate

from benchmarks.gate.rates import clopper_pearson
from benchmarks.mutations.catalogue import BYTES, CLEAN, ROWS, WORKLOADS
from benchmarks.mutations.experiment import LEVELS
from benchmarks.mutations.results import Results


def markdown(results: Results) -> str:
    """Return everything as Markdown."""
    seeds = [seed for each in results.seeds.values() for seed in each]
    facts = (
        f"Begun {results.created}, revision {' and '.join(results.revisions)}, driver {results.driver}",
        *results.surroundings,
        f"seeds {min(seeds)} to {max(seeds)}; {len(seeds):,} runs of real processes, looked at unchanged too",
    )
    parts = [
        "# What the checkers catch",
        f"```\n{' '.join(results.command)}\n```",
        "\n".join(f"- {fact}" for fact in facts),
        summary(results),
        "## Each workload",
        *(f"`--verify {level}`:\n\n{table(results, _by_workload(results), level)}" for level in LEVELS),
        "## Not applicable",
        "\n".join(_reasons()),
        "## Not caught, or not named",
        *_misses(results),
    ]
    return "\n\n".join(parts) + "\n"


def summary(results: Results) -> str:
    """Return a table for each level of verification, with a row for each experiment."""
    explained = (
        "Changes caught of those tried; where fewer were named than caught, how many were named stands in "
        "brackets. `clean` is false alarms of runs that nobody changed. The last row has the exact 95 % "
        "interval (Clopper-Pearson) of the rate; n/a: such a change can't be made to these files."
    )
    tables = (f"`--verify {level}`:\n\n{table(results, _by_experiment(results), level)}" for level in LEVELS)
    return "\n\n".join((explained, *tables))


def _by_workload(results: Results) -> dict[str, list[str]]:
    return {name: [name] for name in WORKLOADS if name in results.counts}


def _by_experiment(results: Results) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in _by_workload(results):
        found.setdefault(name.split(", ")[0], []).append(name)
    return found


def table(results: Results, groups: Mapping[str, Sequence[str]], level: str) -> str:
    """Return a row for each group of workloads, and for all together."""
    changes = (CLEAN, *ROWS, *BYTES)
    every = list(results.counts)
    rows = [
        (name, *(_cell(results, workloads, change, level) for change in changes))
        for name, workloads in {**groups, "all": every}.items()
    ]
    rows.append(("95 %", *(_interval(_sum(results, every, change, level)) for change in changes)))
    return tabulate(rows, ("", *changes), tablefmt="pipe", disable_numparse=True)


def _sum(results: Results, workloads: Sequence[str], change: str, level: str) -> list[int]:
    found = [results.counts[name].get(change, {}).get(level, [0, 0, 0]) for name in workloads]
    return [sum(column) for column in zip(*found, strict=True)]


def _cell(results: Results, workloads: Sequence[str], change: str, level: str) -> str:
    tried, caught, named = _sum(results, workloads, change, level)
    if not tried:
        return "n/a"
    brackets = f" ({named})" if named < caught else ""
    return f"{caught}/{tried}{brackets}"


def _interval(counts: Sequence[int]) -> str:
    tried, caught, _ = counts
    if not tried:
        return "n/a"
    low, high = clopper_pearson(caught, tried)
    return f"{100 * low:.1f} to {high:.1%}"


def _reasons() -> Iterator[str]:
    """Yield why some changes can't be made to the files of some workloads."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for workload in WORKLOADS.values():
        for change, why in workload.changes.items():
            if isinstance(why, str):
                reasons.setdefault((change, why), []).append(workload.name.split(", ")[0])
    for (change, why), names in reasons.items():
        yield f"- {change}: {why} ({', '.join(dict.fromkeys(names))})"


def _misses(results: Results) -> Iterator[str]:
    if not results.misses:
        yield "Nothing."
    for what, texts in results.misses.items():
        yield f"{what}:\n" + "\n".join(f"- {text}" for text in texts[:3])
