"""Hypothesis strategies for the types that flow through the program: Case, Trial, Run, Report.

Fields are drawn by their type hints, so a new field is covered without a change here. Only
strategies that a type hint cannot express (an enumeration, a share) are written out.
"""

from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, cast, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from sqlstress import target
from sqlstress.experiment import Experiment, all_experiments, get_experiment
from sqlstress.experiments import classics
from sqlstress.experiments.classics.spec import Cycling
from sqlstress.experiments.crash.spec import Kills
from sqlstress.experiments.hunt.result import Hunt
from sqlstress.experiments.watch.spec import Watch
from sqlstress.options.option import Option, options_of
from sqlstress.options.parsing import schema_keywords
from sqlstress.registry import result_formats
from sqlstress.report import case, document, environment, file_space, results, study_results
from sqlstress.statistics import histogram, sequential, series
from tests.drawing import CHARACTERS

texts = st.text(CHARACTERS, max_size=12)
"""Any Unicode text, control characters included; no half surrogates."""
names = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12)
counts = st.integers(0, 2**53)
quantities = st.floats(0, 1e15)
"""Finite, zero or more."""
shares = st.floats(0, 1)
latencies_ns = st.integers(1, 10**13)
"""1 ns to 2.8 hours."""

histograms = st.dictionaries(latencies_ns.map(histogram.bin_of), st.integers(1, 10**6), max_size=5)
"""{bin index: count}, as histogram.Recorder makes them."""

_BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    int: counts,
    float: quantities,
    bool: st.booleans(),
    NoneType: st.none(),
}


def by_type(hint: Any) -> st.SearchStrategy[Any]:
    """Return the strategy for a type hint, of those that a report's types use."""
    arguments = get_args(hint)
    if hint in _BY_TYPE:
        return _BY_TYPE[hint]
    if get_origin(hint) is dict:
        return st.dictionaries(names, by_type(arguments[1]), max_size=2)
    if get_origin(hint) is tuple and arguments[-1] is Ellipsis:
        return st.lists(by_type(arguments[0]), max_size=2).map(tuple)
    if get_origin(hint) is tuple:
        return st.tuples(*map(by_type, arguments))
    if NoneType in arguments:
        return st.one_of(*map(by_type, arguments))
    if is_dataclass(hint):
        return instances(cast(type, hint))
    raise TypeError(f"no strategy for {hint!r}")


def by_option(option: Option | None, hint: Any) -> st.SearchStrategy[Any]:
    """Return the strategy for a field: of the values that its option lets through, or any of its type."""
    known = schema_keywords(option.parse) if option else {}
    if "enum" in known:
        return st.sampled_from([*known["enum"], None] if NoneType in get_args(hint) else known["enum"])
    return st.floats(known["minimum"], known["maximum"]) if known else by_type(hint)


def instances(cls: type, **special: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for a dataclass and register it for the classes that hold it."""
    _BY_TYPE[cls] = strategy = dataclass_strategy(cls, **special)
    return strategy


def dataclass_strategy(cls: type, **special: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for a dataclass."""
    hints = get_type_hints(cls)
    known = [field.name for field in fields(cls)]
    if unknown := special.keys() - set(known):
        raise TypeError(f"{cls.__name__} has no {', '.join(unknown)}")
    options = options_of(cls)
    return st.builds(
        cls,
        **{
            name: special[name] if name in special else by_option(options.get(name), hints[name])
            for name in known
        },
    )


settings = instances(case.Settings)
cyclings = instances(Cycling, transaction=st.sampled_from(("none", "cycle", "run")))


def cases_of(experiment: Experiment) -> st.SearchStrategy[Any]:
    """Return a strategy for the cases of an experiment."""
    return dataclass_strategy(
        case.Case,
        workload=st.just(experiment.name),
        concurrency=st.integers(1, case.MAX_CONCURRENCY),
        buckets=st.integers(1, case.MAX_BUCKETS),
        driver=st.sampled_from([*target.DRIVERS, case.UNKNOWN_DRIVER]),
        spec=by_type(experiment.spec),
    )


cases = _BY_TYPE[case.Case] = st.one_of(*map(cases_of, all_experiments()))

known_series = st.sampled_from(
    [
        value
        for module in (series, classics)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    ]
)
series_drawn = instances(series.Series, name=known_series | texts, worker=st.none() | st.integers(1, 2))

warnings = instances(environment.Warning)
hosts = instances(environment.Host)
file_systems = instances(environment.FileSystem)
builds = instances(environment.SqliteBuild)
sync_costs = instances(environment.SyncCost)
environments = instances(environment.Environment)

latencies = st.builds(results.Latency.from_buckets, histograms, latencies_ns)
_BY_TYPE[results.Latency] = latencies
worker_results = instances(results.WorkerResult, harness_share=shares, proof_share=shares)
checks = instances(results.Check, status=st.sampled_from(results.CHECK_STATUSES))
verdicts = instances(results.Verdict)
tree_spaces = instances(file_space.TreeSpace)
spaces = instances(file_space.Space)
trials = instances(
    results.Trial,
    fairness=st.none() | shares,
    min_max_share=st.none() | shares,
    latency=st.dictionaries(st.sampled_from(("get", "replace", "update")), latencies),
)
runs = instances(results.Run, arm=st.none() | st.sampled_from(study_results.ARMS))
arms = instances(study_results.Arm, name=st.sampled_from(study_results.ARMS))
looks = instances(study_results.Look, verdict=st.sampled_from(sequential.VERDICTS))
ab_tests = instances(
    study_results.AbTest,
    metric=st.sampled_from(sequential.METRICS),
    first=st.sampled_from(study_results.ARMS),
    order=st.sampled_from(study_results.ORDERS),
    verdict=st.sampled_from(sequential.VERDICTS),
)
hunts = instances(Hunt)
watches = instances(Watch)
kills = instances(Kills, case=cases_of(get_experiment("crash")))
study_findings = st.fixed_dictionaries(
    {}, optional={name: by_type(each.result) for name, each in result_formats().items()}
)
"""Results of studies, by experiment."""
reports = instances(
    document.Report, format_version=st.just(document.FORMAT_VERSION), results=st.just({}) | study_findings
)
