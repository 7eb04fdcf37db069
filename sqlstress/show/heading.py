"""Description of a measurement in a few sentences: host, load, library, durability, warnings.

A run is all trials of a case. A group is the runs in one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from sqlstress.analysis.answers import sides_of
from sqlstress.analysis.disturbances import disturbances
from sqlstress.analysis.durability import describe_durability
from sqlstress.analysis.finding import Finding, texts
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import amount, busy_policy, cores, listing
from sqlstress.experiment import experiment_of
from sqlstress.report import Environment, Report, Run, SqliteBuild, Trial
from sqlstress.report.case import UNKNOWN_DRIVER, Case
from sqlstress.report.results import Sighting
from sqlstress.show.blocks import clean
from sqlstress.sqlite_codes import has_wal_reset_bug
from sqlstress.statistics.units import format_count, format_duration
from sqlstress.target import OTHER_SQLITE, reported, serves, stores_nothing, takes

OF_LIBRARY = frozenset({"sqlite-wal-reset-bug"})
"""Codes of the warnings that concern the measured SQLite library."""
_OPTIONAL = ("fullfsync", "wal_autocheckpoint", "page_size", "cache_size", "mmap_size")
"""Fields of `Settings` that the description mentions only if the user set them."""


def origin(report: Report) -> str:
    """Return a line on a report's origin: version, time and system, or the publication of its figures."""
    host = report.environment.host
    system = f"{host.system} {host.release}".strip()
    facts = (system, host.machine, cores(host), report.environment.file_system.kind, host.python)
    where = ", ".join(filter(None, facts))
    if report.published is not None:
        system_text = f"System: {where}." if where else "The system is unknown."
        return f"Published figures, not measured or verified by sqlstress: {report.published}. {system_text}"
    return f"sqlstress {report.tool_version}, {_to_minute(report.created)}: {where or 'system unknown'}"


def short_origin(report: Report) -> str:
    """Return a line on the origin of a report: version, time and system, but not architecture and Python."""
    host = replace(report.environment.host, machine="", python="")
    return origin(replace(report, environment=replace(report.environment, host=host)))


def when(report: Report) -> str:
    """Return the time of a measurement, to the minute; "published" for figures from a publication."""
    return _to_minute(report.created) if report.published is None else "published"


def describe(what: str, group: Group, report: Report) -> str:
    """Return a sentence: `what` (a clause on the work), then the settings that the group's cases share."""
    return f"{what}; {'; '.join(text for text, _ in _conditions(group, report))}."


def describe_briefly(what: str, group: Group, report: Report) -> tuple[str, str]:
    """Return two sentences: `what` (the work) with unusual settings, and the usual settings ("" if none)."""
    conditions = list(_conditions(group, report))
    host = report.environment.host
    usual_texts = [text for text, usual in conditions if usual]
    usual = "; ".join([*usual_texts, *filter(None, (host.machine, host.python))])
    other_texts = "; ".join([what, *(text for text, usual in conditions if not usual)])
    return f"{other_texts}.", f"{usual[:1].upper()}{usual[1:]}." if usual else ""


def durability(group: Group, environment: Environment) -> tuple[str, ...]:
    """Return sentences on the durability of commits, one for each combination of settings in the group."""
    if stores_nothing(group.case.driver):
        return ("The dry driver stores nothing: these figures are the upper limit of the harness.",)
    if not experiment_of(group.case).opens_database:
        return ("Durability and lock waits depend on the program that opens the database.",)
    read_back = [(run, trial) for run in group.runs for trial in run.trials if trial.effective]
    durabilities = [_durability(group, run, trial, environment) for run, trial in read_back]
    return tuple(dict.fromkeys(durabilities or (_requested_durability(run) for run in group.runs)))


def _durability(group: Group, run: Run, trial: Trial, environment: Environment) -> str:
    sides = sides_of(group)
    side = next((side for side in sides if run in side.runs), None)
    if side and trial.durability:
        return f"{side.name}: {clean(trial.durability)}."
    if trial.durability and not takes(run.case.driver, "journal-mode"):
        text = clean(trial.durability)
        return f"{text[:1].upper()}{text[1:]}."
    if serves(run.case.driver):
        subject = f"{side.name}: durability" if side else "Durability"
        return f"{subject} unknown: no connection was seen."
    return describe_durability(trial.effective, environment.sync)


def warnings(group: Group, environment: Environment, findings: tuple[Finding, ...]) -> tuple[str, ...]:
    """Return the warnings to show above the figures.

    A run's warning is left out if `findings`, which are shown below the figures, include its code.
    """
    repeated = {finding.code for finding in findings}
    # A warning on a WAL bug does not apply if no trial used a WAL.
    modes = [trial.effective.get("journal_mode") for run in group.runs for trial in run.trials]
    without_wal = bool(modes) and all(mode and mode != "wal" for mode in modes)
    others = _other_sqlite(group.runs)
    elsewhere = without_wal or bool(others) or all(serves(run.case.driver) for run in group.runs)
    general = [
        f"SQLite {other.example} can lose commits (WAL-reset bug). Run sqlstress hunt."
        for other in others[:1]
        if has_wal_reset_bug(other.example)
    ]
    for warning in environment.warnings:
        of_library = warning.code in OF_LIBRARY
        # If a CPU quota stopped processes, `disturbances` (below) yields a warning with more details.
        is_repeated = warning.code == "cpu-quota" and group.met_quota
        if warning.serious and not (of_library and elsewhere) and not is_repeated:
            remark = " This is sqlstress's own SQLite; your program may use another."
            connects = experiment_of(group.case).opens_database
            general.append(warning.text + remark * (of_library and not connects))
    cases: dict[str, list[Case]] = {}
    for run in group.runs:
        for warning in run.warnings:
            if warning.code not in repeated and warning.text not in general:
                cases.setdefault(warning.text, []).append(run.case)
    case_warnings = [f"{text} (At {group.places(where)}.)" for text, where in cases.items()]
    disturbance_texts = texts(disturbances(group, environment))
    return tuple(f"Warning: {text}" for text in (*general, *case_warnings, *disturbance_texts))


def _other_sqlite(runs: Sequence[Run]) -> list[Sighting]:
    """Return the SQLite library of each trial if no trial used the library of the driver; else []."""
    found = [
        [sighting for sighting in trial.sightings if sighting.topic == OTHER_SQLITE]
        for run in runs
        for trial in run.trials
    ]
    return [sightings[0] for sightings in found] if all(found) else []


def _to_minute(created: str) -> str:
    """Return an ISO 8601 time to the minute, with time zone. Return other texts unchanged."""
    try:
        return datetime.fromisoformat(created).strftime("%Y-%m-%d %H:%M %Z").strip()
    except ValueError:
        return created


def _conditions(group: Group, report: Report) -> Iterator[tuple[str, bool]]:
    """Yield (setting, usual) for settings that the group's cases share. Brief texts omit usual settings."""
    yield from ((text, False) for text in _window_conditions(group))
    case = group.case
    if (
        experiment_of(case).applies_settings
        and case.driver != UNKNOWN_DRIVER
        and not stores_nothing(case.driver)
    ):
        yield from _wait_conditions(group)
        yield from ((text, False) for text in _setting_conditions(group))
    words = {"native": "native loop", "python": "Python loop"}
    loops = dict.fromkeys(experiment_of(run.case).loop_of(run.case) for run in group.runs)
    if loop_names := [words.get(loop, loop) for loop in loops if loop]:
        yield listing(loop_names, "or"), loop_names == ["native loop"]
    yield from ((text, False) for text in _all_libraries(group, report))
    if report.published is None:
        seeds = {run.case.seed for run in group.runs}
        yield (f"seed {seeds.pop()}" if len(seeds) == 1 else "seeds differ"), True


def _window_conditions(group: Group) -> Iterator[str]:
    case = group.case
    if experiment_of(case).windowed:
        yield amount(case)
    if case.arrivals:
        limit_s = case.arrivals.latency_limit_s
        skipped = "" if limit_s is None else f", skipped when {format_duration(limit_s)} late"
        yield f"open loop, {case.arrivals.spacing} arrivals{skipped}"
    # After an interruption, some cases may have 4 trials and others 5: "median of 4 to 5 passes". A case is
    # left out if a trial of it stopped early, at the timeout or at a limit of SQLite: it has no median.
    done = [run for run in group.runs if run.trials and not run.error and len(run.ended) == len(run.trials)]
    passes = {min(case.repeat, len(run.trials)) for run in done}
    if passes and max(passes) > 1:
        yield f"median of {' to '.join(map(format_count, sorted({min(passes), max(passes)})))} passes"


def _wait_conditions(group: Group) -> Iterator[tuple[str, bool]]:
    """Yield (clause on the limit of lock waits, whether this is the default), for each compared target."""
    usual = busy_policy(Case())
    for prefix, runs in [(f"{side.name}: ", side.runs) for side in sides_of(group)] or [("", group.runs)]:
        policies = [busy_policy(run.case) for run in runs if takes(run.case.driver, "busy-timeout")]
        if policies:
            policy_text = listing(list(dict.fromkeys(policies)), "or")
            yield f"{prefix}{policy_text}", policy_text == usual and not prefix


def _setting_conditions(group: Group) -> Iterator[str]:
    chosen = [(name, {getattr(run.case.settings, name) for run in group.runs}) for name in _OPTIONAL]
    named = [f"{name}={int(value)}" for name, (value, *more) in chosen if value is not None and not more]
    named += [f"{name}={value}" for name, value in group.case.settings.pragmas if group.setting != "pragma"]
    if named:
        yield " ".join(named)


def _all_libraries(group: Group, report: Report) -> Iterator[str]:
    """Yield the drivers with their libraries: for each variant of an A/B test if the variants differ."""
    environment, arms = report.environment, report.ab.arms if report.ab else ()
    by_arm = {
        arm.name: tuple(
            _libraries([run for run in report.runs if run.arm == arm.name], arm.builds or environment.builds)
        )
        for arm in arms
    }
    if len(set(by_arm.values())) > 1:
        yield from (f"{name}: {', '.join(libraries) or 'unknown'}" for name, libraries in by_arm.items())
    else:
        yield from _libraries(group.runs, environment.builds)


def _libraries(all_runs: Sequence[Run], builds: Sequence[SqliteBuild]) -> Iterator[str]:
    """Yield the drivers of these runs with their libraries: "driver sqlite3, SQLite 3.45.1".

    If the user's programs open the database, their libraries are unknown, so yield only database servers.
    """
    connects = {run.case: experiment_of(run.case).opens_database for run in all_runs}
    for name in dict.fromkeys(run.case.driver for run in all_runs if connects[run.case] or run.case.server):
        runs = [run for run in all_runs if run.case.driver == name]
        servers = {run.case.server.address or "our own" for run in runs if run.case.server}
        where = " or ".join(sorted(servers))
        if not connects[runs[0].case]:
            yield f"{reported(name).product} ({where})"
            continue
        if others := _other_sqlite(runs):
            yield f"library {others[0].what}, SQLite {others[0].example}"
            continue
        build = next((build for build in builds if build.driver == name), None)
        answers = (trial.effective.get("server_version", "") for run in runs for trial in run.trials)
        version = " or ".join(sorted(filter(None, {answer.partition(" ")[0] for answer in answers})))
        if version and where:
            version = f"{version} ({where})"
        if build and build.version:
            version = build.version
        library = f"{build.library if build else reported(name).product} {version or 'unknown'}"
        yield f"driver {name}" + ("" if stores_nothing(name) else f", {library}")


def _requested_durability(run: Run) -> str:
    """Return a sentence on durability for a run whose effective settings are unknown."""
    case = run.case
    if others := _other_sqlite([run]):
        return f"Durability unknown: no connection of {others[0].what} was open at the end."
    synchronous = case.settings.synchronous or "at the library's default"
    if not experiment_of(case).applies_settings:
        return "Durability unknown: no connection was seen."
    return (
        f"Durability unknown: the run asked for a {case.settings.journal_mode} journal and synchronous "
        f"{synchronous}, but nothing was read back."
    )
