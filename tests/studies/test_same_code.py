"""Detection of code that both arms of an A/B test share although it should differ."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from sqlstress.studies.same_code import ArmCode, same_environment, same_module
from sqlstress.user_work.loading import imported_modules


@pytest.fixture(autouse=True)
def _no_python_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the folder of a change that has a checkout of the base in it; their packages differ."""
    folder = tmp_path.resolve() / "project"
    for version, checkout in enumerate((folder / "base", folder)):
        (checkout / "stress").mkdir(parents=True)
        (checkout / "stress" / "load.py").write_text("import bank\n")
        (checkout / "bank").mkdir()
        (checkout / "bank" / "__init__.py").write_text("from bank import core\n")
        (checkout / "bank" / "core.py").write_text(f"VERSION = {version}\n")
    return folder


def environment(folder: Path) -> tuple[str, Path]:
    """Create a virtual environment; return its interpreter and its folder of packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    places = {"base": str(folder), "platbase": str(folder)}
    scripts, packages = (sysconfig.get_path(name, "venv", places) for name in ("scripts", "purelib"))
    return str(Path(scripts) / ("python.exe" if sys.platform == "win32" else "python")), Path(packages)


def side(
    name: str, file: Path, package: Path | None, python: str | None = None, module: str = "bank"
) -> ArmCode:
    """Return an arm that loaded this package, or none."""
    modules = {module: str(package / "__init__.py")} if package else {}
    return ArmCode(name, python, str(file), modules)


def arms(project: Path, a: Path, b: Path, *pythons: str) -> tuple[ArmCode, ArmCode]:
    """Return the arms of base and change that loaded these packages."""
    python_a, python_b = pythons or (None, None)
    files = project / "base" / "stress" / "load.py", project / "stress" / "load.py"
    return side("A", files[0], a, python_a), side("B", files[1], b, python_b)


def test_arms_with_their_own_packages_are_compared(project: Path) -> None:
    assert same_module(*arms(project, project / "base" / "bank", project / "bank")) is None


def test_shared_package_that_does_not_differ_is_allowed(project: Path) -> None:
    (project / "base" / "bank" / "core.py").write_text("VERSION = 1\n")
    assert same_module(*arms(project, project / "bank", project / "bank")) is None


def test_shared_module_by_python_path_names_the_entry(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(project))
    error = same_module(*arms(project, project / "bank", project / "bank"))
    assert error == (
        f"A and B both import bank from {project / 'bank' / '__init__.py'}, but "
        f"{project / 'base' / 'bank' / 'core.py'} differs, so the change would be compared with itself. "
        f"PYTHONPATH contains {project}: unset it, and install each folder in the environment of its arm "
        "(--python-a and --python-b)."
    )


FINDER = "MAPPING: dict[str, str] = {{'bank': {!r}}}\n"


@pytest.mark.parametrize("file", ["project.pth", "__editable___bank_0_1_finder.py"])
def test_shared_module_by_an_editable_install_names_its_file(
    project: Path, tmp_path: Path, file: str
) -> None:
    (python_a, packages), (python_b, _) = environment(tmp_path / "a"), environment(tmp_path / "b")
    text = f"{project}\n" if file.endswith(".pth") else FINDER.format(str(project / "bank"))
    (packages / file).write_text(text)
    error = same_module(*arms(project, project / "bank", project / "bank", python_a, python_b))
    assert error and error.endswith(
        f"{packages / file} lets A import from {project}: install {project / 'base'} there "
        "instead. In a requirements file, -e . means the current folder."
    )
    assert "PYTHONPATH" not in error


def test_shared_module_of_the_base_blames_the_environment_of_the_change(
    project: Path, tmp_path: Path
) -> None:
    python_b, packages = environment(tmp_path / "b")
    (packages / "old.pth").write_text(f"{project / 'base'}\n")
    shared = project / "base" / "bank"
    error = same_module(*arms(project, shared, shared, sys.executable, python_b))
    assert error and f"lets B import from {project / 'base'}: install {project} there instead" in error


def test_environment_for_both_arms_is_no_remedy(project: Path, tmp_path: Path) -> None:
    python, packages = environment(tmp_path / "a")
    (packages / "project.pth").write_text(f"{project}\n")
    error = same_module(*arms(project, project / "bank", project / "bank", python, python))
    assert error and f"lets both import from {project}: install each folder in the environment" in error


def test_shared_module_in_the_current_folder_is_explained(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    error = same_module(*arms(project, project / "bank", project / "bank"))
    assert error and f"Python searches the current folder, {project}: install each" in error


def test_equal_copies_of_a_package_that_differs_are_refused(project: Path, tmp_path: Path) -> None:
    copies = [tmp_path / arm / "site-packages" / "bank" for arm in "ab"]
    for copy in copies:
        copy.mkdir(parents=True)
        for name in ("__init__.py", "core.py"):
            (copy / name).write_bytes((project / "bank" / name).read_bytes())
    error = same_module(*arms(project, copies[0], copies[1]))
    assert error and f"A imports bank from {copies[0] / '__init__.py'} and B from" in error
    assert f"Install {project / 'base'} in the environment of A: in a requirements file, . means" in error
    for copy in copies:
        (copy / "core.py").write_text("VERSION = -1\n")
    error = same_module(*arms(project, copies[0], copies[1]))
    assert error and "To compare, install each folder in the environment of its arm" in error
    # An older release in both environments does not matter if the folders do not differ.
    (project / "base" / "bank" / "core.py").write_text("VERSION = 1\n")
    assert same_module(*arms(project, copies[0], copies[1])) is None
    # Tests within the package are not installed, and a change of them is no other version.
    (project / "bank" / "test_core.py").write_text("")
    assert same_module(*arms(project, copies[0], copies[1])) is None


@pytest.mark.parametrize("names", [("load.py", "load2.py"), ("load.py", "load.py")])
def test_packages_next_to_files_of_any_names_are_compared(tmp_path: Path, names: tuple[str, str]) -> None:
    folders = tmp_path.resolve() / "old", tmp_path.resolve() / "new"
    for version, folder in enumerate(folders):
        (folder / "bank").mkdir(parents=True)
        (folder / "bank" / "__init__.py").write_text(f"VERSION = {version}\n")
    shared = folders[1] / "bank"
    files = [folder / name for folder, name in zip(folders, names, strict=True)]
    a, b = (side(arm, file, shared) for arm, file in zip("AB", files, strict=True))
    error = same_module(a, b)
    assert error and f"both import bank from {shared / '__init__.py'}, but {folders[0] / 'bank'}" in error


def test_shared_module_without_a_package_is_refused(project: Path) -> None:
    for version, folder in enumerate((project / "base", project)):
        (folder / "cash.py").write_text(f"VERSION = {version}\n")
    a, b = (
        each._replace(modules={"cash": str(project / "cash.py")}) for each in arms(project, project, project)
    )
    error = same_module(a, b)
    named = f"A and B both import cash from {project / 'cash.py'}, but {project / 'base' / 'cash.py'} differs"
    assert error and error.startswith(named)


def test_two_files_of_one_folder_may_share_a_package(project: Path) -> None:
    a, b = (side(arm, project / f"{arm}.py", project / "bank") for arm in "AB")
    assert same_module(a, b) is None


# Two environments for one file.


def test_environments_that_load_the_same_files_are_refused(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "stress" / "load.py"
    (python_a, packages), (python_b, other) = environment(tmp_path / "a"), environment(tmp_path / "b")
    for folder in (packages, other):
        (folder / "project.pth").write_text(f"{project}\n")
    a = side("A", file, project / "bank", python_a)
    b = side("B", file, project / "bank", python_b)
    error = same_environment(a, b)
    assert error and error.startswith(f"A and B run the same code. {python_a} and {python_b} are the same")
    assert f"bank from {project / 'bank' / '__init__.py'}. {packages / 'project.pth'} lets both" in error
    monkeypatch.setenv("PYTHONPATH", str(project))
    error = same_environment(a, b)
    assert error and error.endswith(f"PYTHONPATH contains {project}: unset it.")
    nothing = same_environment(a._replace(modules={}), b._replace(modules={}))
    assert nothing and "name one interpreter twice to compare A with A" in nothing


def test_package_next_to_the_file_hides_those_of_the_environments(project: Path, tmp_path: Path) -> None:
    file = project / "load.py"
    pythons = environment(tmp_path / "a")[0], environment(tmp_path / "b")[0]
    a, b = (side(arm, file, project / "bank", python) for arm, python in zip("AB", pythons, strict=True))
    error = same_environment(a, b)
    assert error and error.endswith(
        f"It lies next to {file}, and that folder comes first: move {file} to another folder."
    )


def test_interpreter_given_twice_is_allowed(project: Path) -> None:
    file = project / "stress" / "load.py"
    a, b = (side(arm, file, project / "bank", sys.executable) for arm in "AB")
    assert same_environment(a, b) is None
    assert same_environment(a._replace(python=None), b._replace(python=None)) is None


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no interpreter on Windows")
def test_another_interpreter_is_a_difference(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" -O "$@"\n')
    other.chmod(0o755)
    file = project / "stress" / "load.py"
    a, b = side("A", file, project / "bank", sys.executable), side("B", file, project / "bank", str(other))
    assert same_environment(a, b) is None


# What a worker records.


def test_modules_are_recorded_by_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"site-packages/lib/__init__.py", "site-packages/lib/deep.py", "spread/part.py"}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "site-packages"), *sys.path])
    before = frozenset(sys.modules)
    code = "import lib.deep, spread.part, sqlstress.studies, wave"
    try:
        exec(code, {})
        modules = imported_modules(before)
    finally:
        for name in ("lib", "lib.deep", "spread", "spread.part"):
            sys.modules.pop(name, None)
    folder = tmp_path.resolve()
    assert {name: Path(file).relative_to(folder).as_posix() for name, file in modules.items()} == {
        "lib": "site-packages/lib/__init__.py",
        "spread.part": "spread/part.py",
    }
