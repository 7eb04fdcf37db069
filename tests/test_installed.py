"""Tests of the source distribution and the wheel, each in an empty environment, as users install them."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sqlstress.report import Report, read
from tests.pages import ROOT
from tests.test_docs import MAIN_COMMAND, SHORT
from tests.windows.installed import copied

TIMEOUT_S = 300
WITHOUT_COMPILER = {"CC": "false"}
posix = pytest.mark.skipif(sys.platform == "win32", reason="no compiler is named by CC there")
TRIED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"][
    "test-command"
]
"""Command with which a release tests each wheel."""


def done(*words: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command without Python's environment variables; return its standard output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept |= {"COLUMNS": "80", **environment}
    found = subprocess.run(words, cwd=cwd, env=kept, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert found.returncode == 0, f"{words}: {found.stdout}{found.stderr}"
    return found.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution from the files that are in the repository."""
    folder = tmp_path_factory.mktemp("sdist")
    done(sys.executable, "-m", "build", "--sdist", "--outdir", folder, copied(folder / "copy"), cwd=folder)
    (built,) = folder.glob("sqlstress-*.tar.gz")
    return built


def pip(environment: Path, *words: str | Path, **variables: str) -> None:
    done(
        sys.executable, "-m", "pip", "--python", environment / "bin" / "python", "--quiet",
        "--disable-pip-version-check", *words, cwd=environment, **variables,
    )  # fmt: skip


def empty_environment(folder: Path) -> Path:
    # Installing pip into it would take longer than installing sqlstress.
    done(sys.executable, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    return folder / "env"


def ran(environment: Path, command: str, folder: Path) -> tuple[str, Report]:
    """Run our installed command; return its output and its report."""
    program, *words = shlex.split(command)
    printed = done(environment / "bin" / program, *words, "-o", "report.json", cwd=folder)
    return printed, read(folder / "report.json")


def linked(environment: Path) -> list[str]:
    """Return the link targets of the package's description; a package index has no local files for them."""
    code = "from importlib.metadata import metadata; print(metadata('sqlstress').get_payload())"
    description = done(environment / "bin" / "python", "-c", code, cwd=environment)
    assert "sqlstress --concurrency" in description
    return re.findall(r"\]\(([^)]*)\)", description)


def loops(report: Report) -> set[str]:
    return {run.case.spec.loop for run in report.runs}


def test_release_runs_the_readme_command_with_each_wheel() -> None:
    assert f"{MAIN_COMMAND} {SHORT} --loop native" == TRIED


@pytest.mark.thorough
@posix
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_wheel_serves_all_pythons_and_runs_the_native_loop(sdist: Path, tmp_path: Path) -> None:
    environment = empty_environment(tmp_path)
    pip(environment, "wheel", "--no-deps", "--wheel-dir", tmp_path, sdist)
    (wheel,) = tmp_path.glob("sqlstress-*.whl")
    assert wheel.stem.split("-")[2:4] == ["cp311", "abi3"]
    pip(environment, "install", "--no-compile", wheel)
    assert [link for link in linked(environment) if not link.startswith("https://")] == []
    printed, report = ran(environment, TRIED, tmp_path)
    assert (loops(report), len(report.runs)) == ({"native"}, 2)
    assert all(run.verdict.status == "ok" for run in report.runs)
    assert "Python loop" not in " ".join(printed.split())


@pytest.mark.thorough
@posix
def test_install_without_a_c_compiler_works_and_names_the_remedy(sdist: Path, tmp_path: Path) -> None:
    environment = empty_environment(tmp_path)
    pip(environment, "install", "--no-compile", "--no-cache-dir", sdist, **WITHOUT_COMPILER)
    printed, report = ran(environment, f"{MAIN_COMMAND} {SHORT}", tmp_path)
    assert loops(report) == {"python"}
    assert "python-loop" in {warning.code for warning in report.environment.warnings}
    said = " ".join(printed.split())
    assert "the C extension was not built" in said
    assert "install a C compiler" in said and "--force-reinstall --no-cache-dir" in said
