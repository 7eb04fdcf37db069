"""sqlstress check: a saved report against its baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sqlstress.cli.console import complain, say
from sqlstress.cli.github import Step
from sqlstress.cli.options import github_option, output_option, typed, with_options
from sqlstress.cli.outputs import beside, parse_outputs, take_stdout
from sqlstress.display.endings import BAD, FINE, UNSURE
from sqlstress.render import CHECK_FORMATS
from sqlstress.statistics.gate import FAIL, INCONCLUSIVE
from sqlstress.studies.ab_options import GATE
from sqlstress.system.garbage import no_search

_SHARED = tuple(option for option in GATE if option.name in ("metric", "max-drop", "strict"))


@with_options(_SHARED)
@click.command(epilog="Example: sqlstress check baseline.json report.json --max-drop 20%")
@click.argument("baseline", type=click.Path(path_type=Path), metavar="BASELINE.json")
@click.argument("current", type=click.Path(path_type=Path), metavar="CURRENT.json")
@output_option("Save what is found", tuple(CHECK_FORMATS))
@github_option
@no_search()
def check(baseline: Path, current: Path, outputs: tuple[str, ...], github: bool, **given: Any) -> int:
    """Check a report against a stored one, from five trials or more of each case (--repeat 5).

    Exits 0 when it passes, 1 when it fails. A stored baseline cries wolf: where you can, use sqlstress ab.
    """
    from sqlstress.analysis.check import check as checked_against
    from sqlstress.plan import parsed
    from sqlstress.render.ci.github import check_commands, check_summary
    from sqlstress.render.text import check_text
    from sqlstress.render.views.check import check_conclusion
    from sqlstress.report import read

    written = parse_outputs(outputs, CHECK_FORMATS)
    step = Step.here(beside(written)) if github else None
    given = typed(given)
    asked = {option.name: parsed(option, given.get(option.name, option.default)) for option in _SHARED}
    metric, max_drop = asked["metric"], asked["max-drop"]
    checked = checked_against(read(baseline), read(current), metric, max_drop)
    if not take_stdout(written):
        say(check_text(checked, metric, max_drop), end="")
    for output in written:
        output.write(CHECK_FORMATS[output.format](checked, metric, max_drop))
    if step:
        step.show(check_commands(checked, metric, max_drop), check_summary(checked, metric, max_drop))
    if checked.verdict == FAIL:
        complain(f"Error: {check_conclusion(checked, metric, max_drop)}")
        return BAD
    return UNSURE if checked.verdict == INCONCLUSIVE and asked["strict"] else FINE
