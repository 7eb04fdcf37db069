"""Imports between modules: no circles, and workers without the libraries of their parent.

Imports within functions count; those for type checkers count as a circle, but not in a worker.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import sqlstress

ROOT = Path(sqlstress.__file__).parent
LARGEST_CIRCLE = 2
"""Files. Two that share a subject, such as a registry and its entries, may name each other."""
OF_WORKERS = (
    "sqlstress.engine.worker",
    "sqlstress.engine.loop",
    "sqlstress.experiments.*.worker",
    "sqlstress.user_work.checks",
    "sqlstress.user_work.source",
    "sqlstress.targets.dry",
    "sqlstress.targets.sqlite.connections",
    "sqlstress.targets.sqlite.drivers*",
)
OF_PARENTS = ("click", "tabulate", "tqdm", "psutil", "sqlstress.report*")

Graph = Mapping[str, set[str]]
"""Imported names by module: modules of the package, and top-level names of libraries."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in ROOT.rglob("*.py")}


def nodes(tree: ast.AST, *, types: bool = True) -> Iterator[ast.AST]:
    """Yield the statements of a module; without `types`, skip imports that only type checkers need."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            continue
        yield node
        # Statements only: expressions are most of the nodes, and import nothing.
        for block in ("body", "orelse", "handlers", "finalbody", "cases"):
            waiting += getattr(node, block, ())


def imports(tree: ast.AST, *, types: bool) -> Iterator[str]:
    """Yield the names that a module imports, also within functions."""
    for node in nodes(tree, types=types):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else f"{node.module}" for name in inner)


def graph(*, types: bool) -> Graph:
    return {name: set(imports(tree, types=types)) for name, tree in trees().items()}


@cache
def trees() -> Mapping[str, ast.AST]:
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def reached(module: str, edges: Graph) -> set[str]:
    """Return the names that a module imports, directly or through others."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = edges.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def circles(edges: Graph) -> set[frozenset[str]]:
    """Return the sets of modules each of which reaches all others of its set."""
    reach = {module: reached(module, edges) for module in edges}
    found = {frozenset(name for name in reach[module] if module in reach.get(name, ())) for module in edges}
    return found - {frozenset()}


def test_no_circle_of_imports_has_more_than_two_files() -> None:
    assert len(MODULES) > 200
    large = [sorted(circle) for circle in circles(graph(types=True)) if len(circle) > LARGEST_CIRCLE]
    assert large == []


def test_circles_are_found_across_types_and_functions() -> None:
    sources = {
        "a": "if TYPE_CHECKING:\n    import b",
        "b": "def f():\n    from c import g",
        "c": "import a, d",
        "d": "import c",
        "e": "import a",
    }
    parsed = {name: ast.parse(text) for name, text in sources.items()}
    for types, circle in ((True, "abcd"), (False, "cd")):
        edges = {name: set(imports(tree, types=types)) for name, tree in parsed.items()}
        assert circles(edges) == {frozenset(circle)}


def test_workers_import_no_reports_and_no_libraries_of_their_parent() -> None:
    workers = [name for name in MODULES if any(fnmatch(name, pattern) for pattern in OF_WORKERS)]
    assert len(workers) > len(OF_WORKERS)
    edges = graph(types=False)
    unwanted = {
        worker: sorted(
            name for name in reached(worker, edges) if any(fnmatch(name, bad) for bad in OF_PARENTS)
        )
        for worker in workers
    }
    assert {worker: names for worker, names in unwanted.items() if names} == {}
