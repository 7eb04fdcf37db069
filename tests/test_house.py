"""Layout of the code: packages are registered, functions fit a screen, file names are distinct."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sqlstress
from sqlstress.registry import EXPERIMENTS
from tests.conftest import WORKERS, pytest_cmdline_main
from tests.example_report import GOLDEN
from tests.test_import_graph import MODULES, module_name, nodes, trees

PACKAGE = Path(sqlstress.__file__).parent
LONGEST_FUNCTION = 60
"""Lines."""
SAME_NAMES = 18
"""Maximum number of modules that share their name with another module, as those of targets do."""
ALIKE = {
    "experiment.py",
    "proof.py",
    "sentences.py",
    "show.py",
    "spec.py",
    "study.py",
    "work.py",
    "worker.py",
}
"""Names that mean the same in every experiment."""
SMALL = 150
"""Lines of a module below which it must not be just a part of another module."""
NAMED_IN_A_TABLE = {"markdown.py", "apsw_driver.py"}
"""A format and a driver, which are found by their names."""


def modules() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the name of each function of a module, and its lines."""
    for node in nodes(trees()[module_name(path)]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_every_package_of_an_experiment_is_registered() -> None:
    packages = {path.parent.name for path in (PACKAGE / "experiments").glob("*/__init__.py")}
    assert packages == {target.split(".")[2] for target in EXPERIMENTS.values()}


def test_function_fits_on_a_screen() -> None:
    long = [
        f"{path.relative_to(PACKAGE).as_posix()}: {name}"
        for path in modules()
        for name, lines in functions(path)
        if lines > LONGEST_FUNCTION
    ]
    assert long == []


def test_file_names_are_rarely_shared() -> None:
    names = Counter(path.name for path in modules())
    shared = {name: count for name, count in names.items() if count > 1}
    assert sum(count for name, count in shared.items() if name not in ALIKE) <= SAME_NAMES
    rooms = [path.name for path in modules() if not {"experiments", "targets"} & set(path.parts)]
    assert [name for name, count in Counter(rooms).items() if count > 2] == []


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that the imports among these nodes take from our modules."""
    found = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {f"{node.module}" for node in found} | {
        f"{node.module}.{alias.name}" for node in found for alias in node.names
    }


def test_small_module_is_not_just_a_part_of_its_only_importer() -> None:
    """A small module may exist for a late import, for another package, or for its name."""
    anywhere = defaultdict(list)
    for importer, tree in trees().items():
        for name in imported(nodes(tree)):
            anywhere[name].append(importer)
    parts = []
    for path in modules():
        importers = anywhere[module_name(path)]
        is_small = len(path.read_text(encoding="utf-8").splitlines()) < SMALL
        if is_small and len(importers) == 1 and MODULES[importers[0]].parent == path.parent:
            parts += [path.name] * (
                module_name(path) in imported(ast.iter_child_nodes(trees()[importers[0]]))
            )
    assert {*parts} - ALIKE - NAMED_IN_A_TABLE == set()


def test_every_file_of_sentences_is_compared_by_a_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    assert [path.name for path in (GOLDEN / "said").iterdir() if f'"{path.name}"' not in tests] == []


@pytest.mark.parametrize("asked, runs", [(None, WORKERS), (4, 4), (0, 0)])
def test_suite_runs_in_several_processes_by_default(asked: int | None, runs: int) -> None:
    option = SimpleNamespace(numprocesses=asked, dist="no")
    config: Any = SimpleNamespace(option=option, pluginmanager=SimpleNamespace(hasplugin="xdist".__eq__))
    pytest_cmdline_main(config)
    assert (option.numprocesses, option.dist) == (runs, "worksteal")


def test_suite_sets_no_xdist_options_if_xdist_is_missing() -> None:
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(hasplugin=lambda _: False))
    pytest_cmdline_main(config)
