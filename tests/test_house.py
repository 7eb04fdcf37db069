"""The house: every package is registered, and every module can be read at once."""

from __future__ import annotations

from pathlib import Path

import sqlstress
from sqlstress.experiment import EXPERIMENTS

PACKAGE = Path(sqlstress.__file__).parent


def test_every_package_of_an_experiment_is_registered() -> None:
    packages = {path.name for path in (PACKAGE / "experiments").iterdir() if (path / "face.py").exists()}
    assert packages == {target.split(".")[2] for target in EXPERIMENTS.values()}


def test_modules_are_short_enough_to_be_read_at_once() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert [path.relative_to(PACKAGE).as_posix() for path, count in lines.items() if count > 250] == []
