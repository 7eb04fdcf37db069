"""The house: nothing but an experiment's own package and one registry names it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sqlstress
from sqlstress.experiment import EXPERIMENTS

PACKAGE = Path(sqlstress.__file__).parent
NAMES = {*EXPERIMENTS, *(name.replace("-", "_") for name in EXPERIMENTS)}
PARTS = {"load", "method", "picks", "cycling", "kills", "power"}
"""What the specs and the results of experiments are, in JSON: nobody asks a case for them."""


def outside() -> list[Path]:
    """Return the modules that may name no experiment."""
    every = {path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE / "experiments"}
    return sorted(
        path
        for path in every
        if PACKAGE / "experiments" not in path.parents and path != PACKAGE / "experiment.py"
    )


def named(path: Path) -> Iterator[str]:
    """Yield how a module names an experiment: an import, a text, or a part of a case."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if module.startswith("sqlstress.experiments"):
                yield f"line {node.lineno} imports {module}"
            case ast.Import(names=names):
                yield from (
                    f"line {node.lineno} imports {one.name}" for one in names if ".experiments" in one.name
                )
            case ast.Constant(value=str(text)) if text in NAMES or text.startswith("sqlstress.experiments."):
                yield f"line {node.lineno} says {text!r}"
            case ast.Attribute(value=ast.Attribute(attr="case") | ast.Name(id="case"), attr=attr):
                if attr in PARTS:
                    yield f"line {node.lineno} asks a case for its {attr}"


@pytest.mark.parametrize("path", outside(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_the_core_names_no_experiment(path: Path) -> None:
    assert list(named(path)) == []


def test_who_names_one_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "from sqlstress.experiments.kv.spec import Load\n"
        "import sqlstress.experiments.keys.face\n"
        "if case.method or run.case.load:\n    print('kv', 'sqlstress.experiments.kv:x')\n",
        encoding="utf-8",
    )
    assert len(list(named(module))) == 6


def test_every_package_of_an_experiment_is_registered() -> None:
    packages = {path.name for path in (PACKAGE / "experiments").iterdir() if (path / "face.py").exists()}
    assert packages == {target.split(".")[2] for target in EXPERIMENTS.values()}


def test_modules_are_short_enough_to_be_read_at_once() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert [path.relative_to(PACKAGE).as_posix() for path, count in lines.items() if count > 250] == []
