"""The report of an application: connections of two kinds, exceptions, and a failed check."""

from __future__ import annotations

from functools import partial

from tests.example_report import corpus_report

app_report = partial(corpus_report, "app")
"""Two runs: 1 process, and 4 with exceptions and a failed check."""
_RUN = app_report().runs[1]
CASE = _RUN.case
SIGHTINGS = _RUN.trials[0].sightings
TRAITS = SIGHTINGS[0].traits
