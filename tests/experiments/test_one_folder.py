"""An experiment is one folder and one line of the registry: this one is added so, and is whole everywhere.

Its folder is written below, beside the project: N processes append rows to one table, and each of the rows
that a process was told are there must be.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sqlstress import experiment
from sqlstress.cli.run_command import run
from sqlstress.report import read, to_json

FOLDER = {
    "__init__.py": "",
    "face.py": '''
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlstress.experiment import Experiment
from sqlstress.options.option import LOAD, chosen, option, options_of
from sqlstress.options.parsing import whole
from sqlstress.report.case import SETTINGS, Case, common


@dataclass(frozen=True, slots=True)
class Appending:
    """What the processes append."""

    appends: int = option(whole(1, 1000), 100, LOAD, "Rows that each process appends.")


def cases(asked) -> Iterator[Case]:
    for concurrency in asked.some("concurrency"):
        yield replace(asked.case, concurrency=concurrency)


APPEND = Experiment(
    name="append",
    spec=Appending,
    key="appending",
    command="append",
    summary="Append rows to one table.",
    help="Append rows to one table by N processes.",
    example="sqlstress append --appends 10",
    options=(*common("concurrency", "repeat"), *chosen(options_of(Appending)), *common(*SETTINGS),
             *common("driver", "verify", "seed")),
    cases=cases,
    work_of=lambda case: f"{case.spec.appends} rows",
    work="append_experiment.work:AppendWork",
    worker="append_experiment.worker:AppendSource",
)
''',
    "worker.py": """
from sqlstress.engine.ordered import OrderedSource, Step


class AppendSource(OrderedSource):
    kinds = ("append",)

    def __init__(self, case, place, worker, salt, shared):
        self._client = place.client(worker)
        append = self._client.connect(0).writer("INSERT INTO row (worker, number) VALUES (?, ?)")
        steps = (Step(0, append, (worker, number), 1) for number in range(case.spec.appends))
        super().__init__(shared[0], worker, self._client, steps)

    def findings(self):
        self.seen.effective = self._client.effective()
        return self.seen

    def close(self):
        self._client.close()
""",
    "work.py": """
from sqlstress.engine import ledger
from sqlstress.engine.examine import examined
from sqlstress.engine.proven import ProvenWork
from sqlstress.report.problems import Tally


class AppendWork(ProvenWork):
    def __init__(self, case, place, salt, carry):
        super().__init__(case, place)
        self._words = ledger.shared_words(case.concurrency)
        self.shared = (self._words,)

    def create(self, pulse):
        self.place.create_tables(["CREATE TABLE row (worker INTEGER, number INTEGER)"], pulse)

    def checks(self, outcomes, pulse):
        yield from self.sound(pulse)
        yield examined("appended rows", lambda: self._check(outcomes))

    def _check(self, outcomes):
        tally = Tally("appended rows")
        with self.place.opened() as connection:
            found = {tuple(row) for row in connection.rows("SELECT worker, number FROM row")}
        for outcome in outcomes:
            for number in range(ledger.Ledger(self._words, outcome.worker).acknowledged()):
                tally.checked += 1
                if (outcome.worker, number) not in found:
                    tally.problem(f"row {number} of worker {outcome.worker} is gone")
        return tally.check()
""",
}

Sqlstress = Callable[..., str]


@pytest.fixture
def sqlstress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Sqlstress]:
    """The command line, in a folder of its own, with one experiment more."""
    package = tmp_path / "beside" / "append_experiment"
    package.mkdir(parents=True)
    for name, text in FOLDER.items():
        (package / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setitem(experiment.EXPERIMENTS, "append", "append_experiment.face:APPEND")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def command(*words: str) -> str:
        assert run(words) == 0
        return capsys.readouterr().out

    yield command
    for name in [name for name in sys.modules if name.startswith("append_experiment")]:
        del sys.modules[name]


def test_an_experiment_of_one_folder_is_measured_shown_saved_and_compared(sqlstress: Sqlstress) -> None:
    formats = [f"report.{form}" for form in ("json", "csv", "md", "html", "xml")]
    outputs = [word for name in (*formats, "bmf:metrics.json") for word in ("-o", name)]
    text = sqlstress("append", "-c", "1,2", "--appends", "7", *outputs)
    assert "append" in text
    assert "\n7 rows " in text
    assert text.count(" ok\n") == 2
    saved = read(Path("report.json"))
    assert [run.case.spec.appends for run in saved.runs] == [7, 7]
    assert [run.trials[0].transactions for run in saved.runs] == [7, 14]
    assert [check.name for check in saved.runs[1].verdict.checks][-1] == "appended rows"
    assert to_json(saved) == Path("report.json").read_text(encoding="utf-8")
    assert json.loads(to_json(saved))["runs"][0]["case"]["appending"] == {"appends": 7}
    assert "appending_appends" in Path("report.csv").read_text(encoding="utf-8").splitlines()[0]
    assert "append: 7 rows, 2 processes" in Path("metrics.json").read_text(encoding="utf-8")
    assert all(Path(name).stat().st_size for name in formats)
    assert sqlstress("report", "report.json").split() == text.split()
    Path("other.json").write_text(to_json(saved), encoding="utf-8")
    assert "B reached 1.0 to 1.0 times" in sqlstress("compare", "report.json", "other.json")


def test_its_options_are_in_the_help_in_plans_and_in_the_schema(sqlstress: Sqlstress) -> None:
    assert "Append rows to one table." in sqlstress("--help")
    assert "Rows that each process appends. [default: 100]" in " ".join(sqlstress("append", "--help").split())
    Path("plan.toml").write_text(
        '[[case]]\nworkload = "append"\nconcurrency = 1\nappends = 3\n', encoding="utf-8"
    )
    assert "\n3 rows " in sqlstress("run", "plan.toml")
    from sqlstress.report.schema import report_schema

    assert report_schema()["$defs"]["Appending"]["properties"]["appends"]["description"].startswith(
        "Rows that"
    )
