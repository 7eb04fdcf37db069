"""Each experiment is saved in each format, shown again as it was, and compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sqlstress.show.formats import DOCUMENTS, FORMATS
from sqlstress.show.json_file import report_json
from tests.cli.conftest import Cli, saved
from tests.commands import STUDIES
from tests.faults.commands import EXPERIMENTS, SHORT
from tests.rows import mostly_thorough

COMMANDS = {
    "kv": ("kv", "-c1,2", *SHORT),
    "exec": ("exec", "-c1", "--ops=2", "--repeat=1", "--max-failed=100%", "--", sys.executable, "-c", "pass"),
    **{name: words for name, words in EXPERIMENTS.items() if name not in STUDIES},
}
"""A small measurement by each experiment. Tests of ab and limit save and show theirs."""
FILES = {form: f"report.{form}" for form in FORMATS if form != "github-action-benchmark"}
WITHOUT_CASES = ("crash",)


@pytest.mark.parametrize("name", mostly_thorough(COMMANDS, ("sql", "crash")))
def test_experiment_is_saved_in_every_format_and_shown_again(cli: Cli, name: str) -> None:
    forms = DOCUMENTS if name in WITHOUT_CASES else FILES
    command, *words = COMMANDS[name]
    said = cli(command, *(f"-o{form}:{FILES[form]}" for form in forms), *words, expected=0)
    report = saved()
    assert report_json(report) == Path("report.json").read_text(encoding="utf-8")
    assert cli("report", "report.json").out == said.out
    assert sorted(path.name for path in Path().iterdir()) == sorted(FILES[form] for form in forms)
    for form in forms:
        if form != "json":
            assert Path(FILES[form]).read_bytes().decode() == FORMATS[form](report)
    Path("again.json").write_bytes(Path("report.json").read_bytes())
    compared = cli("compare", "report.json", "again.json")
    assert compared.code == (2 if name in WITHOUT_CASES else 0)
    assert ("has its own verdict" in compared.err) == (name in WITHOUT_CASES)
