"""Targets of other packages are found; the example, LMDB, is installed, measured and verified."""

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
def clear_cache_of_installed() -> None:
    target.installed.cache_clear()


def install_package(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> None:
    """Install a package that declares a driver."""
    (folder / "other.py").write_text(code)
    info_folder = folder / "other-1.0.dist-info"
    info_folder.mkdir()
    (info_folder / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info_folder / "entry_points.txt").write_text(f"[{target.ENTRY_POINT_GROUP}]\n{name} = other:OTHER\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "other", raising=False)


def test_driver_of_another_package_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from sqlstress.target import DriverInfo\nOTHER = DriverInfo('other', '', 'made up', keyvalue=True)"
    )
    install_package(tmp_path, monkeypatch, "other", code)
    assert target.driver_info("other").words == "made up"
    assert list(target.keyvalue_drivers())[-1] == "other"
    assert "other" in target.target_names(target.keyvalue_drivers())
    with pytest.raises(KeyError):
        target.driver_info("another")


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("other", "raise RuntimeError('out of order')", "RuntimeError: out of order"),
        ("other", "OTHER = 7", "other:OTHER is no sqlstress.target.DriverInfo"),
        (
            "apsw",
            "from sqlstress.target import DriverInfo\nOTHER = DriverInfo('other', '', '')",
            "sqlstress has a driver of that name",
        ),
    ],
)
def test_unusable_driver_is_left_out_and_the_doctor_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, name: str, code: str, reason: str
) -> None:
    install_package(tmp_path, monkeypatch, name, code)
    assert target.drivers() == target.DRIVERS
    assert f"{name}: not usable: {reason}" in " ".join(cli("doctor").out.split())


def test_target_that_cannot_be_imported_is_reported_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    info = "DriverInfo('other', '', '', keyvalue=True, package='nowhere')"
    code = f"from sqlstress.target import DriverInfo\nOTHER = {info}"
    install_package(tmp_path, monkeypatch, "other", code)
    problem = "cannot import nowhere: No module named 'nowhere'"
    assert file_patterns()
    assert f"other: {problem}" in " ".join(cli("doctor").out.split())
    with pytest.raises(EnvironmentFailure, match=problem):
        target_of("other")


@pytest.mark.thorough
def test_lmdb_is_installed_and_passes_its_tests_and_the_contract(tmp_path: Path) -> None:
    pytest.importorskip("lmdb")
    # pip leaves its build results in the source folder.
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for path in (EXAMPLE / "pyproject.toml", *(EXAMPLE / "sqlstress_lmdb").glob("*.py")):
        there = source / path.relative_to(EXAMPLE)
        there.parent.mkdir(exist_ok=True)
        there.write_bytes(path.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(source)]
    subprocess.run(pip, check=True)
    options = ["examples/lmdb/tests", "tests/targets/test_place.py", "-k", "lmdb", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-m", "not long", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "skipped" not in done.stdout, done.stdout[-4000:] + done.stderr[-4000:]
