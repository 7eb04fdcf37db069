"""Commands that measure the main experiment, or another one that is named: `sqlstress limit sql a.sql`.

The name may stand before all options or among them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import click

from sqlstress.analysis.wording import listing
from sqlstress.cli.options import GroupedCommand
from sqlstress.experiment import DEFAULT
from sqlstress.studies.windows import with_windows

Made = Callable[[str], click.Command]
"""The name of an experiment → the command with its options."""


class OfExperiment(GroupedCommand):
    """The command of the main experiment, which hands over to that of another one where one is named."""

    def __init__(self, *args: Any, made: Made, **known: Any) -> None:
        super().__init__(*args, **known)
        self._made = made

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        name, others = named(args, self._made)
        if name == DEFAULT:
            return super().make_context(info_name, others, parent, **extra)
        return self._made(name).make_context(f"{info_name} {name}", others, parent, **extra)


def command(experiment: str, made: Made, **said: Any) -> Callable[[Callable[..., int]], click.Command]:
    """Return what makes the command for an experiment of a function; `said` is what click.command takes."""
    if experiment == DEFAULT:
        return click.command(cls=OfExperiment, made=made, **said)
    return click.command(cls=GroupedCommand, **said)


def others() -> str:
    """Return the names of the other experiments, as part of a sentence."""
    return listing([name for name in with_windows() if name != DEFAULT], "or")


def named(words: Sequence[str], made: Made) -> tuple[str, list[str]]:
    """Return which experiment is named, and the other words."""
    place = 0
    while place < len(words) and words[place].startswith("-") and words[place] != "--":
        place += 1 if _stands_alone(words[place], made) else 2
    if place < len(words) and words[place] in with_windows():
        return words[place], [*words[:place], *words[place + 1 :]]
    return DEFAULT, [*words]


def _stands_alone(word: str, made: Made) -> bool:
    """Return whether an option has its value in the same word, or takes none."""
    if not word.startswith("--"):
        return len(word) > 2 or word in _flags(made)
    return "=" in word or word in _flags(made)


def _flags(made: Made) -> Collection[str]:
    params = [param for name in with_windows() for param in made(name).params]
    return {"-h", "--help"}.union(
        *(param.opts for param in params if isinstance(param, click.Option) and param.is_flag)
    )
