"""A report to JSON-able plain data and back: results stand where their experiments put them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from sqlstress.experiment import studies
from sqlstress.options.option import has_default
from sqlstress.report.case_json import Reader, ReaderOf
from sqlstress.report.document import Report
from sqlstress.report.jsonable import Misfit, member

_COMMON = tuple(one for one in fields(Report) if one.name != "results")


def to_plain(report: Report, write: Reader) -> dict[str, Any]:
    """Return a report as a dict; `write` makes plain data of any value."""
    found = {one.name: member(write, getattr(report, one.name), one.name) for one in _COMMON}
    for name, study in studies().items():
        place, key = study.result_key
        if report.results:
            found.setdefault(place, {})[key] = write(report.results.get(name))
        else:
            found[place] = None
    return found


def from_plain(found: Mapping[str, Any], reader: ReaderOf) -> Report:
    """Return a report. Raises Misfit."""
    hints, values = get_type_hints(Report), {}
    for one in _COMMON:
        if one.name in found:
            values[one.name] = member(reader(hints[one.name]), found[one.name], one.name)
        elif not has_default(one):
            raise Misfit("missing").inside(one.name)
    return Report(**values, results=_results(found, reader))


def _results(found: Mapping[str, Any], reader: ReaderOf) -> dict[str, Any]:
    results = {}
    for name, study in studies().items():
        place, key = study.result_key
        own = member(reader(dict[str, Any] | None), found.get(place), place)
        if own and own.get(key) is not None:
            read = reader(study.result_type())
            results[name] = member(_inner(read, key), own, place)
    return results


def _inner(read: Reader, key: str) -> Reader:
    return lambda plain: member(read, plain[key], key)
