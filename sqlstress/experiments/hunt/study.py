"""Run of a hunt: rounds until one fails or time is over. A failed round is then made smaller.

A smaller variant of a round has fewer processes, fewer pauses, or less data. Rounds run the hunt's own load,
or the user's work: the load of another command, such as `sqlstress hunt app bank.py`.
"""

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
from sqlstress.experiments.hunt.result import BUILTIN_LOAD, WAL_RESET, Hunt, Hunting, Witness
from sqlstress.experiments.hunt.rounds import Drawn, OwnRounds, UserRounds, draw_round, pauses_of
from sqlstress.experiments.hunt.spec import Schedule
from sqlstress.options.option import Option, options_of
from sqlstress.options.parsing import join_alternatives
from sqlstress.plan import built, cases_of, options_of_command, parse_option, parse_options, plan_of, seeded
from sqlstress.recording import FAILED_STATEMENT, LOST_LOCKS
from sqlstress.registry import DEFAULT as DEFAULT_LOAD
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import KEEP_JOURNAL_MODE, Case
from sqlstress.sqlite_codes import has_wal_reset_bug
from sqlstress.statistics.units import plural
from sqlstress.target import stores_nothing

AGAIN, MOST_AGAIN = 5, 15
"""Numbers of repetitions of a failed round, which show how often it fails.

The round is repeated AGAIN times. If no repetition failed, it is repeated until it fails, up to MOST_AGAIN
times.
"""
MOST_TRIES = 8
"""Maximum number of runs of each smaller variant of a failed round, even if the round fails rarely."""
ENOUGH = 2
"""Number of failures after which a variant becomes the new smallest round that is known to fail."""
MAY_BE_WAL = ("wal", KEEP_JOURNAL_MODE)
_TOPICS = (FAILED_STATEMENT, LOST_LOCKS)
"""Topics of observations because of which the report keeps a trial even if all checks passed."""


class HuntStudy:
    """Run of a hunt. Each step is a round."""

    def __init__(
        self,
        hunt: Hunt,
        rounds: OwnRounds | UserRounds,
        shrink_time_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`hunt` has the options, but no results yet. `clock` returns seconds."""
        self.hunt, self._rounds, self._shrink_time_s, self._clock = hunt, rounds, shrink_time_s, clock
        self._begun = 0.0
        self._operations: Counter[str] = Counter()
        self._trial: tuple[Case, Trial] | None = None
        """Failed trial; else the last trial with a failed statement or lost locks; None without such trials.

        A process loses SQLite's locks, for example, if its own code opens and closes the database file.
        """

    def report(self, blank: Report) -> Report:
        """Return the report so far, with the kept trial, if any. `blank` is the report without results."""
        runs = (Run(self._trial[0], trials=(self._trial[1],)),) if self._trial else ()
        return replace(blank, runs=runs, planned=len(runs), results={BUILTIN_LOAD: self.hunt})

    def steps(self, bench: Bench) -> Steps:
        """Run rounds until one fails or time is over, then make the failed round smaller."""
        self._begun = self._clock()
        try:
            yield from self._search(bench)
            if self.hunt.found:
                self._find_known_bug(bench.report)
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
            witness = None
            if any(sighting.topic in _TOPICS for sighting in trial.sightings):
                self._trial = current.case, trial
            if trial.verdict.status == "failed":
                self._trial = current.case, trial
                witness = Witness(
                    current.case, trial.verdict, current.schedule, command=self._rounds.command(current)
                )
            self.hunt = replace(
                self.hunt,
                rounds=self.hunt.rounds + 1,
                operations=dict(self._operations),
                seconds=self._clock() - self._begun,
                found=witness,
                error=None if witness else trial.error,
            )
            self._progress(bench, f"round {self.hunt.rounds}", self.hunt.seconds, self.hunt.max_time_s)
            yield
            if self.hunt.seconds >= self.hunt.max_time_s:
                return

    def _run(self, bench: Bench, current: Drawn) -> Trial:
        return bench.runner.once(
            current.case, self.hunt.rounds, pauses_of(current) if self.hunt.pauses else None
        )

    def _find_known_bug(self, report: Report) -> None:
        versions = [build.version for build in report.environment.builds if build.driver == self.hunt.driver]
        witness = self.hunt.found
        is_wal = witness is not None and witness.case.settings.journal_mode in MAY_BE_WAL
        if is_wal and any(map(has_wal_reset_bug, versions)):
            self.hunt = replace(self.hunt, known=WAL_RESET)

    def _shrink(self, bench: Bench) -> Steps:
        """Repeat the failed round, then search for its smallest variant that still fails."""
        witness, deadline_s = self.hunt.found, self._clock() + self._shrink_time_s
        if not witness or not self._shrink_time_s:
            return
        current = Drawn(witness.case, witness.schedule)
        while witness.tries < AGAIN or (not witness.failed and witness.tries < MOST_AGAIN):
            witness = _count_try(witness, self._failed_trial(bench, current) is not None)
            self.hunt = replace(self.hunt, found=witness)
            yield
        if not witness.failed:
            return
        best, tried = witness, {current}
        candidates = self._rounds.smaller(current)
        while self._clock() < deadline_s and (candidate := next(candidates, None)):
            if candidate in tried:
                continue
            tried.add(candidate)
            candidate_witness = self._try_candidate(bench, candidate, best, deadline_s)
            yield
            if candidate_witness.failed == ENOUGH:
                best, candidates = candidate_witness, self._rounds.smaller(candidate)
                self.hunt = replace(self.hunt, smallest=best)
        if self.hunt.smallest:
            current = Drawn(best.case, best.schedule)
            while best.tries < AGAIN:
                best = _count_try(best, self._failed_trial(bench, current) is not None)
                self.hunt = replace(self.hunt, smallest=best)
                yield

    def _try_candidate(self, bench: Bench, candidate: Drawn, best: Witness, deadline_s: float) -> Witness:
        """Run a smaller variant several times; return its numbers of runs and failures as a Witness.

        `best` is the smallest round so far that fails. If it failed once in N runs on average, the variant is
        run up to 4 * N times, but at most MOST_TRIES times. Stop when it has failed ENOUGH times, or has not
        failed in 2 * N runs.
        """
        witness = Witness(
            candidate.case, best.verdict, candidate.schedule, command=self._rounds.command(candidate)
        )
        runs_per_failure = best.tries / best.failed
        while witness.tries < min(MOST_TRIES, math.ceil(4 * runs_per_failure)) and self._clock() < deadline_s:
            failed = self._failed_trial(bench, candidate)
            witness = replace(
                _count_try(witness, failed is not None), verdict=failed.verdict if failed else witness.verdict
            )
            if witness.failed == ENOUGH or (not witness.failed and witness.tries >= 2 * runs_per_failure):
                break
        return witness

    def _failed_trial(self, bench: Bench, current: Drawn) -> Trial | None:
        label = f"making it smaller, {current.case.concurrency} processes"
        self._progress(bench, label, self._clock() - self._begun, self.hunt.max_time_s + self._shrink_time_s)
        trial = self._run(bench, current)
        return trial if trial.verdict.status == "failed" else None

    def _progress(self, bench: Bench, label: str, done_s: float, total_s: float) -> None:
        note = plural(sum(self._operations.values()), "operation")
        bench.runner.observer.progress(
            Progress(label, min(done_s, total_s), total_s, note, max(0.0, total_s - done_s))
        )


def _count_try(witness: Witness, failed: bool) -> Witness:
    return replace(witness, tries=witness.tries + 1, failed=witness.failed + failed)


# The functions below turn the options of the command line into a hunt, with the hunt's own load or with the
# user's work (see the module docstring).

USUAL = {"duration": "1s", "warmup": "0s", "concurrency": "4", "ledger": True}
"""Defaults of options for the user's work in a hunt."""
_PAUSE_OPTIONS = ("pause-at", "pause", "longest-pause")


def study_of(given: Mapping[str, Any], read: ReadWords) -> StudyRequest:
    """Return the hunt that unparsed options request. Raises UsageError for invalid options.

    The option `load` has the words of the user's command, such as ["app", "bank.py"]; `read` parses them.
    """
    hunt_options = {name: value for name, value in given.items() if name != "load"}
    if not (load := given.get("load")):
        return _hunt_in_own_load(hunt_options)
    command, *words = load
    names = [name for name, experiment in commands().items() if _suits_hunt(experiment)]
    if command not in names:
        files = [f"{name} FILE" for name in names if name != DEFAULT_LOAD]
        raise UsageError(
            f"hunt does not support {command!r:.60}. Give {join_alternatives(files)}, with its options; "
            "--max-time sets the time."
        )
    options = {option.name: option for option in (*options_of_command(command), *_hunting_options().values())}
    load_options = read(words, options.values(), f"hunt {command}") if words else {}
    return _hunt_in_work(command, {**hunt_options, **load_options})


def _hunt_in_own_load(values: Mapping[str, Any]) -> StudyRequest:
    (base,), _, hunting = plan_of(values, "hunt")
    if "pause" in values:
        raise UsageError(
            "--pause needs your own work. Use --writer-pause, --reader-pause or --checkpointer-pause."
        )
    hunt = Hunt(
        base.driver, BUILTIN_LOAD, base.seed, hunting.max_time, base.duration_s, pauses=not hunting.no_pauses
    )
    study = HuntStudy(hunt, OwnRounds(base, hunting), hunting.shrink_time)
    return StudyRequest(study, (draw_round(base, 0),), False)


def _hunt_in_work(command: str, values: Mapping[str, Any]) -> StudyRequest:
    hunting_options, options = (
        _hunting_options(),
        {option.name: option for option in options_of_command(command)},
    )
    for name in values:
        if name not in hunting_options and name not in options:
            raise UsageError(f"--{name} is not supported by hunt {command}. Leave it out.")
    hunting = built(Hunting, parse_options(hunting_options.values(), values))
    schedule = Schedule(*(parse_option(hunting_options[name], values.get(name)) for name in _PAUSE_OPTIONS))
    fixed_values = commands()[command].single_case_values
    defaults = {name: value for name, value in USUAL.items() if name in options and name not in fixed_values}
    work_options = {name: value for name, value in values.items() if name in options}
    cases = [
        replace(case, repeat=1, max_failed=1.0)
        for case in cases_of(seeded({**defaults, **work_options}), command)
    ]
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
        hunt, UserRounds(cases, schedule, _command_words(command, options, work_options)), hunting.shrink_time
    )
    return StudyRequest(study, tuple(cases), False)


def _command_words(command: str, options: Mapping[str, Option], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of a command line, such as "sqlstress", "hunt", "app", "bank.py".

    The option --concurrency is omitted, because each round appends its own number of processes.
    """
    yield from ("sqlstress", "hunt", command)
    for name, value in values.items():
        for item in value if isinstance(value, list | tuple) else (value,):
            if options[name].argument:
                yield str(item)
            elif name != "concurrency":
                yield from (f"--{name}",) if options[name].flag else (f"--{name}", str(item))


def _hunting_options() -> dict[str, Option]:
    """Return the options of a hunt in the user's work, such as time limits and pauses, by name."""
    all_options = (option for group in (Hunting, Schedule) for option in options_of(group).values())
    return {option.name: option for option in all_options if option.name != "load"}


def _suits_hunt(experiment: Experiment) -> bool:
    """Return whether a hunt can run an experiment: it takes a fixed time, with SQLite in our processes."""
    return experiment.windowed and experiment.opens_database and experiment.study is None
