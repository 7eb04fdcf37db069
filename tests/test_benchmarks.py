"""The benchmarks: their arithmetic, the loops that they compare with, and a tiny run of each sub-command."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks import climit_build
from benchmarks.__main__ import STUDIES, main
from benchmarks.document import AT_MOST, CHECKOUT, Comparison, Row, Section, measure, ratios
from benchmarks.loops import WAL_FRAMES, Cell, Crew, LoopFailure, database, python_worker
from tests.rows import mostly_long, mostly_thorough

KEYS = 500


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The commands of the C loop's two builds."""
    folder = tmp_path_factory.mktemp("climit")
    try:
        (program, _), extension = climit_build.build_program(folder), climit_build.build_extension(folder)
    except climit_build.Unavailable as why:
        pytest.skip(str(why))
    return {"program": [str(program)], "extension": python_worker(str(extension))}


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


def test_rounds_alternate_their_order_and_keep_results_by_round() -> None:
    order: list[str] = []

    def arm(name: str, index: int) -> str:
        order.append(name)
        return f"{name}{index}"

    found = measure({"a": lambda index: arm("a", index), "b": lambda index: arm("b", index)}, 3)
    assert found == {"a": ["a0", "a1", "a2"], "b": ["b0", "b1", "b2"]}
    assert order == ["a", "b", "b", "a", "a", "b"]


def test_ratios_need_pairs_and_denominators_above_zero() -> None:
    assert ratios([1, 6], [2, 3]) == (0.5, 2.0)
    with pytest.raises(ValueError, match="argument 2"):
        ratios([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="did nothing"):
        ratios([1.0], [0.0])


def test_target_is_compared_with_the_median_of_the_pairs() -> None:
    values = (0.7, 0.9, 0.8)
    assert Comparison("x", values).spread() == (0.8, 0.7, 0.9)
    assert Comparison("x", values).met() is None
    assert [Comparison("x", values, target).met() for target in (0.8, 0.81)] == [True, False]
    assert [Comparison("x", values, target, AT_MOST).met() for target in (0.8, 0.79)] == [True, False]


def test_failed_cells_and_missed_targets_are_marked_and_counted() -> None:
    rows = [
        Row({"N": "1"}, {"C TPS": 12345.6}, (Comparison("sqlstress/C", (0.9, 0.95, 1.0), 0.9),)),
        Row({"N": "2"}, {"C TPS": 99.5}, (Comparison("sqlstress/C", (0.8, 0.85, 0.9), 0.9),)),
        Row({"N": "4"}, error="no disk"),
    ]
    table, failed, summary = Section("limit", "…", (), rows).parts("simple")
    _, _, first, second, third = table.splitlines()
    assert [part.strip() for part in first.split("  ") if part] == [
        "1",
        "12,346",
        "0.95 (0.90-1.00)",
        "≥ 0.90",
    ]
    assert second.endswith("short") and third.endswith("FAILED")
    assert (failed, summary) == ("FAILED: no disk", "1 of 3 cells reach their targets; 2 fall short.")


def test_preloaded_database_has_all_keys_and_a_full_size_wal(tmp_path: Path) -> None:
    with database(tmp_path, KEYS) as path:
        frames = (path.with_name("kv.db-wal").stat().st_size - 32) // (4096 + 24)
        assert WAL_FRAMES <= frames < WAL_FRAMES * 1.1
        assert path.stat().st_size > 4096, "the checkpoint has brought the rows into the database"
        assert rows(path, "SELECT min(key), max(key), count(*) FROM kv") == [(0, KEYS - 1, KEYS)]
    assert not [*tmp_path.iterdir()]


def rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.thorough
@every_kind
def test_loop_counts_operations_in_the_window_and_writes_new_values(
    command: list[str], tmp_path: Path
) -> None:
    cell = Cell(0.0, "normal", 2, duration_s=0.2, warmup_s=0.2, key_space=KEYS)
    with database(tmp_path, KEYS) as path:
        with Crew(command, cell, path, seed=7) as crew:
            first, second = crew.slice(), crew.slice()
        values = [value for (value,) in rows(path, "SELECT value FROM kv")]
    last = {
        seed: max(
            (value & (1 << 36) - 1 for value in values if value >> 36 & 0xFFF == seed % 64 + 1), default=0
        )
        for seed in (7, 8)
    }
    assert len(values) == len(set(values)) == KEYS
    for seed, *slices in zip((7, 8), first, second, strict=True):
        assert all(0 <= work_slice.counted <= work_slice.operations for work_slice in slices)
        assert all(work_slice.cpu_ns > 0 for work_slice in slices)
        # A writer can starve, and the other writer can have overwritten all of its keys.
        assert any(work_slice.operations for work_slice in slices) or not last[seed]
    assert any(last.values())
    done = [*first, *second]
    counted, operations = (
        sum(getattr(work_slice, name) for work_slice in done) for name in ("counted", "operations")
    )
    assert 0.1 < counted / operations < 0.9, "half of the load is warm-up"


@every_kind
@pytest.mark.thorough
def test_get_only_loop_writes_nothing_and_loop_fails_on_an_error(
    command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cell = Cell(1.0, "full", 1, duration_s=0.1, warmup_s=0.4, key_space=KEYS)
    with database(tmp_path, KEYS) as path:
        with Crew(command, cell, path, seed=1) as crew:
            # On a busy machine a process may get no processor in a window.
            assert any(crew.slice()[0].counted for _ in range(20))
        assert rows(path, "SELECT count(*) FROM kv WHERE value >> 36 & 4095") == [(0,)]
        rows(path, "DROP TABLE kv")
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
        timeout=600,
    )


TINY = ("--repeats", "1", "--duration", "300ms", "--warmup", "200ms")
ONE_CELL = (
    *TINY,
    *("--driver", "sqlite3", "--load", "50/50", "--concurrency", "2", "--synchronous", "normal"),
)
SMOKE = {"limit": ONE_CELL, "all": ONE_CELL}


@pytest.mark.thorough
@pytest.mark.parametrize("study", mostly_long(SMOKE, ["limit"]))
def test_every_study_measures_and_all_go_into_one_document(
    study: str, tmp_path: Path, built: dict[str, list[str]]
) -> None:
    output = tmp_path / "results" / "tiny.md"
    done = run_benchmarks(study, *SMOKE[study], "--dir", str(tmp_path), "--output", str(output))
    assert done.returncode == 0, done.stderr
    written = json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    assert written["command"][:4] == ["python", "-m", "benchmarks", study]
    assert written["environment"]["sync"]["append_p50_ns"] > 0
    sections = {section["name"]: section["rows"] for section in written["sections"]}
    assert [*sections] == ([*STUDIES] if study == "all" else [study])
    for name, cells in sections.items():
        assert cells and all(row["error"] is None and row["samples"] for row in cells)
        assert all(row["comparisons"] for row in cells)
        assert all(c["low"] <= c["median"] <= c["high"] for row in cells for c in row["comparisons"])
        assert f"## {name}" in output.read_text(encoding="utf-8")
    assert [entry.name for entry in tmp_path.iterdir()] == ["results"], "the databases' folder is removed"


@pytest.mark.thorough
def test_missing_c_compiler_leaves_out_the_c_loop_with_a_note(tmp_path: Path) -> None:
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
