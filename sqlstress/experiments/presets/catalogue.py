"""The published settings that ship with the package, each with its source and when it was looked up."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from sqlstress.report.power_failure import risk

FILE = "presets.toml"
DEFAULT = "default"
"""The name of the load's own settings."""


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
