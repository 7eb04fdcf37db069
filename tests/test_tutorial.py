"""docs/tutorial.md: each command runs and ends as the page says, and the code is that of the example."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.brief import PROGRAM
from tests.pages import ROOT, blocks, columns, have_one_form, outputs_of, written_commands
from tests.test_examples import EXAMPLES, run

PAGE = ROOT / "docs" / "tutorial.md"
SHOP = EXAMPLES / "shop"
ENDS: dict[str, tuple[str, int]] = {
    "sqlstress app examples/shop/load.py -c 4": ("--repeat 1 --duration 1s", 1),
    "sqlstress -c 4 --read-ratio 0 --update-ratio 1 --journal-mode delete --busy-timeout 5s --where": (
        "--repeat 1 --duration 500ms",
        0,
    ),
    "sqlstress app examples/shop/load_fixed.py -c 4": ("--repeat 1 --duration 500ms", 0),
    "sqlstress ab app --a examples/shop/load.py --b examples/shop/load_fixed.py -c 4 --max-failed 100%": (
        "--duration 200ms --max-time 5s",
        0,
    ),
    "python -m pytest examples/shop/test_shop.py": ("", 0),
}
"""Words added to a command, so that a test takes seconds, and the exit code."""
INSTALLED = "python -m pip install . django pytest"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the examples, the test of the shop shortened."""
    pytest.importorskip("django")
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    test = tmp_path / "examples" / "shop" / "test_shop.py"
    text = test.read_text(encoding="utf-8")
    assert "duration=1)" in text
    test.write_text(text.replace("duration=1)", "duration=0.3, repeat=1)"), encoding="utf-8")
    return tmp_path


def test_every_command_of_the_tutorial_is_run() -> None:
    assert written_commands(PAGE) == [INSTALLED, *ENDS]


@pytest.mark.thorough
@pytest.mark.parametrize("command", ENDS)
def test_tutorial_command_has_the_documented_exit_code_and_output(command: str, checkout: Path) -> None:
    added, expected = ENDS[command]
    program, *words = shlex.split(f"{command} {added}")
    module = {"sqlstress": PROGRAM[1:], "python": ()}[program]
    done = run([*module, *words], checkout, expected)
    printed, complaints = done.stdout, done.stderr
    (output,) = (text for page, text in outputs_of(command) if page == PAGE.name)
    assert len(columns(output)) == len(columns(printed))
    assert all(map(have_one_form, columns(output), columns(printed)))
    if expected:
        assert "SQLITE_BUSY" in printed and re.fullmatch(
            r"Error: .* of the operations failed .*\n", complaints
        )
    else:
        assert complaints == ""


def test_tutorial_has_the_code_of_the_shop() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in sorted(SHOP.rglob("*.py")))
    shown_code = [text for language, text in blocks(PAGE) if language == "python"]
    assert shown_code and [text for text in shown_code if text not in code] == []


def test_tutorials_test_is_collected_without_plugins() -> None:
    words = ["-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "--collect-only"]
    assert "1 test collected" in run([*words, "examples/shop/test_shop.py"], ROOT).stdout
