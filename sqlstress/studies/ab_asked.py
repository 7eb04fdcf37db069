"""An A/B test as it was asked for: the cells of both arms, the test, and where they are measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlstress.errors import UsageError
from sqlstress.plan import cases_of, parsed, seeded
from sqlstress.report import AbTest, Arm
from sqlstress.report.ab import DRAWN
from sqlstress.report.case import Case
from sqlstress.report.traits import words
from sqlstress.statistics.gate import MOST, looks
from sqlstress.studies.ab import AbStudy, first_arm
from sqlstress.studies.ab_options import GATE, Given, left_out, load_options
from sqlstress.studies.same_loop import check_loops
from sqlstress.studies.slices import OwnPython

Cells = tuple[tuple[Case, ...], tuple[Case, ...]]
"""The cases of A, and those of B: they are compared one with one."""
_OF_THE_COMMAND = frozenset({"python-a", "python-b", "strict"})
"""Other Pythons, and an exit code."""


def checked(experiment: str, given: Mapping[str, Any]) -> Given:
    """Return the options of a call in Python: of those that are lists, tuples. Raises UsageError."""
    load = {one.name: one for one in load_options(experiment)}
    for name in given.keys() & (left_out(experiment) | _OF_THE_COMMAND):
        raise UsageError(f"{name} is no option of an A/B test in Python: leave it out.")
    lists = {name for name, one in load.items() if one.multiple or one.argument}
    return {
        name: tuple(value) if name in lists and isinstance(value, list) else value
        for name, value in given.items()
        if value or not (name in load and load[name].flag)
    }


def typed(experiment: str, own: Given) -> list[str]:
    """Return the options of an arm as they would be typed."""
    flags = {one.name for one in load_options(experiment) if one.flag}
    found: list[str] = []
    for name, value in own.items():
        for one in value if isinstance(value, tuple) else [value]:
            found += [f"--{name}"] if name in flags else [f"--{name}", words(one)]
    return found


def cells(experiment: str, arms: tuple[Given, Given]) -> Cells:
    """Return the cells of both arms, all of one seed. Raises UsageError."""
    if arms[0].get("seed") != arms[1].get("seed"):
        raise UsageError("both arms draw the same, by one seed: give --seed beside --a and --b, not in them.")
    seed = seeded({**arms[0], **arms[1]})["seed"]
    a, b = (cases_of({**arm, "seed": seed, "repeat": 1}, experiment) for arm in arms)
    if len(a) != len(b):
        raise UsageError(f"A has {len(a)} cells and B has {len(b)}: they are compared one with one.")
    return a, b


def study_of(cases: Cells, gate: Mapping[str, Any], arms: tuple[Arm, Arm]) -> AbStudy:
    """Return the study: `gate` holds unparsed values of what is compared. Raises UsageError."""
    known = {option.name: option for option in GATE}
    metric, max_drop, max_pairs, max_time_s = (
        parsed(known[name], gate.get(name, known[name].default))
        for name in ("metric", "max-drop", "max-pairs", "max-time")
    )
    test = AbTest(
        metric,
        max_drop,
        arms,
        first_arm(cases[0][0].seed),
        order=DRAWN,
        max_pairs=max_pairs,
        max_time_s=max_time_s,
    )
    return AbStudy(cases, test, looks(test.max_pairs or MOST))


def own_python(
    arms: tuple[Given, Given], cases: Cells, directory: Path, command: tuple[str, ...]
) -> OwnPython:
    """Return where both arms are measured by this Python. Raises UsageError for loops that differ."""
    check_loops((cases[0][0], cases[1][0]), arms)
    return OwnPython((*cases[0], *cases[1]), directory, command)
