"""What is shown of a drop, and what is left possible, in the same words wherever a gate judges."""

from __future__ import annotations

from sqlstress.analysis.wording import percent

TOO_LITTLE = "too little to show anything"


def noun(metric: str) -> str:
    """Return what a change for the worse is called: TPS drops, p99 rises."""
    return "rise" if metric == "p99" else "drop"


def loss(ratio: float, metric: str) -> float:
    """Return the share by which a figure is worse; below 0 where it is better."""
    return ratio - 1 if metric == "p99" else 1 - ratio


def what_is_possible(worst: float | None, best: float | None, metric: str) -> str:
    """Return what two bounds of a ratio leave: "no drop shown, up to 69% possible"."""
    if worst is None or best is None:
        return TOO_LITTLE
    least, most = loss(best, metric), loss(worst, metric)
    shown = (
        f"no {noun(metric)} shown" if least <= 0 else f"a {noun(metric)} of at least {percent(least)} shown"
    )
    return f"{shown}, up to {percent(most)} possible" if most > max(least, 0) else shown
