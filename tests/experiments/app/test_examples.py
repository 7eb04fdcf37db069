"""The examples and the recipes, right and wrong ones. Only the checks of wrong programs fail."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import sqlstress
from sqlstress.races.suspicions import DEFERRED
from sqlstress.user_work import AFTER, SUSPICION
from tests.pages import ROOT, blocks
from tests.rows import mostly_thorough
from tests.servers import needs_server
from tests.test_examples import EXAMPLES, run

OF_LIBRARIES, RECIPES = (
    sorted(f"{folder}/{path.name}" for path in (EXAMPLES / folder).glob("*.py"))
    for folder in ("app", "recipes")
)
NEW_FILE = "recipes/new_file.py"
"""A program that shows its race without sqlstress."""
NAMES = [name for name in (*OF_LIBRARIES, *RECIPES) if name != NEW_FILE]


def failed(name: str, folder: Path, ops: int, examples: Path = EXAMPLES) -> list[str]:
    """Run an example by four processes; return the failed checks, after testing that it completed something.

    On SQLite the suspected races, too, must distinguish wrong from right programs.
    """
    options: dict[str, Any] = {"file": str(examples / name), "directory": folder, "ops": ops}
    if "psycopg" in name:
        needs_server()
        options["target"] = "postgres"
    report = sqlstress.measure("app", concurrency=4, repeat=1, **options)
    (trial,) = report.runs[0].trials
    assert trial.error is None and trial.transactions > 0 and not trial.failed
    races = {sighting.what for sighting in trial.sightings if sighting.topic == SUSPICION} - {DEFERRED}
    assert not races or ("wrong" in name and "psycopg" not in name), races
    if "wrong" in name and "psycopg" not in name and not races:
        # If this run reached its limit, no transaction got through: both signs must be seen in one run.
        return []
    return [check.name for check in trial.verdict.checks if check.status == "failed"]


TRIES = 10
"""Attempts: a race needs concurrent processes, which a busy machine may keep separate for a while."""


@pytest.mark.parametrize("name", mostly_thorough(NAMES, ["recipes/job_queue_wrong.py"]))
def test_only_wrong_examples_fail_their_checks(name: str, tmp_path: Path) -> None:
    # The checks of a right program hold after a few operations as well as after many.
    if "wrong" in name:
        assert any(failed(name, tmp_path, 100) for _ in range(TRIES))
    else:
        assert not failed(name, tmp_path, 25)


@pytest.mark.thorough
def test_lost_commit_is_found_even_if_all_sums_agree(tmp_path: Path) -> None:
    text = (EXAMPLES / "app" / "acknowledged.py").read_text(encoding="utf-8")
    loses = (
        "\n\n@finish\ndef lose(connection):\n    connection.execute('DELETE FROM ledger WHERE rowid = 1')\n"
    )
    text = text.replace("import Notes, check", "import Notes, check, finish") + loses
    (tmp_path / "acknowledged.py").write_text(text, encoding="utf-8")
    assert failed("acknowledged.py", tmp_path, 10, tmp_path) == [AFTER]


@pytest.mark.thorough
def test_only_the_wrong_way_to_open_a_new_file_is_refused(tmp_path: Path) -> None:
    printed = run([str(EXAMPLES / NEW_FILE)], tmp_path).stdout
    wrong, right = map(int, re.findall(r": (\d+) of", printed))
    assert wrong > 0
    assert right == 0


@pytest.mark.long
@pytest.mark.parametrize("name", OF_LIBRARIES)
def test_examples_have_the_same_outcome_every_time(name: str, tmp_path: Path) -> None:
    wrong = "wrong" in name
    for _ in range(20 if wrong else 100):
        assert bool(failed(name, tmp_path, 500)) == wrong


def test_page_shows_the_first_example_verbatim() -> None:
    python = [text for language, text in blocks(ROOT / "docs" / "app.md") if language == "python"]
    assert python[0] == (EXAMPLES / "app" / "bank.py").read_text(encoding="utf-8")


def test_recipes_have_a_right_and_a_wrong_form_and_pages_name_examples() -> None:
    right = {name for name in RECIPES if "wrong" not in name and name != NEW_FILE}
    assert right == {name.replace("_wrong", "") for name in RECIPES if "wrong" in name}
    for page, names in (("app.md", OF_LIBRARIES), ("recipes.md", RECIPES)):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert [name for name in names if f"(../examples/{name})" not in text] == []
