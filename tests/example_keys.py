"""The report of primary keys in the corpus, and runs that differ from its runs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from sqlstress.report import Run
from tests.example_report import corpus_report

keys_report = partial(corpus_report, "keys")
"""Verified runs of all types of ids in two schemas, with four processes."""
_RUNS = {(each.case.spec.schema, each.case.spec.id_type): each for each in keys_report().runs}


def run(schema: str, id_type: str, seconds: float | None = None, **fields: Any) -> Run:
    """Return a run; `fields` are those of its Picks, of its trial, or `concurrency`.

    A schema that the corpus lacks has the figures of no-key.
    """
    found = _RUNS.get((schema, id_type)) or _RUNS["no-key", id_type]
    (trial,) = found.trials
    if seconds is not None:
        trial = replace(
            trial, seconds=seconds, tps=trial.transactions / seconds, rows_per_s=trial.rows / seconds
        )
    for name in ("space", "verdict", "busy", "error"):
        if name in fields:
            trial = replace(trial, **{name: fields.pop(name)})
    processes = fields.pop("concurrency", found.case.concurrency)
    spec = replace(found.case.spec, schema=schema, **fields)
    return replace(found, case=replace(found.case, concurrency=processes, spec=spec), trials=(trial,))
