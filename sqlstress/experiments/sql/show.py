"""How SQL scripts are shown: as all work of the user's, with what the scripts are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlstress.analysis.wording import listing, whole
from sqlstress.experiments.sql.spec import Scripts, named
from sqlstress.report import Run
from sqlstress.report.case import Case
from sqlstress.show.shown import Value
from sqlstress.user_work.show import OwnShown


class SqlShown(OwnShown):
    """Scripts with numbers of processes."""

    def work(self, case: Case) -> str:
        spec: Scripts = case.spec
        tries = f", each tried up to {whole(spec.max_tries)} times" if spec.max_tries > 1 else ""
        scale = f", scale {spec.scale}" if spec.builtin_setup or spec.scale > 1 else ""
        return f"{listing([_each(spec, place) for place in range(len(spec.scripts))])}{scale}{tries}"

    def case_columns(self, runs: Sequence[Run]) -> Mapping[str, Callable[[Run], Value]]:
        own = {"scripts": _of(lambda spec: named(spec.scripts)), **CASE}
        return {**own, **super().case_columns(runs)}


def _each(spec: Scripts, place: int) -> str:
    """Return a script, with its share where there are several."""
    one = spec.scripts[place]
    total = sum(each.weight for each in spec.scripts) or 1  # all of weight 0 in a report that somebody wrote
    return one.name if len(spec.scripts) == 1 else f"{100 * one.weight / total:.3g}% {one.name}"


def _of(figure: Callable[[Scripts], Value]) -> Callable[[Run], Value]:
    return lambda run: figure(run.case.spec) if isinstance(run.case.spec, Scripts) else None


CASE: dict[str, Callable[[Run], Value]] = {
    "scale": _of(lambda spec: spec.scale),
    "max_tries": _of(lambda spec: spec.max_tries),
    "ledger": _of(lambda spec: int(spec.ledger)),
}
