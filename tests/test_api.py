"""Tests of the Python API, as a program gets it that imports sqlstress."""

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sqlstress
from sqlstress.api import Report, _command, _rename
from sqlstress.report import Check, Verdict, read, write_atomically
from sqlstress.studies.ab import to_words
from tests.crash_report import crash_report, lost_report
from tests.example_report import example_report, failed_report
from tests.pages import ROOT
from tests.show.variants import each_trial

pytestmark = pytest.mark.usefixtures("brief_runs")

PAGE = ROOT / "docs" / "python.md"

SHORT: dict[str, Any] = {"ops": 20, "key_space": 500}
EXAMPLE = Report(example_report())


def test_public_names_are_importable() -> None:
    assert all(getattr(sqlstress, name) for name in sqlstress.__all__)
    assert dir(sqlstress) == sorted(sqlstress.__all__)
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        sqlstress.mesure  # type: ignore[attr-defined]  # noqa: B018


def test_import_of_sqlstress_loads_no_submodule() -> None:
    code = "import sys, sqlstress; print([name for name in sys.modules if name.startswith('sqlstress.')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.thorough
def test_script_needs_no_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "print('once')\n"
        "import sqlstress\n"
        f"report = sqlstress.measure(concurrency=2, **{SHORT!r})\n"
        "print(report.ok, [figure.label for figure in report.figures])\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("once\nTrue ['1 bucket, 2 processes']\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_options_are_those_of_the_command_line(tmp_path: Path) -> None:
    seen: list[sqlstress.Progress] = []
    saved = tmp_path / "report.json"
    report = sqlstress.measure(
        concurrency=[1, 2],
        read_ratio=1,
        driver="dry",
        directory=tmp_path,
        save=saved,
        progress=seen.append,
        **SHORT,
    )
    assert report.ok
    assert [figure.case.concurrency for figure in report.figures] == [1, 2]
    assert {*report.figures[0].latency} == {"get"}
    assert read(saved) == report.document == sqlstress.read(saved).document
    assert seen[-1].done <= seen[-1].total
    assert report.document.command[:3] == ("sqlstress.measure", "kv", "concurrency=[1, 2]")


def test_report_that_cannot_be_saved_is_still_returned(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"the report is not saved: cannot write.*Choose another file\.$"):
        report = sqlstress.measure(
            concurrency=1, driver="dry", directory=tmp_path, save=tmp_path / "no" / "r.json", **SHORT
        )
    assert report.ok


def test_experiment_with_its_own_study_reports_its_results(tmp_path: Path) -> None:
    # A seed of which no round kills while the files are opened, when nothing need be acknowledged.
    report = sqlstress.measure("crash", rounds=2, concurrency=1, seed=2, directory=tmp_path)
    assert report.ok, report
    assert report.results["crash"].rounds == 2


@pytest.mark.thorough
def test_plan_is_measured(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[[case]]\nworkload = "kv"\nconcurrency = 1\nduration = "50ms"\ndriver = "dry"\nkey-space = 100\n',
        encoding="utf-8",
    )
    assert sqlstress.measure(plan, directory=tmp_path).ok
    assert sqlstress.measure(str(plan), directory=tmp_path).ok
    with pytest.raises(sqlstress.UsageError, match="Leave out concurrency"):
        sqlstress.measure(plan, concurrency=1)


@pytest.mark.parametrize(
    ("what", "options", "told"),
    [
        ("metods", {}, "no such experiment: 'metods'. Did you mean methods?"),
        ("kv", {"concurency": 2}, "concurency is not an option of kv. Did you mean concurrency?"),
        (
            "kv",
            {"busy": "fair"},
            "busy was removed in 0.2.0: only SQLite's busy handler waits for locks. Leave it out.",
        ),
        ("kv", {"concurrency": 0}, "concurrency: 0 is not within 1-1024."),
        ("kv", {"max_faild": 0}, "max_faild is not an option of kv. Did you mean max_failed?"),
        ("kv", {"dir": "."}, "dir is not a parameter. Did you mean directory?"),
        ("keys", {"users": "many"}, "users: 'many' is not a whole number"),
        ("keys", {"schema": "id-rowi"}, "Did you mean id-rowid"),
        ("hunt", {}, "measure() does not support hunt. Use sqlstress.hunt()."),
        ("watch", {"file": "app.db"}, "measure() does not support watch."),
        ("nowhere.toml", {}, "cannot read the plan"),
        ("kv", {"directory": "/does/not/exist"}, "No such file or directory. Choose another directory."),
        ("app", {}, 'app needs a Python file. Give file="bank.py".'),
        ("app", {"file": ""}, "file: a name must not be empty."),
        ("exec", {}, 'exec needs a command. Give command=["python", "work.py"].'),
        ("sql", {}, 'Give script=["transfer.sql"] or builtin=["bank"].'),
    ],
)
def test_invalid_options_raise_a_usage_error_without_dashes(
    what: str, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(sqlstress.UsageError) as error:
        sqlstress.measure(what, **options)
    assert told in str(error.value)
    assert "--" not in str(error.value)


@pytest.mark.parametrize("function", ["measure", "limit", "ab", "hunt"])
def test_environment_error_names_the_parameter(function: str, tmp_path: Path) -> None:
    needed: dict[str, dict[str, Any]] = {"limit": {"p99": "10ms"}, "ab": {"a": {}, "b": {}}}
    (file := tmp_path / "file").touch()
    with pytest.raises(sqlstress.SqlstressError, match=r"Choose another directory\.$"):
        getattr(sqlstress, function)(**needed.get(function, {}), directory=file)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ('workload = "kv"\nkey-space = 10\nbatch = 20', "batch is larger than key-space"),
        ('workload = "kv"\nkey-spice = 10', "Did you mean key-space?"),
        ('workload = "app"', 'Give file="bank.py".'),
    ],
)
def test_error_of_a_plan_names_its_keys(case: str, said: str, tmp_path: Path) -> None:
    (plan := tmp_path / "plan.toml").write_text(f"[[case]]\n{case}\n", encoding="utf-8")
    with pytest.raises(sqlstress.UsageError, match=re.escape(said)) as error:
        sqlstress.measure(plan)
    assert "--" not in str(error.value)


def test_only_our_options_are_renamed_in_an_error() -> None:
    assert _rename("give a longer --key-space: pip install --no-cache-dir, '--not-ours'") == (
        "give a longer key_space: pip install --no-cache-dir, '--not-ours'"
    )


def test_problems_name_parameters() -> None:
    runs = tuple(replace(run, trials=(), error="give a longer --warmup") for run in EXAMPLE.runs[:1])
    failed = Report(replace(EXAMPLE.document, runs=runs))
    (problem,) = failed.problems
    assert "could not be measured: give a longer warmup" in problem
    assert [figure.error for figure in failed.figures] == ["give a longer warmup"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"busy_timeout": 5000}, "write 5000ms or 5000s"),
        ({"duration": 2000}, "write 2000ms or 2000s"),
        ({"read_ratio": 90}, "write 90% or 0.9"),
        ({"save": "-"}, "save must be a file name"),
    ],
    ids=str,
)
def test_ambiguous_option_values_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(sqlstress.UsageError, match=told):
        sqlstress.measure(**options)


def test_json_file_without_a_report_is_refused(tmp_path: Path) -> None:
    write_atomically(tmp_path / "none.json", "{}")
    with pytest.raises(sqlstress.UsageError, match=r"none\.json"):
        sqlstress.read(tmp_path / "none.json")


def test_report_ok_agrees_with_the_exit_code() -> None:
    lost = Verdict((Check("last write", "failed", 1, 1, ("key 1",)),))
    bad = Report(each_trial(lambda trial: replace(trial, verdict=lost)))
    stopped = Report(replace(example_report(), interrupted=True))
    expected = [(EXAMPLE, 0), (bad, 1), (Report(failed_report()), 1), (stopped, 130)]
    expected += [(Report(crash_report()), 0), (Report(lost_report()), 1)]
    assert [(report.ok, report.exit_code) for report, _ in expected] == [
        (code == 0, code) for _, code in expected
    ]
    assert [bool(report.problems) for report, _ in expected] == [code != 0 for _, code in expected]
    assert "key 1" in bad.problems[0]


def test_figures_and_findings_are_those_that_are_shown() -> None:
    text = EXAMPLE.text()
    assert len(EXAMPLE.figures) == len(EXAMPLE.runs)
    for figure in EXAMPLE.figures:
        assert figure.tps is not None
        assert f"{figure.tps:,.0f}" in text
        assert (figure.verified, figure.counts) == ("ok", "transactions")
    flat = " ".join(text.split())
    assert EXAMPLE.findings
    assert all(" ".join(finding.text.split()) in flat for finding in EXAMPLE.findings)


def test_report_is_saved_in_every_format(tmp_path: Path) -> None:
    for name in ("r.json", "r.csv", "r.md", "r.html", "r.xml"):
        EXAMPLE.save(tmp_path / name)
    EXAMPLE.save(tmp_path / "metrics", "bmf")
    assert sqlstress.read(tmp_path / "r.json").document == EXAMPLE.document
    assert len([*tmp_path.iterdir()]) == 6
    with pytest.raises(sqlstress.UsageError, match="unknown format 'pdf'"):
        EXAMPLE.save(tmp_path / "r.pdf")


def test_documentation_names_the_public_names() -> None:
    page = PAGE.read_text(encoding="utf-8")
    public = [name for name in dir(Report) if not name.startswith("_")] + ["document"]
    assert [name for name in public if f"`{name}" not in page] == []
    assert [name for name in sqlstress.Figure.__slots__ if f"`{name}`" not in page] == []


@pytest.mark.thorough
def test_code_of_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    short = {
        "500ms": "50ms",
        "200ms": "50ms",
        '"1-4"': '"1-2"',
        'max_time="30s"': 'max_time="2s", duration="50ms", warmup=0',
    }
    found = re.findall(r"```python\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert len(found) == 3
    for code in found:
        for long, brief in short.items():
            code = code.replace(long, brief)
        exec(code, {})


@pytest.mark.thorough
def test_ab_alternates_two_settings_until_the_slower_is_known(tmp_path: Path) -> None:
    held: dict[str, Any] = {"read_ratio": 0, "concurrency": 2, "max_pairs": 10, "max_time": "20s"}
    report = sqlstress.ab(
        a={"driver": "dry"}, b={"driver": "sqlite3"}, directory=tmp_path, loop="python", **held, **SHORT
    )
    assert report.document.ab and report.verdict == report.document.ab.verdict == "fail"
    assert report.ratio is not None and report.ratio < 0.9
    assert report.exit_code == 1 and not [*tmp_path.iterdir()]
    assert [arm.options for arm in report.document.ab.arms] == [("--driver", "dry"), ("--driver", "sqlite3")]
    assert EXAMPLE.verdict is None and EXAMPLE.ratio is None


def test_arm_options_are_kept_as_words_without_the_password() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    own = {"driver": "psycopg", "dsn": "postgresql://me:secret@db/mine", "buckets": 4, "where": True}
    words = to_words("kv", own)
    assert words == [
        "--driver", "psycopg", "--dsn", "postgresql://me:secret@db/mine", "--buckets", "4", "--where"
    ]  # fmt: skip
    assert _command("ab", "kv", {"a": shlex.join(words)})[2:] == (
        "a=--driver psycopg --dsn me@db:5432/mine --buckets 4 --where",
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"what": "keys"}, "'keys' is not available here"),
        ({"b": {"repeat": 3}}, r"repeat is not an option of ab\(\) in Python"),
        ({"python_a": "python3.12"}, r"python-a is not an option of ab\(\) in Python"),
        ({"a": {"sinchronous": "full"}}, "Did you mean synchronous"),
        ({"a": {"concurrency": "1-2"}}, "A has 2 cases and B has 1"),
        ({"max_drop": "ten"}, "max_drop"),
    ],
)
def test_arms_that_cannot_be_compared_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(sqlstress.UsageError, match=said):
        sqlstress.ab(**{"a": {}, "b": {}, **given})
