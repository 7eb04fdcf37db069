"""Only the registry and an experiment's own package name it: other modules get it from a case."""

import ast
from collections.abc import Iterator

import pytest

from sqlstress.experiment import all_experiments
from sqlstress.registry import EXPERIMENTS
from tests.test_import_graph import trees

OWN = "sqlstress.experiments"
FIELDS = {
    name
    for experiment in all_experiments()
    for name in (experiment.key, *experiment.top_level_fields)
    if name
}
"""Names of the fields of cases that belong to one experiment."""
NAMING = ("sqlstress.experiments", "sqlstress.registry")
"""Prefixes of the modules that may name an experiment."""


def named_in(tree: ast.AST) -> Iterator[str]:
    """Yield the names of experiments that the code mentions."""
    nodes = list(ast.walk(tree))
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name.startswith(OWN))
            case ast.ImportFrom(module=str(module)) if module.startswith(OWN):
                yield module
            case ast.Constant(value=str(text)) if id(node) not in prose:
                if text in EXPERIMENTS or text.startswith(f"{OWN}."):
                    yield text
            case ast.Attribute(value=ast.Name(id=holder) | ast.Attribute(attr=holder), attr=attribute):
                if attribute in FIELDS and holder.lower().endswith("case"):
                    yield f"{holder}.{attribute}"


def test_core_modules_name_no_experiment() -> None:
    core = {name: tree for name, tree in trees().items() if not name.startswith(NAMING)}
    assert len(core) > 100
    named = {name: sorted(set(named_in(tree))) for name, tree in core.items()}
    assert {name: names for name, names in named.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import sqlstress.experiments.kv.experiment",
        "from sqlstress.experiments.keys import spec",
        "from sqlstress.experiments import kv",
        'named("sqlstress.experiments.kv.experiment:KeyValueExperiment")',
        'if case.workload == "cycles": pass',
        "run.case.load",
        "case.picks.users",
        "def f():\n    x = 1\n    'kv'.upper()",
    ],
)
def test_code_that_names_an_experiment_is_found(code: str) -> None:
    assert len(list(named_in(ast.parse(code)))) == 1


@pytest.mark.parametrize(
    "code", ['"""kv"""', "x = 1\n'kv'", "case.spec", "self.load(path)", "import sqlstress"]
)
def test_code_that_names_no_experiment_passes(code: str) -> None:
    assert list(named_in(ast.parse(code))) == []
