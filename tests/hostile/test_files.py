"""Missing, endless or too large files: refused in a line, in bounded memory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from sqlstress.report import to_json
from sqlstress.report.document import MAX_BYTES
from tests.cli.conftest import Said
from tests.example_report import example_report
from tests.hostile.conftest import Judge
from tests.rows import fault, thorough

MEMORY = 600 << 20
"""Address space of a process that refuses a file: enough for Python and the file, and little more."""
MOST_MEMORY = 4 << 30
"""Address space that suffices for a file of the largest size with the most objects."""
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
del sys.argv[1]
from sqlstress.__main__ import main
sys.exit(main())
"""
PLAN = '[[case]]\nworkload = "kv"\n'

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices have no names there")


def run_with_limit(*arguments: str, memory: int = MEMORY, stdin: int | IO[bytes] | None = None) -> Said:
    """Run a command line in a process with `memory` bytes of address space, for at most 300 s."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(memory), *arguments],
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    output = Said(done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in output.err and "did not expect" not in output.err
    assert len(output.lines) <= 1
    return output


def commands(name: str) -> list[list[str]]:
    """Return every command that reads a file, with this file."""
    return [["report", name], ["run", name, "-o", "stop"], ["compare", name, "good.json"]]


@pytest.fixture(autouse=True)
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a folder with a valid report and a valid plan."""
    monkeypatch.chdir(tmp_path)
    Path("good.json").write_text(to_json(example_report()), encoding="utf-8")
    Path("good.toml").write_text(PLAN, encoding="utf-8")


@pytest.mark.thorough
@fault(
    "input",
    "an endless or huge file, or a pipe without end, as a report or a plan",
    "exit 2 in bounded memory",
)
@pytest.mark.parametrize("name", ["/dev/zero", "large"])
def test_too_large_file_is_refused_in_bounded_memory(name: str) -> None:
    with Path("large").open("wb") as file:
        file.truncate(200_000_000)
    for arguments in commands(name):
        output = run_with_limit(*arguments)
        assert output.code == 2
        assert "it is larger than " in output.err and name in output.err


@fault("input", "a folder, an empty device or nothing as a report", "exit 2")
@pytest.mark.parametrize("name", ["folder", "/dev/null", "-", "gone"])
def test_folder_device_or_missing_file_is_refused(judge: Judge, name: str) -> None:
    Path("folder").mkdir()
    for arguments in commands(name):
        output = judge(*arguments)
        assert output.code == 2 and name in output.err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "arguments"), [("good.json", ["report"]), thorough("good.toml", ["run", "-o", "stop"])]
)
def test_pipe_is_read_like_a_file(name: str, arguments: list[str]) -> None:
    with Path(name).open("rb") as file:
        through = run_with_limit(*arguments, "/dev/stdin", stdin=file)
    with subprocess.Popen(["cat", name], stdout=subprocess.PIPE) as cat:
        piped = run_with_limit(*arguments, "/dev/stdin", stdin=cat.stdout)
    assert through == piped == run_with_limit(*arguments, name)
    assert "-o 'stop'" in piped.err or piped.out


@pytest.mark.thorough
@fault(
    "input",
    "an endless or huge file, or a pipe without end, as a report or a plan",
    "exit 2 in bounded memory",
)
def test_endless_pipe_is_refused() -> None:
    for arguments in commands("/dev/stdin"):
        with subprocess.Popen(["yes", "["], stdout=subprocess.PIPE) as yes:
            output = run_with_limit(*arguments, stdin=yes.stdout)
            yes.stdout and yes.stdout.close()
        assert output.code == 2 and "it is larger than " in output.err


def largest_report(where: str, unit: str) -> str:
    """Return a report of the largest permitted size, whose list after `where` is full of `unit`."""
    text = json.dumps(json.loads(to_json(example_report())) | {"unknown": [None]})
    before, _, after = text.partition(where)
    assert after
    item = f"{unit}, "
    return f"{before}{where}{item * ((MAX_BYTES - len(text)) // len(item.encode()))}{after}"


@fault("input", "reports as large as one may be", "read or refused in bounded memory")
@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "unit"),
    [
        ('"unknown": [', '{"": {}}'),
        ('"unknown": [', "[]"),
        ('"bins": [', "1"),
        ('"bins": [', "1.5"),
        ('"command": [', '"\u1234"'),
        ('"buckets": [', "[17000, 3]"),
        ('"runs": [', '{"case": {}}'),
    ],
)
def test_largest_report_is_read_or_refused_in_bounded_memory(where: str, unit: str) -> None:
    Path("largest.json").write_text(largest_report(where, unit), encoding="utf-8")
    assert run_with_limit("report", "largest.json", memory=MOST_MEMORY).code in (0, 2)
