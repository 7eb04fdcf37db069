"""The command line: from the table of modules to a table of counts."""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
HEADS = ("module", "mutants", "killed", "timeouts", "survived", "untested", "noticed")
STATUSES = ("killed", "timeout", "survived", "no tests")
COPIED = ("sqlstress", "tests", "setup.cfg", "pyproject.toml")
SETTINGS = """
[mutmut]
source_paths = sqlstress
only_mutate = {module}
also_copy = fresh_caches.py
timeout_multiplier = 10
timeout_constant = 5
pytest_add_cli_args =
    -n0
    --hypothesis-seed=0
    -pfresh_caches
pytest_add_cli_args_test_selection =
    {tests}
"""
FRESH_CACHES = """
import importlib

def pytest_runtest_setup():
    for one in vars(importlib.import_module("{name}")).values():
        if hasattr(one, "cache_clear"):
            one.cache_clear()
"""
"""Plugin that clears caches before each test: values cached by earlier tests would hide a mutant."""


def main(arguments: list[str]) -> int:
    """Run the command line; return the exit code. Raises SystemExit if mutmut fails."""
    parser = argparse.ArgumentParser("python -m benchmarks mutants", description="Try the tests on mutants.")
    parser.add_argument("modules", nargs="*", help="try only modules with any of these in their paths")
    parser.add_argument("--tree", type=Path, default=HERE.parents[1], help="the checkout; default: this one")
    parser.add_argument("--table", type=Path, default=HERE / "modules.toml", help="which tests a module has")
    parser.add_argument("--processes", type=int, default=1, help="mutants tried at a time; default: 1")
    parser.add_argument("--survivors", action="store_true", help="print what was changed and not noticed")
    given = parser.parse_args(arguments)
    table: dict[str, list[str]] = tomllib.loads(given.table.read_text(encoding="utf-8"))["modules"]
    total: Counter[str] = Counter()
    survivors: list[str] = []
    print(_row(HEADS), _row(["---", *["---:"] * (len(HEADS) - 1)]), sep="\n", flush=True)
    for name in (name for name in table if any(part in name for part in given.modules or [""])):
        module, _, function = name.partition(":")
        with TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as own:
            copy(given.tree, Path(own), module, table[name])
            counts, differences = try_all(Path(own), function or "*", given.processes)
        total += counts
        survivors += ["", f"## {name}", *differences]
        print(_row(_cells(name, counts)), flush=True)
    print(_row(_cells("all", total)))
    if given.survivors:
        print(*survivors, sep="\n\n")
    return 0


def copy(tree: Path, folder: Path, module: str, tests: list[str]) -> None:
    """Copy the files that the tests need to an empty folder, with mutmut's settings for one module."""
    for name in COPIED:
        how = shutil.copytree if (tree / name).is_dir() else shutil.copy
        how(tree / name, folder / name)
    source = folder / module
    source.write_text(undecorated(source.read_text(encoding="utf-8")), encoding="utf-8")
    caches = FRESH_CACHES.format(name=module.removesuffix(".py").replace("/", "."))
    (folder / "fresh_caches.py").write_text(caches, encoding="utf-8")
    with (folder / "setup.cfg").open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS.format(module=module, tests="\n    ".join(tests)))


def undecorated(source: str) -> str:
    """Write `@property` and `@cache` as calls after their functions: mutmut skips decorated functions."""
    lines = source.splitlines()
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda node: node.lineno, reverse=True):
        match node.decorator_list:
            case [ast.Name(id="property" | "cache" as name, lineno=line)]:
                call = f"{node.name} = {name}({node.name})"
                lines.insert(node.end_lineno or line, " " * node.col_offset + call)
                del lines[line - 1]
    return "\n".join(lines) + "\n"


def try_all(folder: Path, function: str, processes: int) -> tuple[Counter[str], list[str]]:
    """Return the number of mutants of a function (* for all) by status, and the diffs of survivors."""
    mutants = "*" if function == "*" else f"*.x_{function}__mutmut_*"
    _mutmut(folder, "run", "--max-children", str(processes), mutants)
    results = re.findall(r"^ +(\S+): (.+)$", _mutmut(folder, "results", "--all", "true"), re.MULTILINE)
    found = {name: status for name, status in results if fnmatchcase(name, mutants)}
    unnoticed = [name for name, status in found.items() if status not in ("killed", "timeout")]
    shown = (_mutmut(folder, "show", name).strip() for name in unnoticed)
    return Counter(found.values()), [f"```diff\n{text}\n```" for text in shown]


def _mutmut(folder: Path, *arguments: str) -> str:
    # What others leave in the common folder meanwhile is no business of the tests' last check.
    own = folder / "temporary"
    own.mkdir(exist_ok=True)
    run = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(own)},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        last = (run.stdout + run.stderr).splitlines()[-30:]
        raise SystemExit("\n".join([*last, f"mutmut {' '.join(arguments)} failed."]))
    return run.stdout


def _cells(name: str, counts: Counter[str]) -> list[str]:
    noticed = (counts["killed"] + counts["timeout"]) / (counts.total() or 1)
    return [name, str(counts.total()), *(str(counts[status]) for status in STATUSES), f"{noticed:.1%}"]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
