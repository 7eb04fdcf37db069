"""Every example is run: plans with shortened windows, scripts on the report of one of them.

A test belongs to the example whose name starts the test's name. Each example needs a test.
"""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sqlstress.plan import from_toml
from tests.brief import PROGRAM
from tests.pages import ROOT, WRITTEN, columns, have_one_form, outputs_of, written_commands

EXAMPLES = ROOT / "examples"
SHORT: dict[str, dict[str, Any]] = {
    "kv": {"repeat": 1, "duration": "100ms", "warmup": "200ms", "key-space": 2000, "concurrency": 2},
    "methods": {"scale": 20, "repeat": 1},
    "keys": {"users": 40, "picks": 20, "items": 100, "concurrency": 2},
    "exec": {"ops": 3, "concurrency": 2, "repeat": 1},
    "cycles": {"cycles": 5, "repeat": 1},
}
"""Options that make a workload's cases take less than a second."""
TIMEOUT_S = 300

Runs = list[dict[str, Any]]


def run(words: Sequence[str], folder: Path, expected: int = 0) -> subprocess.CompletedProcess[str]:
    """Run Python with this checkout's package in a folder; `expected` is the exit code."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
    )
    assert done.returncode == expected, f"{words}: {done.stdout}{done.stderr}"
    return done


def shortened(plan: Path, **changes: Any) -> str:
    """Return a plan's text with two processes and little to do in every case."""
    document = tomllib.loads(plan.read_text(encoding="utf-8"))
    tables = document.pop("case")
    whole = [{**document, **table} for table in tables]
    cases = [{**case, **SHORT[case["workload"]], **changes} for case in whole]
    return "\n".join(
        line
        for case in cases
        # A string, a number and a boolean look the same in JSON and in TOML.
        for line in ("[[case]]", *(f"{name} = {json.dumps(value)}" for name, value in case.items()))
    )


CHANGED: dict[str, dict[str, Any]] = {
    "ci.toml": {"repeat": 1},
    "durability.toml": {"duration": "300ms"},
    "updates.toml": {"duration": "300ms"},
    "checkpoints.toml": {"duration": "300ms"},
}
"""Other changes of a plan, by its name: its result needs this much time, or this many passes."""


def runs_of(name: str, folder: Path) -> Runs:
    """Run an example plan, shortened; return the runs of its report. All of them are verified.

    Check that its tables have the shape that the documentation shows.
    """
    (folder / name).write_text(shortened(EXAMPLES / name, **CHANGED.get(name, {})), encoding="utf-8")
    printed = run([*PROGRAM[1:], "run", name, "-o", "report.json"], folder).stdout
    for command in {line for page in WRITTEN for line in written_commands(page)}:
        if re.fullmatch(rf"sqlstress run examples/{name}( -o \S+)*", command):
            for page, output in outputs_of(command):
                assert len(columns(output)) == len(columns(printed)), page
                assert all(map(have_one_form, columns(output), columns(printed))), page
    (folder / "printed.txt").write_text(printed, encoding="utf-8")
    found: Runs = json.loads((folder / "report.json").read_text(encoding="utf-8"))["runs"]
    statuses = {check["status"] for each in found for check in checks(each)}
    assert statuses == {"ok"}
    return found


def checks(example_run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the checks of all trials of a run."""
    return [check for trial in example_run["trials"] for check in trial["verdict"]["checks"]]


def test_every_example_has_a_test() -> None:
    tests = [name.removeprefix("test_") for name in globals() if name.startswith("test_")]
    names = [path.stem for path in EXAMPLES.iterdir() if path.suffix in (".py", ".toml", ".sh")]
    untested = [name for name in names if not any(test.startswith(f"{name}_") for test in tests)]
    assert names
    assert not untested, f"examples without a test: {untested}"


@pytest.mark.parametrize("plan", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_every_plan_begins_with_a_comment_and_can_be_read(plan: Path) -> None:
    text = plan.read_text(encoding="utf-8")
    assert text.startswith("# ")
    if '"sqlite3", "-cmd"' in text and not shutil.which("sqlite3"):
        pytest.skip("the sqlite3 program is not installed")
    assert from_toml(plan)


@pytest.mark.thorough
def test_rates_measures_both_layouts_at_each_rate(tmp_path: Path) -> None:
    found = runs_of("rates.toml", tmp_path)
    assert [(each["case"]["buckets"], each["case"]["arrivals"]["rate"]) for each in found] == [
        (files, rate) for files in (1, 4) for rate in (250, 500, 1000, 2000)
    ]
    assert all(trial["arrived"]["due"] for each in found for trial in each["trials"])


@pytest.mark.thorough
def test_transfer_without_locks_keeps_its_invariants_with_retries(tmp_path: Path) -> None:
    folder = EXAMPLES / "transfer"
    files = (f"--setup={folder / 'schema.sql'}", f"--check={folder / 'invariants.sql'}")
    short = ("-c4", "--repeat=1", "--synchronous=off", "--max-tries=1000")
    run([*PROGRAM[1:], "sql", str(folder / "plain.sql"), *files, *short], tmp_path)


@pytest.mark.thorough
def test_durability_measures_full_and_normal(tmp_path: Path) -> None:
    found = runs_of("durability.toml", tmp_path)
    assert [each["trials"][0]["effective"]["synchronous"] for each in found] == ["full", "normal"]
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    # On a disk that stalls, a window may end before the first operation does: then nothing is compared.
    answered = "synchronous" in [each["facts"].get("setting") for each in report["findings"]]
    assert answered == all(each["trials"][0]["tps"] for each in found)
    assert all(set(each["trials"][0]["latency"]) <= {"replace"} for each in found)
    assert all(each["case"]["load"]["read_ratio"] == 0 for each in found)


@pytest.mark.thorough
def test_presets_compares_every_case_with_the_default(tmp_path: Path) -> None:
    runs = runs_of("presets.toml", tmp_path)
    names = [run["case"]["name"] for run in runs]
    assert names[0] == "default" and len(set(names)) == len(names) == 13
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    # On a disk that stalls, a window may end before the first operation does: that case is not compared.
    measured = [run["case"]["name"] for run in runs if run["trials"][0]["tps"]]
    (answer,) = [each["facts"] for each in report["findings"] if each["facts"].get("setting") == "name"]
    assert len(answer["values"]) == len(measured) - 1


@pytest.mark.thorough
def test_shards_measures_three_layouts(tmp_path: Path) -> None:
    assert [each["case"]["buckets"] for each in runs_of("shards.toml", tmp_path)] == [1, 4, 20]


@pytest.mark.thorough
def test_updates_loses_none_and_only_deferred_meets_busy_snapshot(tmp_path: Path) -> None:
    deferred, immediate = runs_of("updates.toml", tmp_path)
    assert [each["case"]["load"]["begin"] for each in (deferred, immediate)] == ["deferred", "immediate"]
    for each in (deferred, immediate):
        assert "lost updates" in {check["name"] for check in checks(each)}
    assert immediate["trials"][0]["busy_snapshot"] == 0


@pytest.mark.thorough
def test_methods_measures_every_insert_method_with_both_drivers(tmp_path: Path) -> None:
    runs = runs_of("methods.toml", tmp_path)
    measured = {(run["case"]["method"]["name"], run["case"]["driver"]) for run in runs}
    assert measured == {
        (name, driver) for name in ("1b1", "BLK", "BLK/n", "JSON") for driver in ("peewee", "sqlite3")
    }
    assert all(trial["rows"] == 20 for run in runs for trial in run["trials"])


@pytest.mark.thorough
def test_checkpoints_measures_checkpointers_and_a_pinned_reader(tmp_path: Path) -> None:
    found = runs_of("checkpoints.toml", tmp_path)
    checkpointers = [each["case"]["checkpointing"] for each in found]
    assert [spec and (spec["mode"], spec["pinned_reader"]) for spec in checkpointers] == [
        None,
        ("passive", False),
        ("restart", False),
        ("truncate", False),
        ("passive", True),
    ]
    seen = [{series["name"] for series in run["trials"][0]["series"]} for run in found]
    assert [("WAL size" in names, "checkpoints" in names) for names in seen] == [
        (False, False),
        *[(True, True)] * 4,
    ]
    printed = (tmp_path / "printed.txt").read_text(encoding="utf-8")
    assert printed.count("100% replaces; ") == 1
    assert "\n- checkpointer: " in printed
    stuck = next(each for each in found[-1]["trials"][0]["series"] if each["name"].startswith("stuck"))
    assert max(stuck["values"]) >= 3


@pytest.mark.thorough
def test_ci_covers_batches_updates_and_the_full_integrity_check(tmp_path: Path) -> None:
    found = runs_of("ci.toml", tmp_path)
    names = {check["name"] for each in found for check in checks(each)}
    assert {"integrity_check", "last write", "lost updates", "torn transactions"} <= names


@pytest.mark.thorough
def test_keys_compares_three_types_in_two_schemas(tmp_path: Path) -> None:
    found = runs_of("keys.toml", tmp_path)
    assert [(each["case"]["picks"]["schema"], each["case"]["picks"]["id_type"]) for each in found] == [
        (schema, id_type) for schema in ("id-rowid", "pair-rowid") for id_type in ("int", "uuid4", "uuid7")
    ]
    assert {len(each["trials"]) for each in found} == {5}
    assert all(trial["space"]["file_bytes"] > 0 for each in found for trial in each["trials"])


@pytest.mark.thorough
def test_cycles_measures_how_often_a_checkpoint_comes(tmp_path: Path) -> None:
    found = runs_of("cycles.toml", tmp_path)
    frames = [each["case"]["settings"]["wal_autocheckpoint"] for each in found]
    assert frames == [100, 1000, 0, None]
    for each in found:
        names = {series["name"] for series in each["trials"][0]["series"]}
        assert {"statements", "WAL frames"} <= names
        assert ("BEGIN and COMMIT" in names) == (each["case"]["cycling"]["transaction"] != "none")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a report of two cases: the cases with two processes of a saved report."""
    kept = json.loads((ROOT / "reports/linux-1-and-20-files.json").read_text(encoding="utf-8"))
    runs = [each for each in kept["runs"] if each["case"]["concurrency"] == 2]
    path = tmp_path_factory.mktemp("report") / "report.json"
    path.write_text(json.dumps({**kept, "runs": runs, "planned": len(runs)}), encoding="utf-8")
    return path


Script = Callable[..., tuple[int, str, str]]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Script:
    """Run an example's script in this process: return exit code, standard output, standard error."""

    def ran(name: str, *arguments: str) -> tuple[int, str, str]:
        path = str(EXAMPLES / name)
        monkeypatch.setattr(sys, "argv", [path, *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(path, run_name="__main__")
        return (int(ended.value.code or 0), *capsys.readouterr())

    return ran


def changed(report: Path, folder: Path, path: Sequence[str | int], value: Any) -> str:
    """Save a report with one value changed; return its file's name."""
    document = json.loads(report.read_text(encoding="utf-8"))
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (folder / "changed.json").write_text(json.dumps(document), encoding="utf-8")
    return str(folder / "changed.json")


def test_read_report_prints_a_line_for_each_case(report: Path, script: Script) -> None:
    code, printed, _ = script("read_report.py", str(report))
    lines = printed.splitlines()
    assert (code, [line.split()[0] for line in lines]) == (0, ["buckets=1", "buckets=20"])
    assert all("transactions per second" in line and line.endswith("verified: ok") for line in lines)


def test_read_report_shows_a_failed_verdict(report: Path, tmp_path: Path, script: Script) -> None:
    status = ("runs", 1, "trials", 0, "verdict", "checks", 0, "status")
    name = changed(report, tmp_path, status, "failed")
    lines = script("read_report.py", name)[1].splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["ok", "failed"]


def test_read_report_refuses_another_format(report: Path, tmp_path: Path, script: Script) -> None:
    name = changed(report, tmp_path, ("format_version",), "2.0")
    code, _, complaint = script("read_report.py", name)
    assert code == 2
    assert "this script reads 1.x" in complaint


def test_assert_floor_accepts_a_proved_report(report: Path, script: Script) -> None:
    assert script("assert_floor.py", str(report), "--tps", "1", "--p99-ms", "60000") == (0, "", "")


@pytest.mark.parametrize(
    ("path", "value", "options", "complaint"),
    [
        (("runs", 0, "trials", 0, "tps"), 10.0, ["--tps", "11"], "10 TPS, less than 11"),
        (("runs", 0, "trials", 0, "latency", "replace", "p99_ns"), 2e9, ["--p99-ms", "9"], "2,000.0 ms"),
        (("runs", 1, "trials", 0, "verdict", "checks", 0, "status"), "failed", [], "values read is failed"),
        (("runs", 1, "trials", 0, "verdict", "checks", 0, "status"), "skipped", [], "values read is skipped"),
        (("runs", 0, "error"), "worker 2 was killed by signal 9", [], "worker 2 was killed"),
        (("planned",), 3, [], "only 2 of 3 cases"),
    ],
)
def test_assert_floor_fails_with_the_reason(
    report: Path,
    tmp_path: Path,
    script: Script,
    path: Sequence[str | int],
    value: Any,
    options: list[str],
    complaint: str,
) -> None:
    name = changed(report, tmp_path, path, value)
    code, _, said = script("assert_floor.py", name, *options)
    assert code == 1
    assert complaint in said


def settings_tested(folder: Path, expected: int, **changes: str) -> str:
    """Run the example's tests, briefly, with some of its constants changed; return what pytest says."""
    changes["MEASURED"] = '["--duration", "400ms", "--warmup", "100ms", "--repeat", "1"]'
    text = (EXAMPLES / "test_my_settings.py").read_text(encoding="utf-8")
    for name, value in changes.items():
        text, count = re.subn(rf"^{name} = .+$", f"{name} = {value}", text, flags=re.MULTILINE)
        assert count == 1, name
    (folder / "test_my_settings.py").write_text(text, encoding="utf-8")
    words = ["-m", "pytest", "-vv", "-p", "no:cacheprovider", "test_my_settings.py"]
    return run(words, folder, expected).stdout


@pytest.mark.thorough
def test_how_many_buckets_compares_all_layouts(tmp_path: Path) -> None:  # dialect: ok: the example's name
    text, given = (
        (EXAMPLES / "how_many_buckets.py").read_text(encoding="utf-8"),
        'repeat=10, duration="300ms"',
    )
    assert given in text
    script = tmp_path / "how_many_buckets.py"
    script.write_text(text.replace(given, 'repeat=5, duration="50ms"'), encoding="utf-8")
    done = run([str(script), str(tmp_path)], tmp_path)
    script.unlink()
    figures, answers = done.stdout.splitlines()[:5], done.stdout.splitlines()[5:]
    assert re.fullmatch(r"1 bucket, 4 processes: [\d,]+ transactions per second, verified: ok", figures[0])
    assert [line.split()[0] for line in figures] == ["1", "2", "4", "8", "16"]
    # With noise it says that it cannot tell, and with how many passes it could.
    assert any("buckets" in line for line in answers)
    assert list(tmp_path.iterdir()) == []


def test_slowest_writes_shows_the_worst_case_first(script: Script) -> None:
    code, printed, _ = script("slowest_writes.py", str(ROOT / "reports" / "linux-1-and-20-files.json"))
    first, second, *_ = printed.splitlines()
    assert code == 0
    assert re.match(r"\d+ buckets?, \d processes: p99 ", first)
    assert float(first.split()[5]) >= float(second.split()[5])


@pytest.mark.thorough
def test_database_is_locked_meets_each_kind_and_what_avoids_it(tmp_path: Path) -> None:
    _, _, _, *lines = run(
        [str(EXAMPLES / "database_is_locked.py"), str(tmp_path)], tmp_path
    ).stdout.splitlines()
    matches = [re.fullmatch(r".+ +([\d.]+) s  (\w+) after ([\d.]+) s", line) for line in lines]
    answers = [(float(match[1]), match[2], float(match[3])) for match in matches if match]
    assert [(timeout_s, answer) for timeout_s, answer, _ in answers] == [
        (0, "SQLITE_BUSY"),
        (0.2, "SQLITE_BUSY"),
        (5, "done"),
        (5, "SQLITE_BUSY_SNAPSHOT"),
        (5, "SQLITE_BUSY"),
        (5, "done"),
        (5, "SQLITE_BUSY_SNAPSHOT"),
        (0.2, "SQLITE_BUSY"),
        (0.2, "SQLITE_BUSY"),
        (5, "SQLITE_BUSY"),
        (5, "done"),
    ]
    # Of those with a time-out of 5 s nobody waits for so long: who is refused is so at once.
    assert all(after_s < timeout_s for timeout_s, _, after_s in answers if timeout_s == 5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_test_my_settings_passes_if_the_settings_meet_the_limits(tmp_path: Path) -> None:
    # Bounds that a busy machine keeps.
    said = settings_tested(
        tmp_path,
        0,
        LEAST_OF_ONE="0.01",
        LEAST_FAIRNESS="0.2",
        MOST_P99_MS="60_000",
    )
    assert "1 passed" in said


@pytest.mark.thorough
def test_test_my_settings_fails_if_the_settings_miss_a_limit(tmp_path: Path) -> None:
    said = settings_tested(
        tmp_path,
        1,
        LEAST_OF_ONE="1000",
        LEAST_FAIRNESS="1.01",
        MOST_P99_MS="0",
        LOAD='["--verify", "none", "--key-space", "2000"]',
        PROCESSES="2",
    )
    for complaint in ("TPS together", "a process starves", "the p99 of writes is", "is skipped"):
        assert complaint in said


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    """Return a folder with the examples, in which the `sqlite3` program is used."""
    if not shutil.which("sqlite3"):
        pytest.skip("the sqlite3 program is not installed")
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.thorough
def test_tickets_gives_each_number_once(tickets: Path) -> None:
    command, nothing = runs_of("tickets.toml", tickets)
    assert [each["trials"][0]["transactions"] for each in (command, nothing)] == [6, 6]
    names = {check["name"] for check in checks(command)}
    assert {"checks under load", "checks after the load"} <= names


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="it is a POSIX shell's")
def test_next_ticket_gives_a_number_twice(tickets: Path) -> None:
    data = ["--setup", "examples/tickets.sql", "--check", "examples/tickets_checks.sql"]
    words = ["exec", "--alone", "-c", "4", "--repeat", "1", *data, "--", "sh", "examples/next_ticket.sh"]
    failed = run([*PROGRAM[1:], *words], tickets, expected=1)
    told = " ".join(failed.stdout.split())
    assert "no number twice: (" in told
    assert "did not exit with 0" not in told


LONG_LIVED = {"node": ("node", "examples/exec/next_ticket.js"), "go": ("./next_ticket",)}


@pytest.mark.thorough
@pytest.mark.parametrize("language", [name for name in LONG_LIVED if shutil.which(name)])
def test_next_ticket_takes_a_number_for_each_line(language: str, tickets: Path) -> None:
    if language == "go":
        build = ("go", "build", "-o", "next_ticket", "examples/exec/next_ticket.go")
        subprocess.run(build, cwd=tickets, check=True, timeout=TIMEOUT_S)
    assert transactions_done(tickets, "--lines", "--ops", "5", "--", *LONG_LIVED[language]) == 5


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="it is a POSIX shell's")
def test_next_tickets_takes_several_numbers_in_a_command(tickets: Path) -> None:
    words = ("sh", "examples/exec/next_tickets.sh", "{inner}")
    assert transactions_done(tickets, "--alone", "--inner", "5", "--ops", "2", "--", *words) == 10


def transactions_done(tickets: Path, *words: str) -> int:
    """Return how many operations one process did, for which the checks held."""
    data = ["--setup", "examples/tickets.sql", "--check", "examples/tickets_checks.sql"]
    run([*PROGRAM[1:], "exec", "-c", "1", "--repeat", "1", "-o", "report.json", *data, *words], tickets)
    (case,) = json.loads((tickets / "report.json").read_text(encoding="utf-8"))["runs"]
    return int(case["trials"][0]["transactions"])
