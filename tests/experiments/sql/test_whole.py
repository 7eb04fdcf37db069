"""What is begun again as a whole must be one transaction, whatever branches it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstress.errors import UsageError
from sqlstress.experiments.sql.builtin import checks
from sqlstress.targets.sqlite.drivers import load_driver
from tests.experiments.sql.databases import case_of, done, opened, rows

ONE, OTHER = "UPDATE account SET balance = 1 WHERE id = 1;\n", "DELETE FROM account;\n"
DRAWN = "\\set x random(1, 2)\n"
PARTS = {
    "each by itself": ONE + OTHER,
    "begun in one branch only": (
        f"{DRAWN}\\if :x = 1\nBEGIN;\n\\endif\n{ONE}{OTHER}\\if :x = 1\nCOMMIT;\n\\endif\n"
    ),
    "ended in one branch": f"{DRAWN}BEGIN;\n{ONE}\\if :x = 1\nCOMMIT;\n\\endif\n{OTHER}",
    "behind a branch": f"{DRAWN}\\if :x = 1\n{ONE}\\endif\n{OTHER}",
}
WHOLE = {
    "one": f"BEGIN;\n{ONE}{OTHER}COMMIT;\n",
    "a single statement": ONE,
    "reads before": f"SELECT 1;\n{ONE}",
    "a branch within": f"{DRAWN}BEGIN;\n\\if :x = 1\n{ONE}\\else\n{OTHER}\\endif\n{ONE}COMMIT;\n",
    "one or the other": f"{DRAWN}\\if :x = 1\n{ONE}\\else\n{OTHER}\\endif\n",
    "begun and ended in branches": (
        f"{DRAWN}\\if :x = 1\nBEGIN;\n\\else\nBEGIN IMMEDIATE;\n\\endif\n{ONE}{OTHER}COMMIT;\n"
    ),
}
AGAIN = ({"max_tries": 3}, {"busy": "fair"})


@pytest.mark.parametrize("again", AGAIN, ids=str)
@pytest.mark.parametrize("name", PARTS)
def test_what_would_be_done_twice_is_refused(tmp_path: Path, name: str, again: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"a\.sql:\d+:1: --.* begins a script again.* as a whole"):
        case_of(tmp_path, {"a.sql": PARTS[name]}, **again)


@pytest.mark.parametrize("again", AGAIN, ids=str)
@pytest.mark.parametrize("name", WHOLE)
def test_one_transaction_is_not(tmp_path: Path, name: str, again: dict[str, object]) -> None:
    case_of(tmp_path, {"a.sql": WHOLE[name]}, **again)


@pytest.mark.parametrize("alike", [{}, {"busy": "fair", "driver": "apsw"}], ids=str)
def test_where_only_a_statement_is_waited_for_each_may_be_by_itself(
    tmp_path: Path, alike: dict[str, object]
) -> None:
    case_of(tmp_path, {"a.sql": ONE + OTHER}, **alike)


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
def test_a_number_given_is_compared_as_one(tmp_path: Path, driver: str) -> None:
    text = "INSERT INTO seen SELECT typeof(:n) || (3 < :n) || typeof(:d) || typeof(:s);"
    case = case_of(tmp_path, {"a.sql": text}, driver=driver, define=["n=2", "d=2.5", "s=inf"])
    work, source = opened(case, tmp_path)
    done(source, 1)
    assert rows(work, "SELECT value FROM seen") == [("integer0realtext",)]
    source.close()


def test_what_is_slept_is_no_cost_of_the_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    case = case_of(tmp_path, {"a.sql": "\\sleep 3 s\nSELECT 1;"}, driver="dry")
    _, source = opened(case, tmp_path)
    done(source, 2)
    assert not slept
    source.close()


def test_money_that_is_gone_breaks_the_banks_check(tmp_path: Path) -> None:
    (money, _) = checks(["bank"], 1)
    connection = load_driver("sqlite3").connect(tmp_path / "a.db", 1000, None)
    connection.rows("CREATE TABLE bank_accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)")
    assert connection.rows(money.sql)
    connection.close()


def test_the_examples_check_sees_it_too(tmp_path: Path) -> None:
    root = Path(__file__).parents[3] / "examples" / "transfer"
    sql = (root / "invariants.sql").read_text(encoding="utf-8").partition(";")[0]
    connection = load_driver("sqlite3").connect(tmp_path / "a.db", 1000, None)
    connection.rows("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)")
    assert connection.rows(sql)
    connection.close()
