"""What was measured, in a few sentences: the host, the load, the library, the durability, the warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlstress.analysis.answers import sides_of
from sqlstress.analysis.durability import describe_durability
from sqlstress.analysis.finding import Finding
from sqlstress.analysis.group import Group
from sqlstress.analysis.scaling import disturbances
from sqlstress.analysis.wording import amount, busy_policy, listing
from sqlstress.experiment import face_of
from sqlstress.report import Environment, Report, Run, Trial, Warning
from sqlstress.report.case import UNKNOWN_DRIVER, Arrivals, Case
from sqlstress.show.blocks import clean
from sqlstress.statistics.units import format_count, format_duration
from sqlstress.target import product, serves, stores_nothing, takes

OF_LIBRARY = frozenset({"sqlite-wal-reset-bug"})
"""Codes of warnings of the SQLite library that was measured with."""
_OPTIONAL = ("fullfsync", "wal_autocheckpoint", "page_size", "cache_size", "mmap_size")


def origin(report: Report) -> str:
    """Return one line: which version measured, when, and on what; or who published the figures."""
    where = ", ".join(_surroundings(report.environment))
    if report.published is not None:
        known = f"Known of the surroundings: {where}." if where else "Of the surroundings nothing is known."
        return f"Published figures, neither measured nor verified by sqlstress: {report.published}. {known}"
    return f"sqlstress {report.tool_version}, {_minute(report.created)}: {where or 'surroundings unknown'}"


def when(report: Report) -> str:
    """Return when a report was measured, to the minute, or that it was published."""
    return _minute(report.created) if report.published is None else "published"


def describe(what: str, group: Group, report: Report) -> str:
    """Return what the runs of a group did: `what`, then window, drivers and libraries, seed."""
    seed = _seed(group) if report.published is None else "seed unknown"
    said = (*_method(group), *_loops(group), *_libraries(group, report.environment), seed)
    return f"{what}; {'; '.join(said)}."


def durability(group: Group, environment: Environment) -> tuple[str, ...]:
    """Return what a commit waits for, once for each way in which the settings were read back."""
    if stores_nothing(group.case.driver):
        return ("The dry driver stores nothing: these figures are the harness's own ceiling.",)
    if not face_of(group.case).behaviour.connects:
        return ("What a commit waits for, and how long for a lock, is up to what opens the database.",)
    read_back = [(run, trial) for run in group.runs for trial in run.trials if trial.effective]
    told = [_durability(group, run, trial, environment) for run, trial in read_back]
    return tuple(dict.fromkeys(told or (_asked(run.case) for run in group.runs)))


def _durability(group: Group, run: Run, trial: Trial, environment: Environment) -> str:
    """Return what a commit of a trial waits for; where there are several targets, on the scale they share."""
    sides = sides_of(group)
    side = next((one for one in sides if run in one.runs), None)
    if side and trial.durability:
        return f"{side.name}: {clean(trial.durability)}."
    if trial.durability and not takes(run.case.driver, "journal-mode"):
        told = clean(trial.durability)
        return f"{told[:1].upper()}{told[1:]}."
    if serves(run.case.driver):
        whose = f"{side.name}: what" if side else "What"
        return f"{whose} a commit waits for is not known: no connection was seen."
    return describe_durability(trial.effective, environment.sync)


def warnings(group: Group, environment: Environment, findings: tuple[Finding, ...]) -> tuple[str, ...]:
    """Return what a reader must know first; what a finding of the same code says already is left out."""
    told = {finding.code for finding in findings}
    connects = face_of(group.case).behaviour.connects
    at_servers = all(serves(run.case.driver) for run in group.runs)
    general = [
        _general(one, connects=connects)
        for one in environment.warnings
        if one.serious and not (one.code in OF_LIBRARY and (at_servers or _without_wal(group)))
    ]
    cases: dict[str, list[Case]] = {}
    for run in group.runs:
        for warning in run.warnings:
            if warning.code not in told and warning.text not in general:
                cases.setdefault(warning.text, []).append(run.case)
    own = [f"{text} (At {group.places(where)}.)" for text, where in cases.items()]
    met = disturbances(group, environment)
    return tuple(f"Warning: {text}" for text in (*general, *own, *met))


def _without_wal(group: Group) -> bool:
    """Return whether no connection of a group had a WAL, as far as was read back of each."""
    modes = [trial.effective.get("journal_mode") for run in group.runs for trial in run.trials]
    return bool(modes) and all(mode and mode != "wal" for mode in modes)


def _general(warning: Warning, *, connects: bool) -> str:
    """Return a warning of the surroundings; one of the library is of no other connections than ours."""
    if connects or warning.code not in OF_LIBRARY:
        return warning.text
    return f"{warning.text} That is the one which looks at the data; which one opens it besides is not known."


def _surroundings(environment: Environment) -> Iterator[str]:
    """Yield what is known of the machine, in a few words."""
    host = environment.host
    cores = "" if host.cores is None else f"{host.cores} core{'s' * (host.cores != 1)}"
    system = f"{host.system} {host.release}".strip()
    yield from filter(None, (system, host.machine, cores, environment.file_system.kind, host.python))


def _minute(created: str) -> str:
    """Return an ISO 8601 time to the minute; anything else as it is."""
    try:
        return datetime.fromisoformat(created).strftime("%Y-%m-%d %H:%M %Z").strip()
    except ValueError:
        return created


def _method(group: Group) -> Iterator[str]:
    case = group.case
    if face_of(case).behaviour.windowed:
        yield amount(case)
    if case.arrivals:
        yield _due(case.arrivals)
    # A sweep that was stopped has made fewer than were asked for.
    passes = min(case.repeat, max(len(run.trials) for run in group.runs))
    if passes > 1:
        yield f"median of {format_count(passes)} passes"
    known = case.driver != UNKNOWN_DRIVER and not stores_nothing(case.driver)
    if known and face_of(case).behaviour.sets:
        yield from _settings(group)


def _loops(group: Group) -> Iterator[str]:
    """Yield what drove the load, where there is more than one that can."""
    words = {"native": "native loop", "python": "Python loop"}
    loops = dict.fromkeys(face_of(run.case).behaviour.loop_of(run.case) for run in group.runs)
    if told := [words.get(loop, loop) for loop in loops if loop]:
        yield listing(told, "or")


def _due(arrivals: Arrivals) -> str:
    limit_s = arrivals.latency_limit_s
    skipped = "" if limit_s is None else f", skipped when {format_duration(limit_s)} late"
    return f"an open loop: due at a rate, {arrivals.spacing}{skipped}"


def _settings(group: Group) -> Iterator[str]:
    """Yield how locks are waited for, and the settings that were chosen for all runs alike."""
    yield from _waits(group)
    chosen = [(name, {getattr(run.case.settings, name) for run in group.runs}) for name in _OPTIONAL]
    named = [f"{name}={int(value)}" for name, (value, *more) in chosen if value is not None and not more]
    named += [f"{name}={value}" for name, value in group.case.settings.pragmas if group.setting != "pragma"]
    if named:
        yield " ".join(named)


def _waits(group: Group) -> Iterator[str]:
    """Yield how locks are waited for; of several targets, by whom."""
    sides = [(f"{side.name}: ", side.runs) for side in sides_of(group)] or [("", group.runs)]
    for whose, runs in sides:
        policies = [busy_policy(run.case) for run in runs if takes(run.case.driver, "busy-timeout")]
        if policies:
            yield f"{whose}{listing(list(dict.fromkeys(policies)), 'or')}"


def _libraries(group: Group, environment: Environment) -> Iterator[str]:
    if not face_of(group.case).behaviour.connects:
        yield from _servers(group)
        return
    for name in dict.fromkeys(run.case.driver for run in group.runs):
        build = next((build for build in environment.builds if build.driver == name), None)
        version = build.version if build and build.version else _answered(group, name) or "unknown"
        library = build.library if build else product(name)
        yield f"driver {name}" + ("" if stores_nothing(name) else f", {library} {version}")


def _servers(group: Group) -> Iterator[str]:
    """Yield the servers of which only the directions are ours."""
    for name in dict.fromkeys(run.case.driver for run in group.runs if run.case.server):
        yield f"{product(name)} ({_addresses([run for run in group.runs if run.case.driver == name])})"


def _addresses(runs: Sequence[Run]) -> str:
    return " or ".join(sorted({run.case.server.address or "our own" for run in runs if run.case.server}))


def _answered(group: Group, driver: str) -> str:
    """Return the version of the servers that were spoken to, and which they were."""
    runs = [run for run in group.runs if run.case.driver == driver]
    versions = {
        trial.effective.get("server_version", "").partition(" ")[0] for run in runs for trial in run.trials
    }
    where, told = _addresses(runs), " or ".join(sorted(filter(None, versions)))
    return f"{told} ({where})" if told and where else told


def _seed(group: Group) -> str:
    seeds = {run.case.seed for run in group.runs}
    return f"seed {seeds.pop()}" if len(seeds) == 1 else "seeds differ"


def _asked(case: Case) -> str:
    synchronous = case.settings.synchronous or "as the library has it"
    if not face_of(case).behaviour.sets:
        return "Durability unknown: no connection was seen."
    return (
        f"Durability unknown: asked for were a {case.settings.journal_mode} journal and synchronous "
        f"{synchronous}; nothing was read back."
    )
