"""A/B tests through the command line: made-up slices that decide quickly, and a few real ones."""

import json
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstress.engine.study import Observer
from sqlstress.errors import Interrupted
from sqlstress.report import Report, Trial
from sqlstress.report.case import Case
from sqlstress.statistics.sequential import InterimLook
from sqlstress.studies import slices
from sqlstress.studies.ab import AbStudy
from sqlstress.studies.slices import SliceBench
from tests.ab_report import EXAMPLE, Script, script_of_ratio, trial
from tests.cli.conftest import Cli, Said, saved, valid
from tests.rows import mostly_long
from tests.studies.test_same_code import environment

ROOT = Path(__file__).parents[2]
SHORT = ("--duration", "50ms", "--warmup", "100ms", "--key-space", "200", "-c", "1")
ARMS = ("--a", "--synchronous full", "--b", "--synchronous normal")
PATIENT = ("--max-time", "1h")
"""Enough time for a few pairs on a busy machine."""


class Slices:
    """The requested slices, and a script that measures them."""

    script: Script
    cases: list[tuple[str, Case]]

    def __init__(self) -> None:
        self.script = script_of_ratio(1.0)
        self.cases = []


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Slices:
    """Replace the real slices."""
    fake = Slices()

    def measure(arm: int, case: Case, pair: int) -> Trial:
        fake.cases.append(("AB"[arm], case))
        return fake.script(arm, case, pair)

    class OwnPython(slices.OwnPython):
        @contextmanager
        def opened(self, observer: Observer) -> Iterator[SliceBench]:
            blank = replace(EXAMPLE, runs=(), command=self._session.command)
            yield SliceBench(blank, observer, measure)

    monkeypatch.setattr("sqlstress.studies.ab.OwnPython", OwnPython)
    return fake


@pytest.mark.parametrize(
    ("ratio", "options", "code", "word"),
    [
        (1.0, (), 0, "PASS"),
        (0.8, (), 1, "FAIL"),
        (0.8, ("--max-drop", "30%"), 0, "PASS: no drop of more than 30%"),
        (0.9, ("--max-pairs", "30"), 0, "INCONCLUSIVE: a drop of at least "),
        (0.9, ("--max-pairs", "30", "--strict"), 3, "INCONCLUSIVE"),
        (1.0, ("--max-time", "1s"), 0, "PASS"),
        (1.0, ("--strict",), 0, "PASS"),
        (0.5, ("--metric", "p99"), 1, "FAIL: B is slower: p99"),
    ],
)
def test_exit_code_follows_from_the_verdict(
    cli: Cli, made_up: Slices, ratio: float, options: Sequence[str], code: int, word: str
) -> None:
    made_up.script = script_of_ratio(ratio)
    said = cli("ab", *ARMS, *options)
    assert said.code == code
    assert word in said.text
    assert said.err == "" or (
        code == 1 and len(said.lines) == 1 and said.err.startswith("Error: FAIL: B is slower")
    )


@pytest.mark.thorough
def test_ab_test_ends_after_its_pairs_or_its_time(cli: Cli, made_up: Slices) -> None:
    made_up.script = script_of_ratio(0.9)
    cli("ab", *ARMS, "--max-pairs", "13", "--max-time", "90s", "-o", "ab.json")
    found = saved("ab.json").ab
    assert found and [look.pairs for look in found.looks] == [10, 13]
    assert (found.max_pairs, found.max_time_s, found.order) == (13, 90.0, "drawn")
    assert found.looks[-1].worst and found.looks[-1].seconds is not None

    def slow(arm: int, case: Case, pair: int) -> Trial:
        time.sleep(0.15)
        return trial(pair)

    made_up.script = slow
    said = cli("ab", *ARMS, "--max-time", "1s", "-o", "ab.json", "--strict")
    assert said.code == 3
    assert "INCONCLUSIVE: not enough was measured to show anything" in said.out
    assert len(saved("ab.json").runs[0].trials) <= 4


def test_options_of_an_arm_override_the_common_ones(cli: Cli, made_up: Slices) -> None:
    common = ("--synchronous", "off", "--pragma", "a=1", "--seed", "5", "-c", "2")
    cli("ab", *common, "--a", "--synchronous full --pragma b=2", "--b", "-c 4")
    a, b = (next(case for arm, case in made_up.cases if arm == name) for name in "AB")
    assert (a.settings.synchronous, a.settings.pragmas, a.concurrency, a.seed) == (
        "full",
        (("a", "1"), ("b", "2")),
        2,
        5,
    )
    assert (b.settings.synchronous, b.settings.pragmas, b.concurrency, b.seed) == ("off", (("a", "1"),), 4, 5)


def test_arms_share_the_drawn_seed(cli: Cli, made_up: Slices) -> None:
    for _ in range(2):
        cli("ab", *ARMS)
    seeds = [case.seed for _, case in made_up.cases]
    assert len(set(seeds[:20])) == len(set(seeds[20:])) == 1
    assert seeds[0] != seeds[20]


def test_slices_are_saved_as_they_come_and_all_in_the_end(cli: Cli, made_up: Slices, tmp_path: Path) -> None:
    seen = []

    def script(arm: int, case: Case, pair: int) -> Trial:
        path = tmp_path / "ab.json"
        seen.append(len(json.loads(path.read_text(encoding="utf-8"))["runs"]) if path.exists() else 0)
        return trial(pair)

    made_up.script = script
    assert cli("ab", *ARMS, "-o", "ab.json", "-o", "ab.md", "-o", "ab.csv").code == 0
    assert seen[:2] == [0, 1]  # saving takes longer than these slices, so not every slice is saved
    report = valid("ab.json")
    assert report.ab and report.ab.verdict == "pass"
    assert [(run.arm, len(run.trials)) for run in report.runs] == [("A", 10), ("B", 10)]
    assert report.command == ("sqlstress", "ab", *ARMS, "-o", "ab.json", "-o", "ab.md", "-o", "ab.csv")
    assert "PASS" in (tmp_path / "ab.md").read_text(encoding="utf-8")
    assert (tmp_path / "ab.csv").read_text(encoding="utf-8").count("\n") > 20


def test_interruption_keeps_what_was_measured_and_exits_130(cli: Cli, made_up: Slices) -> None:
    def script(arm: int, case: Case, pair: int) -> Trial:
        if pair == 7:
            raise Interrupted("stopped by SIGINT")
        return trial(pair)

    made_up.script = script
    said = cli("ab", *ARMS, "-o", "ab.json")
    assert (said.code, said.err) == (130, "Stopped after 14 slices; what was measured is in ab.json.\n")
    assert "Undecided: so far TPS" in said.out
    assert [len(run.trials) for run in saved("ab.json").runs] == [7, 7]


FEW_PAIRS = 5
"""A smaller number cannot show anything at 5%."""


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look once, after a few pairs, because real slices are slow."""
    once = (InterimLook(FEW_PAIRS, 0.05),)
    monkeypatch.setattr("sqlstress.studies.ab.AbStudy", lambda cases, test, _: AbStudy(cases, test, once))


@pytest.mark.thorough
@pytest.mark.usefixtures("soon")
def test_real_ab_test_of_synchronous_normal_finds_no_drop(cli: Cli, tmp_path: Path) -> None:
    # A disk that pauses for a moment may leave a short slice empty, and a disk that syncs at no cost has only
    # noise.
    longer = ("--duration", "500ms", "--read-ratio", "0", "--max-drop", "60%")
    said = cli("ab", *ARMS, *SHORT, *longer, *PATIENT, "-o", "ab.json", expected=0)
    assert "synchronous: full and normal" in said.out
    report = saved("ab.json")
    a, b = report.runs
    assert report.ab and [(look.pairs, look.verdict) for look in report.ab.looks] == [(FEW_PAIRS, "pass")]
    assert [trial.effective["synchronous"] for trial in (a.trials[0], b.trials[0])] == ["full", "normal"]
    assert (a.verdict.status, b.verdict.status) == ("ok", "ok")
    assert [path.name for path in tmp_path.iterdir()] == ["ab.json"]


@pytest.mark.thorough
@pytest.mark.usefixtures("soon")
def test_real_drop_between_two_pythons_is_found(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pythons = ("--python-a", sys.executable, "--python-b", sys.executable)
    # No commit waits for a sync: on a busy disk syncs differ by more than the values do.
    load = (*SHORT, *PATIENT, "--key-space", "20", "--read-ratio", "0", "--synchronous", "off")
    said = cli("ab", *pythons, "--b", "--value-size 200000", *load, "-o", "ab.json")
    assert said.code == 1
    assert "FAIL: B is slower: TPS" in said.out
    assert f"A: {sys.executable} (CPython" in said.text
    assert {len(run.trials) for run in saved("ab.json").runs} == {FEW_PAIRS}


def test_two_versions_of_a_script_are_compared_with_a_common_script(cli: Cli, made_up: Slices) -> None:
    for name in ("old.sql", "new.sql", "both.sql"):
        Path(name).write_text("SELECT 1;")
    said = cli("ab", "sql", "both.sql", "--setup", "both.sql", "--a", "old.sql@2", "--b", "new.sql --scale 3")
    assert said.code == 0, said
    scripts = {
        arm: ([(script.name, script.weight) for script in case.spec.scripts], case.spec.scale, case.repeat)
        for arm, case in made_up.cases
    }
    assert scripts == {
        "A": ([("both.sql", 1), ("old.sql", 2)], 1, 1),
        "B": ([("both.sql", 1), ("new.sql", 1)], 3, 1),
    }
    assert "scripts: both.sql; old.sql@2 and both.sql; new.sql" in said.text
    assert "scale: 1 and 3" in said.text
    assert "files" not in said.out


def test_command_of_an_arm_replaces_the_common_command(cli: Cli, made_up: Slices) -> None:
    python = Path(sys.executable).as_posix()
    said = cli("ab", "exec", "--a=", f"--b=-- {python} -c pass", "--", sys.executable, "{n}")
    assert said.code == 0, said
    commands = {arm: case.spec.command for arm, case in made_up.cases}
    assert commands == {"A": (sys.executable, "{n}"), "B": (python, "-c", "pass")}


def failing(share: dict[str, float]) -> Script:
    """Return a script in which B is twice as fast, and shares of the arms' operations fail."""

    def script(arm: int, case: Case, pair: int) -> Trial:
        made = trial(pair, 1.0 + arm)
        failed = share.get("AB"[arm], 0.0)
        return replace(made, failed=round(made.transactions * failed / (1 - failed)))

    return script


def test_failed_operations_are_reported(cli: Cli, made_up: Slices) -> None:
    made_up.script = failing({"B": 0.005})
    said = " ".join(cli("ab", "sql", "--a=-b bank", "--b=-b bank").out.split())
    assert "- In B, 0.5% of the operations failed: the database was locked" in said
    assert "- In A, " not in said
    assert "PASS" in said


@pytest.mark.parametrize("arm", ["A", "B"])
def test_arm_with_too_many_failures_is_not_compared(cli: Cli, made_up: Slices, arm: str) -> None:
    made_up.script = failing({arm: 0.3})
    outputs = [f"ab.{suffix}" for suffix in ("json", "md", "html", "xml")]
    said = cli("ab", *ARMS, "--strict", *(f"-o{name}" for name in outputs))
    assert said.code == 1
    text = f"Not comparable: in {arm}, 30% of the operations failed at 2 processes on 1 bucket, and at"
    assert said.err.startswith(f"Error: {text}") and len(said.lines) == 1
    assert text in said.text
    assert "and at most 1% may (--max-failed): the database was locked for longer than" in said.err
    found = saved("ab.json").ab
    assert found and (found.verdict, found.looks) == ("undecided", ())
    for name in outputs[1:]:
        written = Path(name).read_text(encoding="utf-8")
        assert text in " ".join(written.split())
        assert "is faster" not in written and "+100%" not in written and "Pair by pair" not in written


def test_arm_with_too_many_failures_is_named_after_an_interruption(cli: Cli, made_up: Slices) -> None:
    script = failing({"A": 0.3, "B": 0.2})

    def interrupted(arm: int, case: Case, pair: int) -> Trial:
        if pair == 7:
            raise Interrupted("stopped by SIGINT")
        return script(arm, case, pair)

    made_up.script = interrupted
    said = cli("ab", *ARMS)
    assert said.code == 130
    assert "in A, 30% of the operations failed" in said.text
    assert "in B, 20% of the operations failed" in said.text
    assert "TPS +" not in said.text and "B/A" not in said.text


def test_more_failures_are_allowed_by_an_option(cli: Cli, made_up: Slices) -> None:
    made_up.script = failing({"B": 0.3})
    said = cli("ab", *ARMS, "--max-failed", "40%", expected=0)
    assert "PASS" in said.out and "- In B, 30% of the operations failed" in said.text
    assert {case.max_failed for _, case in made_up.cases} == {0.4}


APP = """import sqlite3, sqlstress, bank

@sqlstress.setup
def setup(path):
    sqlite3.connect(path).execute("CREATE TABLE t (n)")

@sqlstress.connect
def connect(path):
    return sqlite3.connect(path)

@sqlstress.transaction
def read(connection):
    bank.read(connection)
"""
BRIEF = ("--duration", "100ms", "--warmup", "0", "--max-pairs", "10", "--concurrency", "1")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a change, in which the base is checked out; their packages differ."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    # sqlstress itself imports the file once.
    monkeypatch.syspath_prepend(str(tmp_path))
    for folder, loops in ((tmp_path / "base", 1), (tmp_path, 20)):
        (folder / "stress").mkdir(parents=True)
        (folder / "bank").mkdir()
        (folder / "stress" / "load.py").write_text(APP)
        (folder / "bank" / "__init__.py").write_text(
            f"def read(db):\n    for _ in range({loops}): db.execute('SELECT count(*) FROM t').fetchall()\n"
        )
    return tmp_path


@pytest.fixture
def first_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure each arm once by its Python: the modules and files of all later slices are the same."""
    reports: dict[tuple[str, ...], Report] = {}
    run = slices.Python.run

    def run_once(python: slices.Python, words: Sequence[str], *others: Any) -> Report:
        arm = (python.name, *python.positional_words)
        if arm not in reports:
            reports[arm] = run(python, words, *others)
        return reports[arm]

    monkeypatch.setattr(slices.Python, "run", run_once)


def assert_equal_code_refused(said: Said, name: str, package: Path) -> None:
    """Check that a test of equal code was refused, without figures."""
    assert said.code == 4
    assert len(said.lines) == 1 and str(package) in said.err
    assert "there is no valid pair" in said.out
    assert "B/A" not in said.out and "TPS +" not in said.out
    report = saved(name)
    assert report.ab and (report.ab.verdict, report.ab.looks) == ("undecided", ())
    assert [run.trials for run in report.runs] == [(), ()]


@pytest.mark.thorough
@pytest.mark.usefixtures("first_slices")
def test_ab_refuses_to_compare_a_package_with_itself(
    cli: Cli, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(checkout))
    base, change = checkout / "base" / "stress" / "load.py", checkout / "stress" / "load.py"
    pythons = ("--python-a", sys.executable, "--python-b", sys.executable)
    said = cli("ab", "app", "--a", str(base), "--b", str(change), *pythons, *BRIEF, "-o", "ab.json")
    assert_equal_code_refused(said, "ab.json", checkout / "bank" / "__init__.py")
    assert "A and B both import bank from" in said.err
    assert "unset it" in said.err


@pytest.fixture
def pythons(checkout: Path) -> tuple[str, ...]:
    """Return options for two environments, both with the folder of the change installed in place."""
    options: list[str] = []
    for arm in "ab":
        python, packages = environment(checkout / f"env-{arm}")
        here = sysconfig.get_paths()["purelib"]
        (packages / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n", encoding="utf-8")
        (packages / "project.pth").write_text(f"{checkout}\n", encoding="utf-8")
        options += [f"--python-{arm}", python]
    return tuple(options)


@pytest.mark.thorough
@pytest.mark.usefixtures("first_slices")
@pytest.mark.parametrize("name", mostly_long(["load.py", "load_before.py"], ["load_before.py"]))
def test_ab_refuses_an_install_in_place_in_both_environments(
    cli: Cli, checkout: Path, pythons: tuple[str, ...], name: str
) -> None:
    base = (checkout / "base" / "stress" / "load.py").rename(checkout / "base" / "stress" / name)
    change = checkout / "stress" / "load.py"
    said = cli("ab", "app", "--a", str(base), "--b", str(change), *pythons, *BRIEF, "-o", "ab.json")
    assert_equal_code_refused(said, "ab.json", checkout / "bank" / "__init__.py")
    assert (
        "project.pth lets A import from" in said.err
        and f"install {checkout / 'base'} there instead" in said.err
    )
    assert "PYTHONPATH" not in said.err


@pytest.mark.thorough
@pytest.mark.usefixtures("first_slices")
def test_ab_refuses_two_environments_that_load_the_same_files(
    cli: Cli, checkout: Path, pythons: tuple[str, ...]
) -> None:
    said = cli("ab", "app", str(checkout / "stress" / "load.py"), *pythons, *BRIEF, "-o", "ab.json")
    assert_equal_code_refused(said, "ab.json", checkout / "bank" / "__init__.py")
    assert "A and B run the same code" in said.err and "install each version in its own" in said.err


@pytest.mark.thorough
@pytest.mark.usefixtures("soon", "first_slices")
def test_ab_names_the_modules_of_two_environments_that_differ(
    cli: Cli, checkout: Path, pythons: tuple[str, ...]
) -> None:
    (file,) = (checkout / "env-a").rglob("project.pth")
    file.write_text(f"{checkout / 'base'}\n", encoding="utf-8")
    load = str(checkout / "stress" / "load.py")
    said = cli("ab", "app", load, *pythons, *BRIEF, *PATIENT, "--max-drop", "90%")
    assert said.code in (0, 1), said
    assert "A and B differ in files of imported modules: bank." in said.text


@pytest.mark.parametrize("arms", [("--a=--seed 3", "--b=--seed 4"), ("--a=--seed 3", "--b=")])
def test_arms_of_different_seeds_are_refused(cli: Cli, arms: tuple[str, str]) -> None:
    said = cli("ab", *arms, "-c1")
    assert (said.code, said.out) == (2, "") and "Give --seed outside of --a and --b" in said.err
