"""A target of another package is found; the example, LMDB, is installed, measured and proved."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sqlstress import target
from sqlstress.errors import EnvironmentFailure
from sqlstress.targets import file_patterns, target_of
from tests.cli.conftest import Cli, cli
from tests.pages import ROOT

__all__ = ["cli"]
EXAMPLE = ROOT / "examples" / "lmdb"


@pytest.fixture(autouse=True)
def looked_at_anew() -> None:
    target.installed.cache_clear()


def bring(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> None:
    """Have a package installed that names a driver."""
    (folder / "other.py").write_text(code)
    made = folder / "other-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text(f"[{target.GROUP}]\n{name} = other:OTHER\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "other", raising=False)


def test_a_driver_that_a_package_brings_can_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "from sqlstress.target import Known\nOTHER = Known('other', '', 'made up', keyvalue=True)"
    bring(tmp_path, monkeypatch, "other", code)
    assert target.known_as("other").words == "made up"
    assert list(target.for_keyvalue())[-1] == "other"
    assert "other" in target.target_names(target.for_keyvalue())
    with pytest.raises(KeyError):
        target.known_as("another")


@pytest.mark.parametrize(
    ("name", "code", "why"),
    [
        ("other", "raise RuntimeError('out of order')", "RuntimeError: out of order"),
        ("other", "OTHER = 7", "other:OTHER is no sqlstress.target.Known"),
        (
            "apsw",
            "from sqlstress.target import Known\nOTHER = Known('other', '', '')",
            "sqlstress has a driver of that name",
        ),
    ],
)
def test_one_that_can_not_be_used_is_left_out_and_the_doctor_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, name: str, code: str, why: str
) -> None:
    bring(tmp_path, monkeypatch, name, code)
    assert target.drivers() == target.DRIVERS
    assert f"{name}: not usable: {why}" in " ".join(cli("doctor").out.split())


def test_a_target_that_can_not_be_imported_stops_nobody_else_and_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    code = (
        "from sqlstress.target import Known\nOTHER = Known('other', '', '', keyvalue=True, package='nowhere')"
    )
    bring(tmp_path, monkeypatch, "other", code)
    problem = "cannot import nowhere: No module named 'nowhere'"
    assert file_patterns()
    assert f"other: {problem}" in " ".join(cli("doctor").out.split())
    with pytest.raises(EnvironmentFailure, match=problem):
        target_of("other")


@pytest.mark.thorough
def test_lmdb_is_installed_and_passes_its_tests_and_the_contract(tmp_path: Path) -> None:
    pytest.importorskip("lmdb")
    # What pip builds it leaves in the folder that it builds from.
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for path in (EXAMPLE / "pyproject.toml", *(EXAMPLE / "sqlstress_lmdb").glob("*.py")):
        there = source / path.relative_to(EXAMPLE)
        there.parent.mkdir(exist_ok=True)
        there.write_bytes(path.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(source)]
    subprocess.run(pip, check=True)
    words = ["examples/lmdb/tests", "tests/targets/test_place.py", "-k", "lmdb", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-m", "not long", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "skipped" not in done.stdout, done.stdout[-4000:] + done.stderr[-4000:]
