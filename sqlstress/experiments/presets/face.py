"""The face of a comparison of published settings: the cases are those of a load, the verdict its own."""

from __future__ import annotations

from sqlstress.experiment import Experiment
from sqlstress.experiments.presets.spec import Compared, Nothing
from sqlstress.options.option import chosen, options_of

PRESETS = Experiment(
    name="presets",
    spec=Nothing,
    command="presets",
    summary="Published settings of well-known projects, measured on your load.",
    help=(
        "List published settings of well-known projects, or measure some on your load (--compare).\n\n"
        "Each with its source, and what a power failure can take. Your own settings are the measure of the "
        "others, unless --against says another one."
    ),
    example="sqlstress presets --compare rails,django -- --concurrency 4",
    options=chosen(options_of(Compared)),
    extra=Compared,
    in_plans=False,
    asks="sqlstress.experiments.presets.asked:asked",
    result="sqlstress.experiments.presets.result:PresetComparison",
    result_key=("choice", "presets"),
    called="a comparison of presets",
    shown="sqlstress.experiments.presets.shown:PresetsShown",
)
