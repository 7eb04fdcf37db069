"""A hunt, carried out: rounds until something is found or the time is up; what was found is made smaller."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sqlstress.engine.session import Bench
from sqlstress.engine.study import Progress, ReadWords, Steps, StudyRequest, kept_reason
from sqlstress.errors import UsageError
from sqlstress.experiment import Experiment, commands
from sqlstress.experiments.hunt.result import OWN_LOAD, WAL_RESET, Hunt, Hunting, Witness
from sqlstress.experiments.hunt.rounds import Drawn, OwnRounds, UserRounds, drawn, pauses_of
from sqlstress.experiments.hunt.spec import Schedule
from sqlstress.machine.warnings import has_wal_reset_bug
from sqlstress.options.option import Option, options_of
from sqlstress.options.parsing import either
from sqlstress.plan import all_parsed, built, cases_of, options_of_command, parsed, planned, seeded
from sqlstress.registry import DEFAULT as DEFAULT_LOAD
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import KEPT
from sqlstress.statistics.units import plural
from sqlstress.target import stores_nothing

AGAIN, MOST_AGAIN = 5, 15
"""So often a round is run again in which something was found, and at most until it fails once more."""
MOST_TRIES = 8
"""So often a smaller round is tried, at most."""
ENOUGH = 2
"""So often it must fail to take the place of the round that it was made of."""
MAY_BE_WAL = ("wal", KEPT)


class HuntStudy:
    """Hunts; a step is a round."""

    def __init__(
        self,
        hunt: Hunt,
        rounds: OwnRounds | UserRounds,
        shrink_time_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`hunt` says what is to be done, and has what was found; `clock` tells seconds."""
        self.hunt, self._rounds, self._shrink_time_s, self._clock = hunt, rounds, shrink_time_s, clock
        self._begun = 0.0
        self._operations: Counter[str] = Counter()
        self._trial: Trial | None = None

    def report(self, blank: Report) -> Report:
        """Return what was tried by now, and the trial in which something was found."""
        found = self.hunt.found
        runs = (Run(found.case, trials=(self._trial,)),) if found and self._trial else ()
        return replace(blank, runs=runs, planned=len(runs), results={OWN_LOAD: self.hunt})

    def steps(self, bench: Bench) -> Steps:
        """Run rounds until something is found or the time is up, and make smaller what was found."""
        self._begun = self._clock()
        try:
            yield from self._search(bench)
            if self.hunt.found:
                self._name_what_is_known(bench.report)
                yield
                yield from self._shrink(bench)
        except Exception as problem:
            error = kept_reason(problem, self.hunt.driver, nothing_yet=not self.hunt.rounds)
            self.hunt = replace(self.hunt, error=error)

    def _search(self, bench: Bench) -> Steps:
        while not self.hunt.found and not self.hunt.error:
            current = self._rounds.draw(self.hunt.rounds)
            trial = self._run(bench, current)
            for worker in trial.workers:
                self._operations.update(worker.operations)
            found = None
            if trial.verdict.status == "failed":
                self._trial = trial
                found = Witness(
                    current.case, trial.verdict, current.schedule, command=self._rounds.command(current)
                )
            self.hunt = replace(
                self.hunt,
                rounds=self.hunt.rounds + 1,
                operations=dict(self._operations),
                seconds=self._clock() - self._begun,
                found=found,
                error=None if found else trial.error,
            )
            self._progress(bench, f"round {self.hunt.rounds}", self.hunt.seconds, self.hunt.max_time_s)
            yield
            if self.hunt.seconds >= self.hunt.max_time_s:
                return

    def _run(self, bench: Bench, one: Drawn) -> Trial:
        return bench.runner.once(one.case, self.hunt.rounds, pauses_of(one) if self.hunt.pauses else None)

    def _name_what_is_known(self, report: Report) -> None:
        versions = [one.version for one in report.environment.builds if one.driver == self.hunt.driver]
        found = self.hunt.found
        is_wal = found is not None and found.case.settings.journal_mode in MAY_BE_WAL
        if is_wal and any(map(has_wal_reset_bug, versions)):
            self.hunt = replace(self.hunt, known=WAL_RESET)

    def _shrink(self, bench: Bench) -> Steps:
        """Run the round again, and look for the smallest one in which something is still found."""
        found, until = self.hunt.found, self._clock() + self._shrink_time_s
        if not found or not self._shrink_time_s:
            return
        current = Drawn(found.case, found.schedule)
        while found.tries < AGAIN or (not found.failed and found.tries < MOST_AGAIN):
            found = _tried(found, self._fails(bench, current) is not None)
            self.hunt = replace(self.hunt, found=found)
            yield
        if not found.failed:
            return
        best, tried = found, {current}
        candidates = self._rounds.smaller(current)
        while self._clock() < until and (candidate := next(candidates, None)):
            if candidate in tried:
                continue
            tried.add(candidate)
            witness = self._witness(bench, candidate, best, until)
            yield
            if witness.failed == ENOUGH:
                best, candidates = witness, self._rounds.smaller(candidate)
                self.hunt = replace(self.hunt, smallest=best)
        if self.hunt.smallest:
            current = Drawn(best.case, best.schedule)
            while best.tries < AGAIN:
                best = _tried(best, self._fails(bench, current) is not None)
                self.hunt = replace(self.hunt, smallest=best)
                yield

    def _witness(self, bench: Bench, candidate: Drawn, best: Witness, until: float) -> Witness:
        """Return what came of a smaller round: it must fail twice, and the rarer the one before did, the
        more often it is tried.
        """
        witness = Witness(
            candidate.case, best.verdict, candidate.schedule, command=self._rounds.command(candidate)
        )
        each = best.tries / best.failed
        while witness.tries < min(MOST_TRIES, math.ceil(4 * each)) and self._clock() < until:
            failed = self._fails(bench, candidate)
            witness = replace(
                _tried(witness, failed is not None), verdict=failed.verdict if failed else witness.verdict
            )
            if witness.failed == ENOUGH or (not witness.failed and witness.tries >= 2 * each):
                break
        return witness

    def _fails(self, bench: Bench, one: Drawn) -> Trial | None:
        """Return the trial if something is found in it."""
        left = f"making it smaller, {one.case.concurrency} processes"
        self._progress(bench, left, self._clock() - self._begun, self.hunt.max_time_s + self._shrink_time_s)
        trial = self._run(bench, one)
        return trial if trial.verdict.status == "failed" else None

    def _progress(self, bench: Bench, label: str, done_s: float, total_s: float) -> None:
        note = plural(sum(self._operations.values()), "operation")
        bench.runner.observer.progress(
            Progress(label, min(done_s, total_s), total_s, note, max(0.0, total_s - done_s))
        )


def _tried(witness: Witness, failed: bool) -> Witness:
    return replace(witness, tries=witness.tries + 1, failed=witness.failed + failed)


# What the options of a hunt ask for: rounds of its own load, or of the user's work.

USUAL = {"duration": "1s", "warmup": "0s", "concurrency": "4", "ledger": True}
"""Options of the user's work that are otherwise in a hunt."""
_OF_PAUSES = ("pause-at", "pause", "longest-pause")


def study_of(given: Mapping[str, Any], read: ReadWords) -> StudyRequest:
    """Return the hunt that options ask for, as they were typed. Raises UsageError.

    `load` is the command of the user's work, and words of it, which may be none; without it the hunt has a
    load of its own.
    """
    own = {name: value for name, value in given.items() if name != "load"}
    if not (load := given.get("load")):
        return _of_own_load(own)
    command, *words = load
    known = [name for name, one in commands().items() if _can_be_hunted(one)]
    if command not in known:
        files = [f"{name} FILE" for name in known if name != DEFAULT_LOAD]
        raise UsageError(
            f"hunt does not support {command!r:.60}. Give {either(files)}, with its options; --max-time sets "
            "the time."
        )
    options = {one.name: one for one in (*options_of_command(command), *_hunting().values())}
    found = read(words, options.values(), f"hunt {command}") if words else {}
    return _of_work(command, {**own, **found})


def _of_own_load(given: Mapping[str, Any]) -> StudyRequest:
    (base,), _, hunting = planned(given, "hunt")
    if "pause" in given:
        raise UsageError(
            "--pause needs your own work. Use --writer-pause, --reader-pause or --checkpointer-pause."
        )
    hunt = Hunt(
        base.driver, OWN_LOAD, base.seed, hunting.max_time, base.duration_s, pauses=not hunting.no_pauses
    )
    study = HuntStudy(hunt, OwnRounds(base, hunting), hunting.shrink_time)
    return StudyRequest(study, (drawn(base, 0),), False)


def _of_work(command: str, given: Mapping[str, Any]) -> StudyRequest:
    known, options = _hunting(), {one.name: one for one in options_of_command(command)}
    for name in given:
        if name not in known and name not in options:
            raise UsageError(f"--{name} is not supported by hunt {command}. Leave it out.")
    hunting = built(Hunting, all_parsed(known.values(), given))
    schedule = Schedule(*(parsed(known[name], given.get(name)) for name in _OF_PAUSES))
    several = commands()[command].single_case_values
    usual = {name: value for name, value in USUAL.items() if name in options and name not in several}
    own = {name: value for name, value in given.items() if name in options}
    cases = [replace(case, repeat=1, max_failed=1.0) for case in cases_of(seeded({**usual, **own}), command)]
    first = cases[0]
    if first.server or stores_nothing(first.driver):
        raise UsageError("pauses need SQLite. Choose --driver sqlite3 or apsw.")
    data = getattr(first.spec, "data", None)
    hunt = Hunt(
        first.driver,
        command,
        first.seed,
        hunting.max_time,
        first.duration_s,
        pauses=not hunting.no_pauses,
        checked=data is None or bool(data.checks),
    )
    study = HuntStudy(
        hunt, UserRounds(cases, schedule, _as_words(command, options, own)), hunting.shrink_time
    )
    return StudyRequest(study, tuple(cases), False)


def _as_words(command: str, options: Mapping[str, Option], given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the command line of a hunt in the user's work, but for the number of processes."""
    yield from ("sqlstress", "hunt", command)
    for name, value in given.items():
        for one in value if isinstance(value, list | tuple) else (value,):
            if options[name].argument:
                yield str(one)
            elif name != "concurrency":
                yield from (f"--{name}",) if options[name].flag else (f"--{name}", str(one))


def _hunting() -> dict[str, Option]:
    """Return the options of a hunt in the user's work that are not of that work."""
    found = (one for part in (Hunting, Schedule) for one in options_of(part).values())
    return {one.name: one for one in found if one.name != "load"}


def _can_be_hunted(one: Experiment) -> bool:
    """Return whether processes of ours use SQLite in a window."""
    return one.windowed and one.opens_database and one.study is None
