"""The commands that measure, and the options of each."""

from sqlstress.experiment import all_experiments, commands
from sqlstress.options.option import Option
from sqlstress.plan import options_of_command
from sqlstress.studies.ab import ab_options
from sqlstress.studies.limit import limit_options

PLANNED = tuple(experiment.name for experiment in all_experiments() if experiment.allowed_in_plans)
"""The experiments that a plan can name."""
STUDIES = {"ab": ab_options, "limit": limit_options}
"""Commands that measure the main experiment in a special way."""
MEASURING = (*commands(), *STUDIES)


def by_name(command: str) -> dict[str, Option]:
    """Return the options of a command that measures, by their names."""
    options = STUDIES[command]() if command in STUDIES else options_of_command(command)
    return {option.name: option for option in options}
