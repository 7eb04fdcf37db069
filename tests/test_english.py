"""All texts for maintainers are in plain English; the checker finds each kind of fault."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.english import CHECKED, ROOT, check

FAULTS = [
    ("D01", '"""Return what was read."""'),
    ("D02", '"""How long it took."""'),
    ("D03", '"""Of which file."""'),
    ("D04", '"""Do the same for a folder."""'),
    ("D05", '"""Have a function called."""'),
    ("S02", '"""Seconds of so many workers."""'),
    ("S09", '"""Time until nobody writes to it."""'),
    ("N01", "def what_is_read(): pass"),
    ("N03", "def told(): pass"),
    ("N04", "for one in (): pass"),
    ("T01", "def test_what_is_read(): pass"),
]


@pytest.mark.parametrize(("code", "source"), FAULTS)
def test_checker_finds_each_kind_of_fault(code: str, source: str, tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(source, encoding="utf-8")
    assert code in {hit.code for hit in check([file])}


@pytest.mark.parametrize(
    ("name", "code", "comment"),
    [
        ("loop.c", 'char *a = "/* it is told */";', "/* rows of\n * which it is told */"),
        ("loop.h", "int a = '/*';", "int b; // it is told"),
        ("page.js", "const a = `// it is told`;", "// it is told"),
        ("queue.mjs", "const a = 'it\\'s // told';", "// it is told"),
        ("page.css", "a { content: '/* it is told */'; }", "/* rows of\n   which it is told */"),
        ("queue.go", 'var a = "// it is told"', "\t// it is told"),
        ("run", "#!/bin/is/told", "echo ${#told} # it is told"),
        ("next.sh", 'echo "# it is told"', "# it is told"),
        ("plan.toml", 'a = "# it is told"', "# it is told"),
        ("test.yml", "a: '# it is told'", "  # it is told"),
        ("setup.cfg", "a = b#it is told", "# it is told"),
    ],
)
def test_checker_finds_a_fault_only_in_comments(name: str, code: str, comment: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(f"{code}\n{comment}\n", encoding="utf-8")
    assert [(hit.code, hit.line) for hit in check([file])] == [("S04", 2)]


def test_checker_accepts_plain_english_and_exempt_lines(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        '"""Return the number of rows."""\nx = 1  # it is told  # dialect: ok\n', encoding="utf-8"
    )
    assert check([file]) == []


def test_all_texts_are_in_plain_english() -> None:
    assert check([ROOT / name for name in CHECKED]) == []


def test_class_name_occurs_once_in_the_package() -> None:
    """Classes of the API have the names that users see."""
    files = [path for path in (ROOT / "sqlstress").rglob("*.py") if path.name != "api.py"]
    texts = [path.read_text(encoding="utf-8") for path in files]
    counts = Counter(name for text in texts for name in re.findall(r"(?m)^class (\w+)", text))
    assert [name for name, count in counts.items() if count > 1] == []
