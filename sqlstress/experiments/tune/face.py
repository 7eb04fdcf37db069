"""The face of a search for better settings: the cases are those of its load, the verdict its own."""

from __future__ import annotations

from sqlstress.experiment import Experiment
from sqlstress.experiments.tune.spec import Nothing

TUNE = Experiment(
    name="tune",
    spec=Nothing,
    in_plans=False,
    result="sqlstress.experiments.tune.result:Tuning",
    result_key=("choice", "tune"),
    called="a search for better settings",
    shown="sqlstress.experiments.tune.shown:TuningShown",
)
