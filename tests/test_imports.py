"""Imports: a worker imports as little as possible, and help waits only for the modules it needs."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from sqlstress.engine.pool import to_namespace
from sqlstress.experiment import all_experiments, experiment_of
from sqlstress.experiments.classics.spec import Cycling, Method, Picks
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Settings
from tests.halves import open_work
from tests.rows import thorough

ROOT = Path(__file__).parents[1]
LEAST = 30
"""Maximum number of our modules and packages that the most frequent kind of worker loads."""
MOST = 34
"""Maximum number of our modules and packages that any worker loads."""

WORKER = """
import pickle
import sys
from pathlib import Path
from multiprocessing.sharedctypes import RawArray
from sqlstress.engine import worker
from sqlstress.engine.loop import FOREVER_NS, Window

class Parent:
    def send_bytes(self, piece):
        self.last = pickle.loads(piece[1:])
    def recv(self):
        return Window(0, 0, FOREVER_NS)
    def close(self):
        pass

source, case, limit = pickle.loads(bytes.fromhex(sys.argv[1]))
folder = Path(sys.argv[2])
shared = tuple(RawArray("q", int(words)) if words else None for words in sys.argv[3:])
parent = Parent()
counters = RawArray("q", 2 * worker.SLOT_WORDS)
worker.main(worker.Job(source, case, limit, folder, 1, 7, counters, shared), parent)
assert isinstance(parent.last, worker.Done), parent.last
print(*sorted(sys.modules))
"""

UNWANTED = (
    "apsw", "click", "tabulate", "tqdm", "psutil", "jsonschema", "tomllib", "json", "unittest", "asyncio",
    "dataclasses", "inspect", "platform", "sqlstress.report.case",
    "sqlstress.analysis", "sqlstress.cli", "sqlstress.machine", "sqlstress.options", "sqlstress.plan",
    "sqlstress.show.formats", "sqlstress.report", "sqlstress.engine.pool", "sqlstress.engine.session",
)  # fmt: skip


def modules(*arguments: str) -> set[str]:
    """Return the words that `python ARGUMENTS` prints."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ}
    )
    return set(done.stdout.split())


def worker_arguments(case: Case) -> str:
    """Return the worker's half, its case and its limit, as an argument of WORKER."""
    return pickle.dumps((experiment_of(case).worker_half(), to_namespace(case), case.ops)).hex()


def within(names: set[str], unwanted: tuple[str, ...]) -> set[str]:
    """Return the names that are an unwanted module or lie in one."""
    return {name for name in names if any(name == bad or name.startswith(f"{bad}.") for bad in unwanted)}


@pytest.mark.parametrize(
    "case",
    [
        Case(ops=20, spec=Load(key_space=100)),
        thorough(Case(ops=20, spec=Load(key_space=100, read_ratio=1.0)), id="gets"),
        Case(ops=20, spec=Load(key_space=100, batch=2, update_ratio=0.3)),
        thorough(Case(ops=20, driver="dry", spec=Load(key_space=100)), id="dry"),
        thorough(Case(ops=20, driver="apsw", spec=Load(key_space=100)), id="apsw"),
        thorough(Case(workload="classic", ops=20), id="classic"),
        thorough(Case(workload="methods", spec=Method("insert", "1b1", True, 20, 60.0)), id="methods"),
        Case(workload="methods", spec=Method("query", "SPC", False, 12, 60.0, 20), driver="apsw"),
        Case(workload="cycles", settings=Settings(journal_mode="delete"), spec=Cycling(cycles=2)),
    ],
    ids=lambda case: case.workload,
)
def test_worker_imports_only_what_it_uses(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("apsw")
    work = open_work(case, tmp_path, 7, {})
    work.prepare(lambda: None)
    words = ["" if shared is None else str(len(shared)) for shared in work.shared]
    found = modules("-c", WORKER, worker_arguments(case), str(tmp_path), *words)
    work.release()
    assert "sqlstress.engine.loop" in found
    needed = {"apsw"} & {case.driver} | ({"json"} if case.workload == "methods" else set())
    assert {name.partition(".")[0] for name in within(found, UNWANTED)} == needed
    assert ("sqlite3" in found) == (case.driver == "sqlite3")
    assert "peewee" not in found
    simple = case.workload == "kv" and case.spec.batch == 1
    assert len(within(found, ("sqlstress",))) <= (LEAST if simple else MOST)
    stores = case.driver != "dry"
    assert bool(within(found, ("sqlstress.targets.sqlite",))) == stores
    assert bool(within(found, ("sqlstress.targets.dry",))) == (not stores)


@pytest.mark.parametrize(
    "module",
    [
        companion.__module__
        for experiment in all_experiments()
        for companion in experiment.companions().values()
    ],
)
def test_companion_process_imports_little_more(module: str) -> None:
    found = modules("-c", f"import sys, sqlstress.engine.worker, {module}; print(*sys.modules)")
    # It reports dataclasses, or JSON on a board, and its time counts in no figure.
    loaded = {name.partition(".")[0] for name in within(found, (*UNWANTED, "sqlite3"))}
    assert loaded <= {"dataclasses", "inspect", "json"}


def test_application_process_does_not_import_asyncio() -> None:
    halves = "sqlstress.experiments.app.worker, sqlstress.experiments.app.user_file"
    found = modules("-c", f"import sys, {halves}; print(*sys.modules)")
    assert within(found, ("asyncio", "ssl")) == set()


@pytest.mark.parametrize(("id_type", "needed"), [("int", set()), ("uuid4", {"platform"})])
def test_worker_imports_an_id_library_only_to_make_ids(
    id_type: str, needed: set[str], tmp_path: Path
) -> None:
    case = Case(workload="keys", spec=Picks("id-rowid", id_type, users=2, picks=2, items=5))
    work = open_work(case, tmp_path, 7, {})
    work.prepare(lambda: None)
    words = [str(len(array)) for array in work.shared]
    found = modules("-c", WORKER, worker_arguments(case), str(tmp_path), *words)
    work.release()
    assert within(found, (*UNWANTED, "ulid")) <= needed  # the standard library's uuid asks for the platform
    assert ("uuid" in found) == (id_type == "uuid4")


@pytest.mark.parametrize(("line", "needed"), [("", False), ("\\set x 1\n", True)])
def test_worker_imports_sqlite3_only_for_expressions(line: str, needed: bool) -> None:
    found = modules(
        "-c",
        f"""
import sys
from random import Random
from sqlstress.experiments.sql.worker import Compiler, Evaluator, NoDatabase, read
script = read("a.sql", {f"{line}SELECT 1;"!r})
Compiler(Evaluator(Random(1)), NoDatabase()).steps(script.commands)
print(*sys.modules)
""",
    )
    assert ("sqlite3" in found) == needed


PRINT_MODULES = """
import sys
from sqlstress.cli.commands import run
import io, contextlib
with contextlib.redirect_stdout(io.StringIO()):
    code = run({arguments!r})
assert code == {code}
print(*sorted(sys.modules))
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        thorough(["kv", "--help"], 0),
        thorough(["--version"], 0),
        thorough(["docter"], 2),
        (["--concurrency", "0"], 2),
    ],
    ids=str,
)
def test_help_and_errors_import_only_needed_modules(arguments: list[str], code: int) -> None:
    found = modules("-c", PRINT_MODULES.format(arguments=arguments, code=code))
    assert "click" in found
    assert within(found, ("tabulate", "tqdm", "psutil", "sqlite3", "apsw", "multiprocessing")) == set()


def test_main_module_imports_nothing() -> None:
    found = modules(
        "-c",
        "import sys; before = set(sys.modules); import sqlstress.__main__; print(*set(sys.modules) - before)",
    )
    assert found <= {"__future__", "sqlstress", "sqlstress.__main__"}


def test_no_process_checks_protocols_at_run_time() -> None:
    # From Python 3.12 on isinstance imports inspect for it: in a worker that was while its window was open.
    package = (ROOT / "sqlstress").rglob("*.py")
    assert not [path.name for path in package if "runtime_checkable" in path.read_text("utf-8")]
