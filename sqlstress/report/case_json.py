"""A case to JSON-able plain data and back: what only its experiment has stands where that says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from sqlstress.experiment import DEFAULT, EXPERIMENTS, Experiment, face
from sqlstress.options.option import Unknown
from sqlstress.report.case import Case
from sqlstress.report.jsonable import Misfit, member

Reader = Callable[[Any], Any]
ReaderOf = Callable[[Any], Reader]
"""A type → what reads a value of it."""

MOST_LEVELS = 20
"""Lists and objects within each other in what a case of an unknown experiment says."""
_COMMON = tuple(one.name for one in fields(Case) if one.name != "spec")


def to_plain(case: Case, write: Reader) -> dict[str, Any]:
    """Return a case as a dict; `write` makes plain data of any value."""
    common = {name: member(write, getattr(case, name), name) for name in _COMMON}
    if case.server is None:
        del common["server"]  # most cases have none, as all had before there were any
    if isinstance(case.spec, Unknown):
        return {**common, **write(json.loads(case.spec.keys))}
    experiment, own = face(case.workload), write(case.spec)
    if experiment.key is None:
        return {**common, **own}
    beside = {name: own.pop(name) for name in experiment.beside}
    return {**common, experiment.key: own, **beside}


def from_plain(found: Mapping[str, Any], reader: ReaderOf) -> Case:
    """Return a case; of an experiment that is not known the keys are kept as they are. Raises Misfit."""
    hints = get_type_hints(Case)
    values = {name: member(reader(hints[name]), found[name], name) for name in _COMMON if name in found}
    experiment = face(values.get("workload", DEFAULT))
    if experiment.name not in EXPERIMENTS:
        own = {name: value for name, value in found.items() if name not in _COMMON}
        kept = {name: member(lambda value: _kept(value, reader), value, name) for name, value in own.items()}
        return Case(**values, spec=unknown_keys(kept))
    return Case(**values, spec=_spec(experiment, found, reader(experiment.spec)))


def unknown_keys(plain: Mapping[str, Any]) -> Unknown:
    """Keep the keys of a case whose experiment is not known."""
    return Unknown(json.dumps(plain, sort_keys=True))


def _kept(value: Any, reader: ReaderOf, levels: int = MOST_LEVELS) -> Any:
    """Return what nobody here understands as it is. Raises Misfit when it could not be written again."""
    if levels == 0:
        raise Misfit("nested too deeply")

    if isinstance(value, dict):
        return {reader(str)(name): _kept(inner, reader, levels - 1) for name, inner in value.items()}
    if isinstance(value, list):
        return [_kept(inner, reader, levels - 1) for inner in value]
    return None if value is None else reader(type(value))(value)


def _spec(experiment: Experiment, found: Mapping[str, Any], read: Reader) -> Any:
    """Return the spec of a case, from where its experiment puts it."""
    if experiment.key is None:
        return read(found)
    own = found.get(experiment.key)
    own = {} if own is None else own
    if isinstance(own, dict):
        own = {**own, **{name: found[name] for name in experiment.beside if name in found}}
    return member(read, own, experiment.key)
