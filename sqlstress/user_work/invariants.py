"""Ready-made checks of what concurrent programs promise: they raise AssertionError where it does not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any

from sqlstress.user_work.loading import check
from sqlstress.user_work.notes import Notes, first

EXAMPLES = 3


def exactly_once(put: Iterable[Any], taken: Iterable[Any]) -> None:
    """See that each thing that was put was taken once: none lost, none twice, none from nowhere.

    What is still there at the end counts as taken: `exactly_once(notes.of("put"), notes.of("taken") + left)`.
    """
    there, gone = _counted(put), _counted(taken)
    more = gone - there
    wrong = {
        "never taken": [*(there - gone)],
        "taken more than once": [key for key in more if key in there],
        "taken and never put": [key for key in more if key not in there],
    }
    problems = [f"{what}: {_examples(keys)}" for what, keys in wrong.items() if keys]
    if problems:
        raise AssertionError("; ".join(problems))


def counter(read: int, notes: Notes | Sequence[Any]) -> None:
    """See that a counter holds as many as were noted: `counter(hits, notes.of("hit"))`, or all `notes`."""
    counted = len(notes.all if isinstance(notes, Notes) else notes)
    if read != counted:
        raise AssertionError(f"the counter holds {read}, and {counted} were counted")


def conserved(query: str) -> Callable[..., Any]:
    """Return a check: a query must return before, during and after the load what it returned first.

    `no_money_appears = conserved("SELECT sum(balance) FROM account")`
    """

    @check
    def unchanged(run: Callable[..., Any]) -> None:
        rows = [tuple(row) for row in run(query)]
        before = first(sha256(query.encode()).hexdigest(), rows)
        if rows != before:
            raise AssertionError(f"it was {_shown(before)} and is {_shown(rows)}")

    return unchanged


def _counted(things: Iterable[Any]) -> Counter[Any]:
    found = Counter[Any]()
    for one in things:
        try:
            found[one] += 1
        except TypeError:  # such as a dict
            found[repr(one)] += 1
    return found


def _examples(keys: Sequence[Any]) -> str:
    more = f" and {len(keys) - EXAMPLES:,} more" if len(keys) > EXAMPLES else ""
    return ", ".join(f"{key!r:.40}" for key in keys[:EXAMPLES]) + more


def _shown(rows: Sequence[tuple[Any, ...]]) -> str:
    return ", ".join(repr(row[0] if len(row) == 1 else row)[:40] for row in rows[:EXAMPLES]) or "no rows"
