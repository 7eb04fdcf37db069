"""The benchmarks: their arithmetic, the loops that they compare with, and a tiny run of each sub-command."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import climit_build, text
from benchmarks.__main__ import main
from benchmarks.database import WAL_FRAMES, preloaded
from benchmarks.loops import CHECKOUT, Cell, Crew, LoopFailure, python_worker
from benchmarks.options import APART
from benchmarks.pairs import Spread, abba, measure, ratios
from benchmarks.results import AT_MOST, Comparison, Row, Section
from benchmarks.watch import PeakMemory
from tests.rows import mostly_thorough

KEYS = 500


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The commands of the C loop's two builds."""
    folder = tmp_path_factory.mktemp("climit")
    try:
        program, extension = climit_build.build_program(folder), climit_build.build_extension(folder)
    except climit_build.Unavailable as why:
        pytest.skip(str(why))
    return {"program": [str(program.path)], "extension": python_worker(str(extension))}


@pytest.fixture
def command(request: pytest.FixtureRequest) -> list[str]:
    """The command of a worker, by the name of its kind."""
    kind = request.param
    if kind in ("apsw", "extension"):
        pytest.importorskip("apsw")
    found: list[str] = (
        request.getfixturevalue("built")[kind] if kind in ("program", "extension") else python_worker(kind)
    )
    return found


every_kind = pytest.mark.parametrize(
    "command",
    mostly_thorough(
        ("program", "extension", "sqlite3", "apsw", "native:sqlite3", "native:apsw", "python:sqlite3"),
        ("sqlite3",),
    ),
    indirect=True,
)


def test_rounds_alternate_so_that_drift_meets_all_arms_alike() -> None:
    assert list(abba(("a", "b"), 3)) == [("a", "b"), ("b", "a"), ("a", "b")]


def test_results_are_kept_by_round_whatever_the_order_they_were_measured_in() -> None:
    order: list[str] = []

    def arm(name: str, index: int) -> str:
        order.append(name)
        return f"{name}{index}"

    found = measure({"a": lambda index: arm("a", index), "b": lambda index: arm("b", index)}, 2)
    assert found == {"a": ["a0", "a1"], "b": ["b0", "b1"]}
    assert order == ["a", "b", "b", "a"]


def test_a_ratio_needs_pairs_and_something_to_divide_by() -> None:
    assert ratios([1, 6], [2, 3]) == [0.5, 2.0]
    with pytest.raises(ValueError, match="argument 2"):
        ratios([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="did nothing"):
        ratios([1.0], [0.0])


def test_a_target_is_judged_by_the_median_of_the_pairs_and_on_its_good_side() -> None:
    values = (0.7, 0.9, 0.8)
    assert Comparison("x", values).spread == Spread(0.8, 0.7, 0.9)
    assert Comparison("x", values).met is None
    assert [Comparison("x", values, target).met for target in (0.8, 0.81)] == [True, False]
    assert [Comparison("x", values, target, AT_MOST).met for target in (0.8, 0.79)] == [True, False]


def test_a_cell_that_falls_short_or_failed_is_marked_in_the_table_and_counted() -> None:
    section = Section("limit", "…", ())
    section.rows = [
        Row({"N": "1"}, {"C TPS": 12345.6}, (Comparison("sqlstress/C", (0.9, 0.95, 1.0), 0.9),)),
        Row({"N": "2"}, {"C TPS": 99.5}, (Comparison("sqlstress/C", (0.8, 0.85, 0.9), 0.9),)),
        Row({"N": "4"}, error="no disk"),
    ]
    lines = text.table(section, "simple").splitlines()
    assert [part.strip() for part in lines[2].split("  ") if part] == [
        "1",
        "12,346",
        "0.95 (0.90-1.00)",
        "≥ 0.90",
    ]
    assert lines[3].endswith("short")
    assert lines[4].endswith("FAILED")
    assert "FAILED: no disk" in text.parts(section, "simple")
    assert text.summary(section) == "1 of 3 cells reach their targets; 2 fall short."


def test_of_what_workers_share_only_looks_count_that_met_all_of_them() -> None:
    memory = PeakMemory()
    for look in ({1: 70}, {1: 30, 2: 20}, {1: 20, 2: 25, 3: 10}, {1: 22, 2: 24, 3: 11}, {3: 80}):
        memory.take(look)
    assert memory.shares == {1: 22, 2: 25, 3: 11}


def test_the_preloaded_database_holds_every_key_and_a_wal_of_its_working_size(tmp_path: Path) -> None:
    with preloaded(tmp_path / "kv.db", KEYS) as path:
        frames = (path.with_name("kv.db-wal").stat().st_size - 32) // (4096 + 24)
        assert WAL_FRAMES <= frames < WAL_FRAMES * 1.1
        assert path.stat().st_size > 4096, "the checkpoint has brought the rows into the database"
    connection = sqlite3.connect(tmp_path / "kv.db")
    assert connection.execute("SELECT min(key), max(key), count(*) FROM kv").fetchone() == (0, KEYS - 1, KEYS)
    connection.close()


@pytest.mark.thorough
@every_kind
def test_a_loop_counts_what_falls_into_the_window_and_writes_new_values_of_eight_bytes(
    command: list[str], tmp_path: Path
) -> None:
    cell = Cell(0.0, "normal", 2, duration_s=0.2, warmup_s=0.2, key_space=KEYS)
    with preloaded(tmp_path / "kv.db", KEYS) as path, Crew(command, cell, path, seed=7) as crew:
        first, second = crew.slice(), crew.slice()
    connection = sqlite3.connect(tmp_path / "kv.db")
    values = [value for (value,) in connection.execute("SELECT value FROM kv")]
    connection.close()
    last = {
        seed: max(
            (value & (1 << 36) - 1 for value in values if value >> 36 & 0xFFF == seed % 64 + 1), default=0
        )
        for seed in (7, 8)
    }
    assert len(values) == len(set(values)) == KEYS
    for seed, *slices in zip((7, 8), first, second, strict=True):
        assert all(0 <= one.counted <= one.operations for one in slices)
        assert all(one.cpu_ns > 0 for one in slices)
        # A writer can starve, and the other can have written all of its keys anew.
        assert any(one.operations for one in slices) or not last[seed]
    assert any(last.values())
    done = [*first, *second]
    counted, operations = (sum(getattr(one, name) for one in done) for name in ("counted", "operations"))
    assert 0.1 < counted / operations < 0.9, "half of the load is warm-up"


@every_kind
def test_a_loop_of_gets_alone_writes_nothing(command: list[str], tmp_path: Path) -> None:
    cell = Cell(1.0, "full", 1, duration_s=0.1, warmup_s=0.1, key_space=KEYS)
    with preloaded(tmp_path / "kv.db", KEYS) as path, Crew(command, cell, path, seed=1) as crew:
        (done,) = crew.slice()
    connection = sqlite3.connect(tmp_path / "kv.db")
    assert connection.execute("SELECT count(*) FROM kv WHERE value >> 36 & 4095").fetchone() == (0,)
    connection.close()
    assert done.counted > 0


@every_kind
def test_a_loop_that_meets_an_error_fails_instead_of_counting(
    command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cell = Cell(1.0, "full", 1, duration_s=0.1, warmup_s=0.1, key_space=KEYS)
    with preloaded(tmp_path / "kv.db", KEYS) as path:
        connection = sqlite3.connect(path)
        connection.execute("DROP TABLE kv")
        connection.commit()
        connection.close()
        with pytest.raises(LoopFailure), Crew(command, cell, path, seed=1) as crew:
            crew.slice()
    assert "no such table" in capfd.readouterr().err


def run_benchmarks(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as its users do."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=CHECKOUT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


TINY = ("--repeats", "1", "--duration", "150ms", "--warmup", "100ms")
SMOKE = {
    "limit": (
        *TINY,
        "--driver",
        "sqlite3",
        "--load",
        "50/50",
        "--synchronous",
        "normal",
        "--concurrency",
        "2",
    ),
    "published": ("--repeats", "1", "--concurrency", "1"),
    "harness": (*TINY, "--load", "get-only"),
    "fair": (*TINY, "--driver", "sqlite3", "--load", "50/50", "--concurrency", "2"),
    "memory": (*TINY, "--driver", "sqlite3", "--concurrency", "2"),
    "sql": (*TINY, "--synchronous", "normal"),
    "profile": ("--repeats", "1", "--driver", "sqlite3", "--load", "get-only"),
    "where": ("--repeats", "1", "--driver", "sqlite3", "--load", "get-only"),
    "endurance": ("--duration", "6s", "--workers", "3", "--buckets", "5", "--keys", "20000"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("study", SMOKE)
def test_each_sub_command_measures_and_writes_its_results(
    study: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if study in ("harness", "limit", "sql"):
        request.getfixturevalue("built")
    output = tmp_path / "results" / "tiny.md"
    done = run_benchmarks(study, *SMOKE[study], "--dir", str(tmp_path), "--output", str(output))
    assert done.returncode == 0, done.stderr
    written = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    assert written["command"][:4] == ["python", "-m", "benchmarks", study]
    assert written["environment"]["sync"]["append_p50_ns"] > 0
    (section,) = written["sections"]
    assert section["rows"] and all(row["error"] is None and row["samples"] for row in section["rows"])
    if study == "endurance":
        assert [bool(row["comparisons"]) for row in section["rows"]] == [False, True, False, False, False]
    elif study != "profile":
        assert all(row["comparisons"] for row in section["rows"])
    assert all(c["low"] <= c["median"] <= c["high"] for row in section["rows"] for c in row["comparisons"])
    assert f"## {study}" in output.read_text(encoding="utf-8")
    assert [entry.name for entry in tmp_path.iterdir()] == ["results"], "the databases' folder is removed"


@pytest.mark.long
def test_all_runs_every_study_into_one_document(tmp_path: Path, built: dict[str, list[str]]) -> None:
    output = tmp_path / "results" / "all.md"
    chosen = ("--driver", "sqlite3", "--load", "get-only", "--concurrency", "1")
    done = run_benchmarks("all", *TINY, *chosen, "--dir", str(tmp_path), "--output", str(output))
    assert done.returncode == 0, done.stderr
    written = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    assert [section["name"] for section in written["sections"]] == [
        name for name in SMOKE if name not in APART
    ]
    assert written["compiler"]


@pytest.mark.thorough
def test_without_a_c_compiler_the_c_loop_is_left_out_and_the_output_says_so(tmp_path: Path) -> None:
    arguments = ("limit", *TINY, "--driver", "sqlite3", "--dir", str(tmp_path))
    done = run_benchmarks(*arguments, PATH=str(tmp_path), CC="")
    assert done.returncode == 0, done.stderr
    assert "sqlite3 is left out: no C compiler was found" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("limit", "--repeats", "0"), "not 1 or more"),
        (("limit", "--duration", "soon"), "not a duration"),
        (("limit", "--dir", "no/such/folder"), "not a folder"),
        (("published", "--duration", "1s"), "unrecognized"),
        ((), "required"),
    ],
)
def test_bad_input_is_refused_with_exit_code_2(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert (ended.value.code, said in capsys.readouterr().err) == (2, True)
