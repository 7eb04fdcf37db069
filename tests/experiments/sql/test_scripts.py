"""Scripts: their syntax, their mistakes with the places, and their execution."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import UsageError
from sqlstress.experiments.sql.builtin import SCRIPTS
from sqlstress.experiments.sql.expressions import Evaluator, Variables
from sqlstress.experiments.sql.script import Compiler, ScriptFailed, read, statements
from sqlstress.experiments.sql.worker import NoDatabase
from sqlstress.plan import cases_of
from tests.drawing import CHARACTERS
from tests.example_report import assert_golden_texts

TRANSFER = """-- moves money
\\set from random(1, 100 * :scale)
\\set to 1 + (:from + 7) \\
  % 100
BEGIN IMMEDIATE;
SELECT balance AS has, ';' AS x FROM account WHERE id = :from \\gset
\\if :has >= 10
UPDATE account SET balance = balance - 10 WHERE id = :from;
\\elif :has is null
SELECT 'nobody';
\\else
SELECT 'poor';
\\endif
COMMIT;
"""


class Recording(NoDatabase):
    """A database that records the statements, and returns a fixed answer."""

    def __init__(self, answer: Sequence[Sequence[Any]] = ((12, "b"),)) -> None:
        self.ran: list[tuple[str, Variables]] = []
        self.slept: list[float] = []
        self._answer = answer

    def runs(self, sql: str) -> Callable[[Variables], Any]:
        return lambda variables: self.ran.append((sql, dict(variables)))

    reads = runs

    def names(self, sql: str) -> Callable[[Variables], tuple[Sequence[str], Sequence[Sequence[Any]]]]:
        def run(variables: Variables) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
            self.ran.append((sql, dict(variables)))
            return ["has", "x"], self._answer

        return run


def run(text: str, database: Recording, **variables: Any) -> Variables:
    held = {"client_id": 0, "scale": 1, "default_seed": 1, "random_seed": 1, **variables}
    script = read("x.sql", text, variables)
    compiler = Compiler(Evaluator(Random(1)), database, sleep=database.slept.append)
    for step in compiler.steps(script.commands):
        step(held)
    return held


@pytest.mark.parametrize(
    ("has", "runs"), [(12, "UPDATE"), (10, "UPDATE"), (9, "SELECT 'poor'"), (None, "SELECT 'no")]
)
def test_branch_with_a_true_condition_is_run(has: int | None, runs: str) -> None:
    database = Recording([(has, "b")])
    held = run(TRANSFER, database)
    assert [sql.split()[0] for sql, _ in database.ran] == ["BEGIN", "SELECT", runs.split()[0], "COMMIT"]
    assert database.ran[2][0].startswith(runs) and (held["has"], held["x"]) == (has, "b")


def test_variables_are_bound_and_those_of_a_query_may_have_a_prefix() -> None:
    database = Recording()
    run("SELECT :x, ':x', 1::x;", database, x="'; DROP TABLE t; --")
    ((sql, variables),) = database.ran
    assert sql == "SELECT :x, ':x', 1::x" and variables["x"] == "'; DROP TABLE t; --"
    assert run("SELECT 1 \\gset a_\nSELECT :a_has;", database)["a_has"] == 12


@pytest.mark.parametrize(("line", "seconds"), [("2", 2), ("2 ms", 2e-3), (":n us", 3e-6), ("0.5 s", 0.5)])
def test_sleep_takes_the_time_of_its_arguments(line: str, seconds: float) -> None:
    database = Recording()
    run(f"\\set n 3\n\\sleep {line}\nSELECT 1;", database)
    assert database.slept == [pytest.approx(seconds)]


@pytest.mark.parametrize("rows", [[], [(1, 2), (3, 4)]])
def test_gset_refuses_a_query_with_no_row_or_two(rows: list[Any]) -> None:
    with pytest.raises(ScriptFailed, match=r"x.sql:1:1: \\gset needs one row"):
        run("SELECT 1 \\gset", Recording(rows))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("\\set x 1 / 0\nSELECT :x;", "x.sql:1:1: division by zero"),
        ("SELECT 1 \\gset\n\\set y :z + 1\n", "x.sql:2:1: the variable :z has no value"),
        ("\\set n -1\n\\sleep :n\nSELECT 1;", "x.sql:2:1: a sleep must be from 0"),
        ("\\set n 9223372036854775807\n\\set n :n + 1\nSELECT 1;", "x.sql:2:1: an integer does not fit"),
    ],
)
def test_error_at_run_time_has_its_place(text: str, error: str) -> None:
    with pytest.raises((ScriptFailed, UsageError), match=error):
        run(text, Recording())


WRONG_SCRIPTS = [
    *("", "SELECT 1;\n \\frobnicate", "\\startpipeline\nSELECT 1;", "\\set\nSELECT 1;", "\\set x\nSELECT 1;"),
    *("SELECT 1\n\\set x 1", "\\gset", "UPDATE t SET x = 1 \\gset", "SELECT 1 \\gset a b"),
    *("\\if 1\nSELECT 1;", "SELECT 1;\n\\endif", "\\if 1\n\\else\n\\elif 2\n\\endif"),
    *("\\if 1\n\\endif 2\nSELECT 1;", "\\if 1\n" * 60 + "\\endif\n" * 60),
    *("SELECT :y;", "\\set x :y\nSELECT 1;", "SELECT ?;", "SELECT 'a", "\\sleep 1 h"),
]


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read("x.sql", text)
    return str(caught.value)


def test_invalid_script_is_refused_with_the_place() -> None:
    found = {repr(text)[:70]: refused(text) for text in WRONG_SCRIPTS}
    assert_golden_texts("scripts-refused.txt", found)


@given(
    st.text("\\setifndls:x01 ;'\n\r\t()+-*/BEGINCOMTgr\0é", max_size=80) | st.text(CHARACTERS, max_size=60)
)
def test_any_text_is_a_script_or_a_usage_error(text: str) -> None:
    try:
        script = read("x.sql", text, ["x"])
    except UsageError as error:
        assert str(error).startswith("x.sql:")
        return
    assert list(statements(script.commands))


def test_built_in_scripts_can_be_read() -> None:
    counts = [len(list(statements(read(name, script.text).commands))) for name, script in SCRIPTS.items()]
    assert counts == [7, 5, 1, 5]


def test_trigger_and_strings_end_where_sqlite_ends_them() -> None:
    text = "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT ';'; END; SELECT '\\set', :x; -- \\if\nSELECT 2"
    script = read("x.sql", text, ["x"])
    assert [command.statement.verb for command in statements(script.commands)] == [
        "create",
        "select",
        "select",
    ]


def test_statement_instead_of_a_script_must_be_in_a_file() -> None:
    with pytest.raises(UsageError, match=r"no such file: 'SELECT 1'\. A script is a file"):
        cases_of({"script": ("SELECT 1",)}, "sql")
