"""Imports of the process that forks the workers."""

import subprocess
import sys
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path

import pytest

from sqlstress.engine import pool
from sqlstress.engine.pool import to_namespace
from sqlstress.experiment import experiment_of
from sqlstress.experiments.classics.spec import Cycling, Method, Picks
from sqlstress.experiments.kv.spec import Load
from sqlstress.report.case import Case, Settings
from sqlstress.system.processes import process_starter
from tests.engine import preloaded
from tests.engine.processes import ROOT
from tests.halves import open_work

PATIENCE_S = 60.0

CASES = {
    "kv": Case(spec=Load()),
    "apsw": Case(driver="apsw", spec=Load()),
    "native": Case(spec=Load(loop="native")),
    "dry": Case(driver="dry", spec=Load()),
    "keys": Case(workload="keys", spec=Picks("id-rowid", "int", users=2, picks=2, items=5)),
    "methods": Case(workload="methods", spec=Method("insert", "1b1", True, 20, 60.0)),
    "cycles": Case(workload="cycles", settings=Settings(journal_mode="delete"), spec=Cycling(cycles=2)),
}


def import_in_child(*names: str) -> tuple[set[str], int]:
    """Return all modules that importing these loads, and the number of threads afterwards."""
    script = (
        "import sys, threading, importlib\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(threading.active_count(), *sys.modules)"
    )
    command = [sys.executable, "-c", script, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    threads, *modules_loaded = done.stdout.split()
    return set(modules_loaded), int(threads)


@pytest.mark.parametrize("name", CASES)
def test_preload_imports_the_cases_driver_and_starts_no_thread(name: str) -> None:
    pytest.importorskip("apsw")
    case = CASES[name]
    modules = pool.modules([case])
    modules_loaded, threads = import_in_child(*modules)
    assert threads == 1
    assert {"sqlstress.engine.worker", "ctypes"} <= modules_loaded
    assert {"sqlite3", "apsw"} & modules_loaded == {case.driver} - {"dry"}
    assert not {"click", "psutil", "tabulate", "tqdm", "sqlstress.engine.trial"} & modules_loaded


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is forked there")
@pytest.mark.parametrize("name", ["kv", "native"])
def test_forked_worker_imports_nothing_itself(name: str, tmp_path: Path) -> None:
    if name == "native":
        pytest.importorskip("sqlstress.targets.native._native")
    case = replace(CASES[name], spec=replace(CASES[name].spec, key_space=10))
    work = open_work(case, tmp_path, 1, {})
    ours, theirs = Pipe()
    try:
        work.prepare(lambda: None)
        with process_starter(["tests.engine.preloaded", *pool.modules([case])]) as starter, ours, theirs:
            task = (experiment_of(case).worker_half(), to_namespace(case), tmp_path, work.shared, theirs)
            process = starter.start(preloaded.begin, task)
            assert ours.poll(PATIENCE_S)
            assert ours.recv() == set()
            process.join(PATIENCE_S)
    finally:
        work.release()
        work.discard()


def test_modules_of_several_cases_are_imported_once() -> None:
    modules = pool.modules([CASES["kv"], CASES["apsw"], CASES["kv"]])
    assert len(modules) == len(set(modules))
    for name in ("kv", "apsw"):
        assert set(pool.modules([CASES[name]])) <= set(modules)
    assert pool.modules([Case(workload="classic", ops=20)]) == []
