"""The face of a comparison of published settings: the cases are those of a load, the verdict its own."""

from __future__ import annotations

from sqlstress.experiment import Experiment
from sqlstress.experiments.presets.spec import Nothing

PRESETS = Experiment(
    name="presets",
    spec=Nothing,
    in_plans=False,
    result="sqlstress.experiments.presets.result:PresetComparison",
    result_key=("choice", "presets"),
    called="a comparison of presets",
    shown="sqlstress.experiments.presets.shown:PresetsShown",
)
