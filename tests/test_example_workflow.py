"""Tests of our workflows, and of the example: its structure, its commands, its effect on two reports."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqlstress.cli.commands import summaries
from sqlstress.plan import from_toml
from sqlstress.report import from_json, to_json
from tests.example_report import example_report
from tests.pages import ROOT
from tests.reference import check_command_line
from tests.test_examples import EXAMPLES, run

WORKFLOW = EXAMPLES / "ci" / "github-actions.yml"
OWN = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
posix = pytest.mark.skipif(sys.platform == "win32", reason="what GitHub has there is not here: a POSIX shell")
STEP = {"name", "uses", "with", "run", "if", "id", "env", "shell"}


@cache
def workflow() -> dict[str, Any]:
    return loaded(WORKFLOW)


def loaded(path: Path) -> dict[str, Any]:
    """Return a workflow as YAML 1.2 would have it: PyYAML takes the key `on` for a boolean."""
    text = re.sub(r"^on:", '"on":', path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def steps() -> Iterator[dict[str, Any]]:
    for job in workflow()["jobs"].values():
        yield from job["steps"]


def commands() -> Iterator[list[str]]:
    """Yield the words of each command of ours in a step."""
    for step in steps():
        for line in step.get("run", "").replace("\\\n", " ").splitlines():
            if not re.match(r"\s*(sqlstress |env .* -m sqlstress )", line):
                continue
            words = shlex.split(line.replace("$GATE", workflow()["env"]["GATE"]))
            yield words[words.index("sqlstress") + 1 :]


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed")
@pytest.mark.parametrize("path", [WORKFLOW, *OWN], ids=lambda path: path.name)
def test_actionlint_finds_nothing(path: Path) -> None:
    done = subprocess.run(["actionlint", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_workflow_has_the_parts_that_github_requires() -> None:
    assert {"name", "on", "jobs"} <= workflow().keys() <= {"name", "on", "permissions", "env", "jobs"}
    for job in workflow()["jobs"].values():
        assert {"runs-on", "steps", "timeout-minutes"} <= job.keys()
        assert set(job.get("needs", "stress").split()) <= workflow()["jobs"].keys()
    for step in steps():
        assert step.keys() <= STEP
        assert ("uses" in step) != ("run" in step)
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/none@v1"))


def test_workflow_runs_on_three_systems_and_continues_after_a_failure() -> None:
    strategy = workflow()["jobs"]["stress"]["strategy"]
    assert strategy["matrix"]["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert strategy["fail-fast"] is False
    assert workflow()["jobs"]["compare"]["if"] == "always()"


def test_all_workflows_use_one_version_of_an_action() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (WORKFLOW, *OWN)]
    used = {tuple(name.split("@")) for text in texts for name in re.findall(r"uses: (\S+)", text)}
    assert len(used) == len({name for name, _ in used})
    assert all(re.fullmatch(r"v\d+(\.\d+)*", version) for _, version in used)


def test_only_the_publish_job_has_an_identity_token_and_only_for_tags() -> None:
    release = loaded(ROOT / ".github" / "workflows" / "release.yml")
    assert release["permissions"] == {"contents": "read"}
    allowed = {name: job["permissions"] for name, job in release["jobs"].items() if "permissions" in job}
    assert allowed == {"publish": {"id-token": "write"}}
    publish = release["jobs"]["publish"]
    assert {*publish["needs"]} == release["jobs"].keys() - {"publish"}
    assert "github.ref_type == 'tag'" in publish["if"]


@pytest.mark.parametrize("words", list(commands()), ids=lambda words: words[0])
def test_workflow_commands_and_their_options_exist(words: list[str]) -> None:
    check_command_line(words[0], words[1:])


def test_workflow_runs_a_plan_a_gate_and_a_comparison() -> None:
    used = [words[0] for words in commands()]
    assert used == ["doctor", "run", "ab", "compare", "report"]
    assert set(used) <= set(summaries())
    assert from_toml(EXAMPLES / "ci.toml")
    assert workflow()["env"]["PLAN"].endswith("/ci.toml")


def test_gate_finds_a_drop_of_a_tenth_and_does_not_pass_if_unsure() -> None:
    gate = workflow()["env"]["GATE"].split()
    # docs/ab.md: the allowed drop is half of the drop that is found.
    assert float(gate[gate.index("--max-drop") + 1].removesuffix("%")) <= 5
    assert "--strict" in gate


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder as the gate finds it, and environments in which nothing is left to install."""
    for branch in (tmp_path, tmp_path / "base"):
        (branch / "stress").mkdir(parents=True)
        (branch / "requirements.txt").write_text("", encoding="utf-8")
        shutil.copy(EXAMPLES / "app" / "bank.py", branch / "stress" / "bank.py")
    here = sysconfig.get_paths()["purelib"]
    for side in ("env-a", "env-b"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", side], cwd=tmp_path, check=True)
        (folder,) = (tmp_path / side).glob("lib/python*/site-packages")
        # What the workflow installs, and pip, is there already.
        (folder / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n", encoding="utf-8")
    return tmp_path


def gated(folder: Path, gate: str) -> subprocess.CompletedProcess[str]:
    """Run the step that compares a change with its target branch, as GitHub would."""
    (script,) = (step["run"] for step in steps() if step.get("name") == "Is the change as fast?")
    create = 'python -m venv "env-$side"\n'
    assert create in script
    # The environments exist; pip, which this line would install, takes much of the test's time.
    script = script.replace(create, "true\n")
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    given = {"APP": "stress/bank.py", "SQLSTRESS": "sqlstress", "RUNNER_OS": "Linux", "GATE": gate}
    given["GITHUB_STEP_SUMMARY"] = str(folder / "summary.md")
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": places, **given},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
@posix
def test_gate_compares_with_the_target_branch_and_fails_if_unsure(checkout: Path) -> None:
    at_once = "--concurrency 1 --duration 200ms --max-time 1s --max-drop 5% --strict"
    assert gated(checkout, at_once).returncode == 3
    report = from_json((checkout / "ab.json").read_text(encoding="utf-8"))
    assert [run_of_arm.case.spec.file for run_of_arm in report.runs] == [
        "base/stress/bank.py",
        "stress/bank.py",
    ]
    # Wrong data fails before any speed is known; that a drop is found is tested with `ab` itself.
    app = checkout / "stress" / "bank.py"
    right = app.read_text(encoding="utf-8")
    app.write_text(right.replace("balance + change", "balance + abs(change)"), encoding="utf-8")
    assert gated(checkout, at_once).returncode == 1
    (checkout / "base" / "stress" / "bank.py").unlink()
    done = gated(checkout, at_once)
    assert done.returncode == 0 and "::warning::stress/bank.py is not on the target branch" in done.stdout


SLOW = "import time\n\n\ndef pause() -> None:\n    time.sleep({})\n"


@pytest.mark.thorough
@posix
def test_gate_measures_the_package_of_each_branch(checkout: Path) -> None:
    for folder, pause_s in ((checkout / "base", 0), (checkout, 0.02)):
        (folder / "mybank").mkdir()
        (folder / "mybank" / "__init__.py").write_text(SLOW.format(pause_s), encoding="utf-8")
        app = folder / "stress" / "bank.py"
        text = app.read_text(encoding="utf-8")
        begin = '    connection.execute("BEGIN IMMEDIATE")\n'
        assert begin in text
        text = text.replace(begin, f"    mybank.pause()\n{begin}")
        app.write_text(text.replace("import random\n", "import mybank\nimport random\n", 1), encoding="utf-8")
    # Whether the time is enough for a verdict is no matter here: `ab` itself is tested with real drops.
    done = gated(checkout, "--concurrency 1 --duration 100ms --warmup 0 --max-drop 5% --strict --max-time 1s")
    report = from_json((checkout / "ab.json").read_text(encoding="utf-8"))
    files = [Path(run.trials[0].modules["mybank"]) for run in report.runs]
    home = checkout.resolve()
    assert files == [home / "base" / "mybank" / "__init__.py", home / "mybank" / "__init__.py"]
    assert done.returncode in (1, 3), done.stdout + done.stderr


@pytest.mark.thorough
def test_last_job_joins_the_reports_of_the_systems(tmp_path: Path) -> None:
    for system in ("ubuntu-latest", "macos-latest"):
        folder = tmp_path / "systems" / system
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(to_json(example_report()), encoding="utf-8")
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("systems/*/report.json"))
    for words in commands():
        if words[0] in ("compare", "report"):
            given = [name for word in words for name in (found if "*" in word else [word])]
            run(["-m", "sqlstress", *given], tmp_path)
    assert "macos-latest" in (tmp_path / "compare.md").read_text(encoding="utf-8")
    assert "Ratios are relative to A" in (tmp_path / "systems.html").read_text(encoding="utf-8")
