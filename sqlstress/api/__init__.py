"""The Python API: `import sqlstress`, measure, and ask the report. The command line does the same."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlstress.api.report import Figure, Finding, Report
from sqlstress.engine.observer import NOBODY, Nobody, Progress
from sqlstress.errors import SqlstressError, UsageError
from sqlstress.experiment import DEFAULT, commands
from sqlstress.options.dsn import redacted
from sqlstress.report import Report as Document

if TYPE_CHECKING:
    from sqlstress.engine.study import AnyBench, Opening, Study
    from sqlstress.plan import Planned

__all__ = ["Figure", "Finding", "Report", "ab", "limit", "measure", "read"]

T = TypeVar("T", bound="AnyBench")

Watch = Callable[[Progress], None]
"""Called often with how far the measurement has come; must be quick, and must not raise."""


def measure(
    what: str | Path = DEFAULT,
    *,
    directory: str | Path = ".",
    keep: bool = False,
    save: str | Path | None = None,
    progress: Watch | None = None,
    **options: Any,
) -> Report:
    """Measure an experiment, or a plan, and return its report.

    `what` is an experiment's name (kv, sql, app, exec, methods, keys, cycles, crash), or the path of a TOML
    plan. `options` are those of the command line, with underscores for dashes: `measure(concurrency="1-8",
    buckets=[1, 20], duration="500ms")`. The databases go into a fresh folder below
    `directory`, and are removed unless `keep`.
    `save` names a JSON file, written after every case; where that can't be, it warns. `progress` is called
    often. A duration is a text with its unit; a few seconds may be a number.

    Raises UsageError for options that can't be carried out, SqlstressError when nothing could be measured at
    all. A case that fails is part of the report. Ctrl-C ends it: what was measured by then is returned.
    """
    from sqlstress.studies.sweep import asked_study

    command = _command("measure", what, options)
    study, session = asked_study(_planned(what, _given(options)), Path(directory), keep, command)
    return _carried_out(study, session, save, progress)


def limit(
    what: str = DEFAULT,
    *,
    directory: str | Path = ".",
    save: str | Path | None = None,
    progress: Watch | None = None,
    **options: Any,
) -> Report:
    """Search for the highest rate that holds a promise, and return the report: `answer` is what was found.

    `what` is an experiment that has a rate (kv, sql, app, exec), and `options` are those of the command:
    `limit("sql", script=["transfer.sql"], setup="schema.sql", p99="10ms", concurrency=4)`. The others are
    those of `measure`, and so is what it raises.
    """
    from sqlstress.engine.session import Session
    from sqlstress.studies.limit_options import search_for

    _check_has_windows(what)
    study = search_for(_given(options), what)
    session = Session((study.case,), Path(directory), False, _command("limit", what, options))
    return _carried_out(study, session, save, progress)


def ab(
    what: str = DEFAULT,
    *,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    directory: str | Path = ".",
    save: str | Path | None = None,
    progress: Watch | None = None,
    **options: Any,
) -> Report:
    """Measure two settings in turns until a drop is shown or ruled out; the report's `verdict` says which.

    `a` and `b` are what only that arm has, and `options` what both have, or what is asked of the test:
    `ab(a={"synchronous": "full"}, b={"synchronous": "normal"}, concurrency=4, max_drop="5%")`. `what` is kv,
    sql, app or exec. The others are those of `measure`, and so is what it raises. The report is `ok` unless
    it failed; that it stayed inconclusive is no failure.
    """
    from sqlstress.report import Arm
    from sqlstress.studies.ab_asked import cells, checked, own_python, study_of, typed
    from sqlstress.studies.ab_options import merged, of_gate_and_load

    _check_has_windows(what)
    gate, common = of_gate_and_load(checked(what, _given(options)))
    own_a, own_b = (checked(what, _given(arm)) for arm in (a, b))
    arms = merged(what, common, own_a), merged(what, common, own_b)
    cases = cells(what, arms)
    words_a, words_b = (typed(what, own) for own in (own_a, own_b))
    study = study_of(cases, gate, (Arm("A", redacted(words_a)), Arm("B", redacted(words_b))))
    command = _command("ab", what, {"a": shlex.join(words_a), "b": shlex.join(words_b), **options})
    return _carried_out(study, own_python(arms, cases, Path(directory), command), save, progress)


def _check_has_windows(what: str) -> None:
    from sqlstress.studies.windows import with_windows

    if what not in with_windows():
        known = ", ".join(with_windows())
        raise UsageError(f"{what!r:.60} is not measured in windows, which this takes: {known} are.")


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in options.items() if value is not None}


def _command(function: str, what: str | Path, options: Mapping[str, Any]) -> tuple[str, ...]:
    said = (f"{name}={value}" for name, value in options.items())
    return redacted((f"sqlstress.{function}", str(what), *said))


def _carried_out(
    study: Study[T], opening: Opening[T], save: str | Path | None, progress: Watch | None
) -> Report:
    from sqlstress.report import to_json, write_atomically
    from sqlstress.studies.carry_out import carry_out

    if str(save) == "-":
        raise UsageError("save names a file, which is written after every case: print text() instead.")

    def keep_it(document: Document) -> None:
        if save is not None:
            try:
                write_atomically(Path(save), to_json(document))
            except SqlstressError as error:
                warnings.warn(f"the report is not saved: {error}", stacklevel=3)

    return Report(carry_out(study, opening, keep_it, _Watched(progress) if progress else NOBODY))


def read(path: str | Path) -> Report:
    """Return a saved report. Raises UsageError, in a line that names the file."""
    from sqlstress.report import read as read_document

    return Report(read_document(Path(path)))


def _planned(what: str | Path, given: Mapping[str, Any]) -> Planned:
    from sqlstress.plan import Planned, from_toml, options_of_command, planned, suggestion

    if isinstance(what, Path) or what.endswith(".toml"):
        if given:
            raise UsageError(f"a plan has its options in the file: leave out {', '.join(given)}.")
        return Planned(from_toml(Path(what)))
    if what not in commands():
        raise UsageError(
            f"there is no experiment {what!r:.60}.{suggestion(what, commands())} The experiments are "
            f"{', '.join(commands())}; a plan's name ends with .toml."
        )
    flags = {option.name for option in options_of_command(what) if option.flag}
    return planned({name: value for name, value in given.items() if value or name not in flags}, what)


class _Watched(Nobody):
    """Tells a function how far a measurement has come."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def progress(self, progress: Progress) -> None:
        self._watch(progress)
