"""Tests of `benchmarks mutants`: its modules, its counts, and the page of the last run."""

import re
import tomllib
from pathlib import Path

import pytest

from benchmarks.mutants.__main__ import HERE, copy, main, undecorated

ROOT = Path(__file__).parents[1]
MODULES: dict[str, list[str]] = tomllib.loads((HERE / "modules.toml").read_text(encoding="utf-8"))["modules"]
PAGE = (ROOT / "benchmarks" / "results" / "mutants.md").read_text(encoding="utf-8")

MUTMUT = """
import sys
match sys.argv[1:]:
    case ["run", *_]:
        print("2 mutants")
    case ["results", *_]:
        print("    one.x_add__mutmut_1: killed")
        print("    one.x_add__mutmut_2: timeout")
        print("    one.x_add__mutmut_3: survived")
        print("    one.x_less__mutmut_1: no tests")
    case ["show", name]:
        print("-    return a + b", "+    return a - b  # " + name, sep="\\n")
"""
"""Answers as mutmut does."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a small checkout, with a mutmut of its own that changes nothing."""
    folder = tmp_path / "tree"
    for name in ("sqlstress", "tests"):
        (folder / name).mkdir(parents=True)
    (folder / "sqlstress" / "one.py").write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")
    (folder / "setup.cfg").write_text("[mypy]\nstrict = true\n", encoding="utf-8")
    (folder / "pyproject.toml").touch()
    (folder / "modules.toml").write_text('[modules]\n"sqlstress/one.py" = ["tests/a", "tests/b"]\n')
    return folder


@pytest.fixture
def mutmut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that replaces mutmut."""
    file = tmp_path / "mutmut.py"
    file.write_text(MUTMUT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return file


def main_arguments(tree: Path, *arguments: str) -> list[str]:
    return ["--tree", str(tree), "--table", str(tree / "modules.toml"), *arguments]


@pytest.mark.usefixtures("mutmut")
def test_mutants_are_counted_by_status_and_survivors_are_shown(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(main_arguments(tree, "--survivors", "one")) == 0
    _, _, counts, every, *rest = capsys.readouterr().out.splitlines()
    assert counts == "| sqlstress/one.py | 4 | 1 | 1 | 1 | 1 | 50.0% |"
    assert every == "| all | 4 | 1 | 1 | 1 | 1 | 50.0% |"
    shown = "\n".join(rest)
    assert "## sqlstress/one.py\n\n```diff\n-    return a + b\n+    return a - b  # one.x_add__" in shown
    assert re.findall(r"# one\.(\S+)", shown) == ["x_add__mutmut_3", "x_less__mutmut_1"]


@pytest.mark.usefixtures("mutmut")
def test_only_selected_modules_and_functions_count(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(main_arguments(tree, "another")) == 0
    assert capsys.readouterr().out.splitlines()[2:] == ["| all | 0 | 0 | 0 | 0 | 0 | 0.0% |"]
    (tree / "modules.toml").write_text('[modules]\n"sqlstress/one.py:add" = ["tests/a"]\n')
    assert main(main_arguments(tree)) == 0
    assert capsys.readouterr().out.splitlines()[2] == "| sqlstress/one.py:add | 3 | 1 | 1 | 1 | 0 | 66.7% |"


def test_last_output_of_a_failed_mutmut_is_shown(tree: Path, mutmut: Path) -> None:
    mutmut.write_text("import sys\nsys.exit('the tests fail without a change')", encoding="utf-8")
    with pytest.raises(
        SystemExit, match="the tests fail without a change\nmutmut run --max-children 1 \\* failed"
    ):
        main(main_arguments(tree))


def test_copy_has_the_settings_for_one_module(tree: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    copy(tree, folder, "sqlstress/one.py", ["tests/a", "tests/b"])
    settings = (folder / "setup.cfg").read_text(encoding="utf-8")
    assert settings.startswith("[mypy]\n")
    assert "only_mutate = sqlstress/one.py\n" in settings
    assert settings.endswith("    tests/a\n    tests/b\n")
    assert 'import_module("sqlstress.one")' in (folder / "fresh_caches.py").read_text(encoding="utf-8")


DECORATED = """
class A:
    @property
    def b(self):
        return 1

@cache
def c():
    return 2

@dataclass
class D:
    @staticmethod
    def e():
        return 3
"""
UNDECORATED = """
class A:
    def b(self):
        return 1
    b = property(b)

def c():
    return 2
c = cache(c)

@dataclass
class D:
    @staticmethod
    def e():
        return 3
"""


def test_decorators_become_calls_so_that_functions_are_mutated() -> None:
    assert undecorated(DECORATED) == UNDECORATED


@pytest.mark.parametrize("module", MODULES)
def test_every_mutated_module_has_tests(module: str) -> None:
    file, _, function = module.partition(":")
    assert f"def {function}" in (ROOT / file).read_text(encoding="utf-8")
    assert MODULES[module]
    assert [path for path in MODULES[module] if not (ROOT / path).exists()] == []


def rows() -> dict[str, list[str]]:
    """Return the page's figures of each module."""
    found = re.findall(r"^\| `?([\w/.:]+)`? \|(.+)\|$", PAGE, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found if ".py" in name}


def test_page_has_exactly_the_mutated_modules() -> None:
    assert list(rows()) == list(MODULES)
