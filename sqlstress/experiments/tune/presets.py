"""The face of a comparison of published settings: the cases are those of a load, the verdict its own."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from sqlstress.experiment import CommandLine, Experiment, StudyOf
from sqlstress.options.option import REST, chosen, option, options_of
from sqlstress.options.parsing import duration, shown, switch, whole
from sqlstress.report.power_failure import risk

# What is asked for where published settings are compared.


COMPARED = "What is compared"
MOST_ROUNDS = 500


def name(value: Any) -> str:
    """Read the name of a preset."""
    if isinstance(value, str) and value.strip():
        return value.strip().lower()
    raise ValueError(f"{shown(value)} is no name of a preset")


def names(value: Any) -> tuple[str, ...]:
    """Read names of presets: "rails,django"."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    if not parts:
        raise ValueError(f"{shown(value)} names no preset: write rails,django")
    return tuple(dict.fromkeys(map(name, parts)))


def words(value: Any) -> tuple[str, ...]:
    """Read the words behind --."""
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise ValueError(f"{shown(value)} is no list of words")


@dataclass(frozen=True, slots=True)
class Nothing:
    """A comparison says nothing in a case: those that it measures are of the load."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Which presets are measured, and how often."""

    compare: tuple[str, ...] | None = option(
        names, None, COMPARED, "Presets to measure: rails,django; all for every one.", metavar="LIST"
    )
    against: str | None = option(
        name,
        None,
        COMPARED,
        "What they are set against: sqlite (its own defaults), yours (the settings behind --, and usual "
        "where there are any), or another preset.",
        metavar="NAME",
    )
    rounds: int = option(
        whole(3, MOST_ROUNDS), 10, COMPARED, "Rounds: in each every preset is measured once."
    )
    max_time: float = option(
        duration(1.0),
        "20m",
        COMPARED,
        "No other round is begun where it would end later.",
        metavar="DURATION",
    )
    strict: bool = option(switch, None, COMPARED, "Exit 3 when something can't be told.", flag=True)
    load: tuple[str, ...] = option(
        words,
        (),
        COMPARED,
        "Your load, behind --: options of kv, or another command and its options.",
        metavar="[-- OPTIONS OF THE LOAD]",
        argument=REST,
    )


PRESETS = Experiment(
    name="presets",
    spec=Nothing,
    command=CommandLine(
        name="presets",
        summary="Published settings of well-known projects, measured on your load.",
        help=(
            "List published settings of well-known projects, or measure some on your load (--compare).\n\n"
            "Each with its source, and what a power failure can take. They are set against SQLite's own "
            "defaults, a rollback journal with every commit synced, unless --against says another one."
        ),
        example="sqlstress presets --compare rails,django -- --concurrency 4",
    ),
    options=chosen(options_of(Compared)),
    extra=Compared,
    study=StudyOf(
        asks="sqlstress.experiments.tune.presets_study:study_of",
        result="sqlstress.experiments.tune.results:PresetComparison",
        result_key=("choice", "presets"),
        called="a comparison of presets",
    ),
    shown="sqlstress.experiments.tune.show_presets:PresetsShown",
)


# The published settings that ship with the package, each with its source and when it was looked up.


FILE = "presets.toml"
SQLITE = "sqlite"
"""The preset that sets nothing."""
YOURS = "yours"
"""The name of the load's own settings; reports of sqlstress 0.1 before its release call them "default"."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings that a project publishes."""

    name: str
    project: str
    source: str
    """Where they stand."""
    looked_up: str
    """When they stood there: ISO 8601."""
    settings: dict[str, str]
    """Values by the names of options."""
    pragmas: tuple[str, ...] = ()
    """Others, as NAME=VALUE."""
    apart: tuple[str, ...] = ()
    """What belongs to them and is not measured."""

    @property
    def words(self) -> tuple[str, ...]:
        """The settings as they are written on the command line."""
        own = (word for name, value in self.settings.items() for word in (f"--{name}", value))
        return (*own, *(word for pragma in self.pragmas for word in ("--pragma", pragma)))

    @property
    def risk(self) -> str:
        """What a power failure can do, as a clause; "" for nothing."""
        return risk(self.settings["journal-mode"], self.settings["synchronous"]).told


@cache
def catalogue() -> dict[str, Preset]:
    """Return all presets, by name."""
    text = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return {
        one["name"]: Preset(
            one["name"],
            one["project"],
            one["source"],
            one["looked-up"].isoformat(),
            {name: str(value) for name, value in one["settings"].items()},
            tuple(one.get("pragma", ())),
            tuple(one.get("apart", ())),
        )
        for one in tomllib.loads(text)["preset"]
    }
