"""An application whose statements are traced: its transactions, by name, with its connection made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlstress.experiments.app.user_file import called, declared, prepare

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.place import SqlPlace
    from sqlstress.user_work.rehearsal import Calls
    from sqlstress.user_work.tracing import Tracer


def open_calls(case: Case, place: SqlPlace, tracer: Tracer) -> Calls:
    """Import the user's file and connect; return what calls each transaction."""
    spec, directions = case.spec, place.directions()
    tracer.tells_lines_of(Path(spec.file).parent)
    prepare(directions, spec.data.database, f"{case.seed}:rehearsal")
    found = declared(spec.file)
    given = called(found.connect, directions.address)() if found.connect else directions.address
    return {name: called(function, given) for name, function in found.transactions.items()}
