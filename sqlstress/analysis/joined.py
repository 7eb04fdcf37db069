"""Which groups of a report share a table: those whose cases differ in one option, and in nothing else."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from sqlstress.analysis.group import Group
from sqlstress.experiment import face_of
from sqlstress.report.case import Settings
from sqlstress.target import stores_nothing


def joined(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Put groups together whose cases differ in one option only, so that they can be set side by side.

    Where several options would do, it is the one that leaves the fewest tables.
    """
    families: dict[Hashable, list[Group]] = {}
    for group in groups:
        families.setdefault(_family(group), []).append(group)
    found = [one for family in families.values() for one in _joined(family)]
    # What is said of the values beside each other is one group's more.
    said = len(groups) + sum(bool(one.parts) for one in found)
    return tuple(_counted(one, said) for one in found)


def _counted(group: Group, groups: int) -> Group:
    parts = tuple(replace(part, groups=groups) for part in group.parts)
    return replace(group, groups=groups, parts=parts)


def _family(group: Group) -> Hashable:
    """Return what groups have in common that may be put together: all but the traits of their cases."""
    face, run = face_of(group.case), group.runs[0]
    if not face.traits(group.case):
        return id(group)
    bare = replace(face.one_table(group.case), driver="", settings=Settings(), server=None, spec=face.spec())
    return run.arm, bare, stores_nothing(group.case.driver)


def _joined(family: list[Group]) -> list[Group]:
    if len(family) < 2:
        return family
    traits = [face_of(group.case).traits(group.case) for group in family]
    ways = [(name, _alike(family, traits, name)) for name in traits[0]]
    name, alike = min(ways, key=lambda way: len(way[1]))
    return [_whole(name, parts) for parts in alike]


def _alike(family: list[Group], traits: list[Mapping[str, str]], name: str) -> list[list[Group]]:
    """Return a family's groups, those together that differ in this option and in no other."""
    found: dict[Hashable, list[Group]] = {}
    values: set[Hashable] = set()
    # Another target has other options: drivers are set side by side if what all of them have is the same.
    common = set.intersection(*map(set, traits)) if name == "driver" else set().union(*traits)
    for group, own in zip(family, traits, strict=True):
        others = tuple(sorted((key, value) for key, value in own.items() if key != name and key in common))
        # Whoever is the same in words has a table of its own.
        twin = (others, own.get(name))
        found.setdefault((others, id(group) if twin in values else None), []).append(group)
        values.add(twin)
    return list(found.values())


def _whole(setting: str, parts: list[Group]) -> Group:
    if len(parts) < 2:
        return parts[0]
    runs = tuple(run for part in parts for run in part.runs)
    return Group(parts[0].case, runs, setting=setting, parts=tuple(parts))
