"""The recipes: only the wrong form of each breaks its check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.experiments.app.test_examples import TRIES, failed
from tests.pages import ROOT
from tests.rows import mostly_thorough
from tests.test_examples import run

FOLDER = ROOT / "examples" / "recipes"
PAGE = ROOT / "docs" / "recipes.md"
NAMES = sorted(path.name for path in FOLDER.glob("*.py"))
NEW_FILE = "new_file.py"
FOR_APP = [name for name in NAMES if name != NEW_FILE]


@pytest.mark.parametrize("name", mostly_thorough(FOR_APP, ["job_queue_wrong.py"]))
def test_a_wrong_recipe_breaks_its_check_and_a_right_one_does_not(name: str, tmp_path: Path) -> None:
    if "wrong" in name:
        assert any(failed(name, tmp_path, 300, FOLDER) for _ in range(TRIES))
    else:
        assert not failed(name, tmp_path, 25, FOLDER)


@pytest.mark.thorough
def test_only_the_wrong_way_to_open_a_new_file_is_refused(tmp_path: Path) -> None:
    printed = run([str(FOLDER / NEW_FILE)], tmp_path).stdout
    wrong, right = map(int, re.findall(r": (\d+) of", printed))
    assert wrong > 0
    assert right == 0


def test_each_wrong_recipe_has_a_right_one_and_the_page_names_both() -> None:
    assert {name for name in FOR_APP if "wrong" not in name} == {
        name.replace("_wrong", "") for name in FOR_APP if "wrong" in name
    }
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in NAMES if f"(../examples/recipes/{name})" not in text] == []
