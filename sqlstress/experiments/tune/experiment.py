"""The faces of both searches for settings, `tune` and `presets`, and the published settings that we ship.

The cases are those of a load; the verdict is their own.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from sqlstress.experiment import DEFAULT, CommandLine, Experiment, StudyOf
from sqlstress.options.option import REST, Nothing, chosen, option, options_of
from sqlstress.options.parsing import duration, shown, switch, whole, word_list
from sqlstress.plan import AT_A_RATE, options_of_load
from sqlstress.report.case import Case
from sqlstress.report.power_failure import risk
from sqlstress.report.study_results import Gain

SEARCH, COMPARED = "Search", "Comparison"
NOT_HERE = ("repeat", "max-failed", "preset", *AT_A_RATE)
"""Options of a load that mean nothing where slices are measured in turns."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is searched."""

    max_time: float = option(
        duration(5.0),
        "3m",
        SEARCH,
        "Time limit of the search, final comparison included.",
        metavar="DURATION",
    )
    strict: bool = option(switch, None, SEARCH, "Exit 3 if the result is inconclusive.", flag=True)


OTHERWISE: dict[str, dict[str, Any]] = {
    "concurrency": {"default": "4", "help": "Number of processes. Give a single number."},
    "buckets": {"help": "Number of buckets (database files). With a list, the search includes it."},
    "duration": {"default": "500ms", "help": "Length of the measured window of one slice."},
    "warmup": {"default": "200ms"},
}
"""What options of the load mean in `tune`, where there is a single trial to a slice."""

TUNE = Experiment(
    name="tune",
    spec=Nothing,
    command=CommandLine(
        name="tune",
        summary="Find faster settings for this machine, with the same guarantees.",
        help=(
            "Search for settings that are faster on this machine, for three minutes. It prints a line to "
            "paste, or reports that your settings are as good.\n\n"
            "It varies checkpoints, page size, cache, mmap and the busy policy; with --buckets 1,4 also the "
            "number of buckets. It never varies journal mode, synchronous, batch or an option that you give."
        ),
        main_options=("concurrency", "buckets", "synchronous", "read-ratio", "max-time", "output"),
        example="sqlstress tune --concurrency 4 --synchronous normal",
    ),
    options=(
        *chosen(options_of(Patience)),
        *options_of_load(DEFAULT, OTHERWISE, (*NOT_HERE, "ops")),
    ),
    extra=Patience,
    study=StudyOf(
        asks="sqlstress.experiments.tune.study:tune_study",
        result="sqlstress.experiments.tune.experiment:Tuning",
        result_key=("choice", "tune"),
        called="a search for better settings",
    ),
    shown="sqlstress.experiments.tune.show:TuningShown",
)


def name(value: Any) -> str:
    """Read the name of a preset."""
    if isinstance(value, str) and value.strip():
        return value.strip().lower()
    raise ValueError(f"{shown(value)} is not the name of a preset")


def names(value: Any) -> tuple[str, ...]:
    """Read names of presets: "rails,django"."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
    if not parts:
        raise ValueError(f"{shown(value)} is not a list of presets: write rails,django")
    return tuple(dict.fromkeys(map(name, parts)))


@dataclass(frozen=True, slots=True)
class Compared:
    """Which presets are measured, and how often."""

    compare: tuple[str, ...] | None = option(
        names, None, COMPARED, "Presets to measure: rails,django, or all.", metavar="LIST"
    )
    against: str | None = option(
        name,
        None,
        COMPARED,
        "Baseline: sqlite (SQLite's defaults), yours (the settings after --), or a preset. Default: yours if "
        "you give settings, else sqlite.",
        metavar="NAME",
    )
    rounds: int = option(whole(3, 500), 10, COMPARED, "Number of rounds. Each measures every preset once.")
    max_time: float = option(
        duration(1.0),
        "20m",
        COMPARED,
        "Time limit. No round starts that would end after it.",
        metavar="DURATION",
    )
    strict: bool = option(switch, None, COMPARED, "Exit 3 if a comparison is inconclusive.", flag=True)
    load: tuple[str, ...] = option(
        word_list,
        (),
        COMPARED,
        "Your load, after --: options of kv, or another command and its options.",
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
            "List published settings of well-known projects, or measure some on your load (--compare), "
            "which takes about a minute for each.\n\n"
            "The list shows the source of each, and what a power failure can lose. The baseline is SQLite's "
            "defaults (a rollback journal, every commit synced); choose another with --against."
        ),
        main_options=("compare", "against", "rounds", "max-time", "output"),
        example="sqlstress presets --compare rails,django -- --concurrency 4",
    ),
    options=chosen(options_of(Compared)),
    extra=Compared,
    study=StudyOf(
        asks="sqlstress.experiments.tune.study:preset_study",
        result="sqlstress.experiments.tune.experiment:PresetComparison",
        result_key=("choice", "presets"),
        called="a comparison of presets",
    ),
    shown="sqlstress.experiments.tune.show:PresetsShown",
)

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
    text = resources.files(__package__).joinpath("presets.toml").read_text(encoding="utf-8")
    return {
        preset["name"]: Preset(
            preset["name"],
            preset["project"],
            preset["source"],
            preset["looked-up"].isoformat(),
            {name: str(value) for name, value in preset["settings"].items()},
            tuple(preset.get("pragma", ())),
            tuple(preset.get("apart", ())),
        )
        for preset in tomllib.loads(text)["preset"]
    }


# What a search for better settings adds to a report: what each does, what raced, and what won by how much.
#
# The slices themselves are the runs of the report; their `arm` is the stage of the search.


@dataclass(frozen=True, slots=True)
class TunedLevel:
    """A value of an option that was tried, beside the one of the load."""

    factor: str
    """What was varied: page-size."""
    value: str
    """The value: 1024."""
    gain: Gain | None = None
    """What it does, whatever the other options are, by least squares over the balanced design."""


@dataclass(frozen=True, slots=True)
class TunedRow:
    """Settings that raced."""

    values: tuple[str, ...]
    """The value of each factor, in their order; empty where it is that of the load."""
    rounds: int
    """Rounds of the race that it took part in."""
    races: bool = True
    """Whether it was still in the race when that ended: it was not worse than the leader beyond doubt."""
    gain: Gain | None = None
    """What it did over the load's own settings, in the race; None for those, and for too few rounds."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """A search for settings that do more, without changing what is promised."""

    case: Case
    """The load, with the settings that others are set against."""
    factors: tuple[str, ...]
    """What was varied, in the order of the values."""
    max_time_s: float
    """Seconds that were given to it."""
    levels: tuple[TunedLevel, ...] = ()
    """What each value does."""
    designed: int = 0
    """Slices of the balanced design."""
    raced: tuple[TunedRow, ...] = ()
    """The settings that raced, the best first."""
    chosen: tuple[str, ...] = ()
    """The best settings beside the load's own, as options; empty where none are known."""
    pragmas: tuple[str, ...] = ()
    """The same as PRAGMAs, as far as they are some."""
    gain: Gain | None = None
    """What they do over the load's own settings, by pairs that did not choose them."""
    refused: tuple[str, ...] = ()
    """What SQLite did not take, and why."""
    seconds: float = 0.0
    """How long it took."""
    wrong: str | None = None
    """What was wrong with the data; None when nothing was."""
    error: str | None = None
    """Why it ended early; None when it did not, or was interrupted."""


# What a comparison of presets adds to a report: each preset, what it gains, and what it risks.
#
# The slices themselves are the runs of the report; their `arm` is the preset.


@dataclass(frozen=True, slots=True)
class MeasuredPreset:
    """A preset that was measured."""

    name: str
    """What it is called: rails."""
    project: str = ""
    """Whose settings they are; empty for the load's own."""
    source: str = ""
    """Where they were published."""
    looked_up: str = ""
    """When they were looked up there: ISO 8601."""
    options: tuple[str, ...] = ()
    """Its settings, as options."""
    apart: tuple[str, ...] = ()
    """What belongs to it and is not measured."""
    effective: dict[str, str] = field(default_factory=dict)
    """Every setting as SQLite answered it after the first write."""
    gain: Gain | None = None
    """What it does over what it is set against; None for that itself, and for too few rounds."""
    error: str | None = None
    """Why it could not be measured, or not wholly; None when it could."""


@dataclass(frozen=True, slots=True)
class PresetComparison:
    """Presets that were measured in turns on one load."""

    case: Case
    """The load, with its own settings."""
    against: str
    """The name of the preset that the others are set against."""
    planned: int
    """Rounds that were asked for."""
    rounds: int = 0
    """Rounds that were measured whole."""
    presets: tuple[MeasuredPreset, ...] = ()
    """The presets, first the one that the others are set against."""
    max_time_s: float | None = None
    """Seconds after which no other round was begun."""
    seconds: float = 0.0
    """How long it took."""
    wrong: str | None = None
    """What was wrong with the data; None when nothing was."""
    error: str | None = None
    """Why it ended early; None when it did not, or was interrupted."""
