"""Declarations of a user's file, and the errors for unusable files, whatever their import does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import sqlstress
from sqlstress.errors import UsageError
from sqlstress.experiments.app import user_file
from sqlstress.experiments.app.user_file import bind_argument
from sqlstress.target import DEFAULT
from tests.rows import thorough

HEAD = "import os, sys, time\nfrom sqlstress import check, connect, setup, transaction\n"


def write_file(folder: Path, text: str) -> str:
    (folder / "bank.py").write_text(HEAD + text, encoding="utf-8")
    return str(folder / "bank.py")


def test_file_is_examined_in_its_own_process(tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text(
        "from sqlstress import transaction\n@transaction\ndef audit(c): pass\n", encoding="utf-8"
    )
    text = """
from shared import audit
print("x" * 10**6)
os.chdir("/")
assert os.environ["SQLSTRESS_DATABASE"]
class Proxy:
    def __getattr__(self, name): raise RuntimeError("outside of a request")
request = Proxy()
@setup
def make(path): pass
@transaction(weight=3)
def transfer(c): pass
@check
def sum_holds(query): pass
@check
def none_lost(query, notes): pass
"""
    before = set(sys.modules)
    seen = user_file.look(write_file(tmp_path, text), DEFAULT, allow_others=False)
    assert seen.weights == {"audit": 1, "transfer": 3}
    assert seen.checks == {"sum_holds": False, "none_lost": True} and not seen.creates
    assert not {"bank", "shared"} & (set(sys.modules) - before)


T = "@transaction\ndef t(c): pass\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "declares no transaction. Put @transaction before a function"),
        ("def t(:", "bank.py:3 cannot be imported: SyntaxError"),
        ("\nimport nowhere", "bank.py:4 cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("@setup\n" + T, "t cannot be @transaction and @setup: write two functions"),
        (T + "1 / 0", "bank.py:5 cannot be imported: ZeroDivisionError"),
        (T + "sys.exit(3)", "exits when it is imported (exit code 3)"),
        (T + "os._exit(3)", "ended the process: a process of sqlstress ended with exit code 3"),
        (T + "input()", "cannot be imported: EOFError"),
        (
            "@transaction(weight=0)\ndef t(c): pass",
            "the weight of t must be a whole number from 1 to 1,000,000",
        ),
        thorough("@transaction(weight='a')\ndef t(c): pass", "the weight of t must be a whole number"),
        ("@transaction\nasync def t(c): pass", "the transaction t is async or a generator"),
        thorough(T + "@check\ndef c(query): yield 1", "the check c is async or a generator"),
        (T + "@setup\ndef a(p): pass\n@setup\ndef b(p): pass", "two functions with @setup: a and b"),
        thorough(
            "\n".join(f"@transaction\ndef t{n}(c): pass" for n in range(21)),
            "declares more than 20 transactions",
        ),
    ],
)
def test_unusable_file_is_a_one_line_error(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        user_file.look(write_file(tmp_path, text), DEFAULT, allow_others=False)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.thorough
def test_endless_import_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_file, "MAX_IMPORT_S", 1.0)
    with pytest.raises(UsageError, match=r"takes longer than 1 s to import\. It may be waiting"):
        user_file.look(write_file(tmp_path, "time.sleep(600)"), DEFAULT, allow_others=False)


def test_marked_function_works_as_before_and_may_take_an_argument() -> None:
    @sqlstress.transaction(weight=3)
    def double(number: int) -> int:
        return 2 * number

    assert (double(2), double.__name__) == (4, "double")
    assert bind_argument(double, 7)() == 14
    assert bind_argument(lambda: 3, 7)() == 3
    assert bind_argument(lambda given=1: given, 7)() == 1
    assert bind_argument([7, 7].count, 7)() == 2
