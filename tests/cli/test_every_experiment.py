"""Each experiment is saved in each format, shown again as it was, and compared."""

import sys
from pathlib import Path

import pytest

from sqlstress.experiments.crash.spec import Kills
from sqlstress.show.formats import DOCUMENTS, FORMATS
from sqlstress.show.json_file import report_json
from tests.cli.conftest import Cli, saved, valid
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
    report = valid()
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


SETTINGS = {
    "kv -c1 --repeat=1 --duration=50ms --warmup=100ms --key-space=500": (
        "--driver dry",
        "--update-ratio 0.5 --batch 3 -c 2",
        "--key-type blob --value-size 100 --distribution zipfian -b 4",
        "--journal-mode delete --synchronous normal -c 2",
        "--pragma locking_mode=exclusive",
        "--verify none",
        "--verify full --page-size 8192 --cache-size -500",
        "--read-ratio 1",
        "--read-ratio 0 --busy-timeout 0 -c 2 --max-failed 100%",
    ),
    "keys -c2 --users=40 --picks=20 --items=100 --repeat=1 --synchronous=off --id-type=ulid,int": (
        "--schema id-norowid,pair-norowid --id-type uuid7",
        "--schema pair-rowid --begin immediate --journal-mode delete",
        "--schema no-key --driver apsw --verify full --page-size 1024 --repeat 2",
        "--driver dry",
        "--verify none --pragma foreign_keys=off --concurrency 1,3",
        "--pragma locking_mode=exclusive -c 1 --schema no-key",
    ),
    "crash --rounds=3 --seed=1": (
        "--driver apsw --batch 1 --value-size 8 --begin deferred",
        "-c 1 --pragma locking_mode=exclusive --value-size 20000 --page-size 1024",
        "--journal-mode truncate --synchronous extra --busy-timeout 5s -c 5",
    ),
}
"""Options of many kinds, by the command with which each is tried."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "line", [f"{command} {options}" for command, lines in SETTINGS.items() for options in lines]
)
def test_loads_and_settings_of_many_kinds_work(cli: Cli, line: str) -> None:
    pytest.importorskip("apsw")
    assert cli(*line.split(), "--quiet", "-oreport.json", expected=0).out == ""
    for kills in saved().results.values():
        assert isinstance(kills, Kills) and kills.acknowledged > 0
