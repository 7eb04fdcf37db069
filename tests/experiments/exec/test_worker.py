"""The worker's half: commands run to their end, none of their processes survives, and their output is
counted.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.errors import EnvironmentFailure, UsageError
from sqlstress.experiments.exec.programs import KEPT, CommandExit, CommandStarter, OutputReader
from sqlstress.experiments.exec.template import Given, fill, parse
from sqlstress.experiments.exec.worker import CommandSource
from sqlstress.plan import cases_of
from sqlstress.recording.messages import MAX_CHARS, OTHER_KINDS, error_line, group_key, source_line
from sqlstress.targets.dry import DryPlace
from sqlstress.user_work.source import MAX_KINDS, KindCounter
from tests.drawing import CHARACTERS

PYTHON = [sys.executable, "-S", "-E", "-c"]
posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups")


@contextmanager
def starter(timeout_s: float = 30.0, stdin: str | None = None, error: int = 2) -> Iterator[CommandStarter]:
    one = CommandStarter(os.environ, stdin, error, timeout_s)
    try:
        yield one
    finally:
        one.close()


def test_command_has_an_exit_code_or_is_missing() -> None:
    with starter() as one:
        assert one.run([*PYTHON, "raise SystemExit(77)"]) == CommandExit(77, False, False)
        with pytest.raises(EnvironmentFailure, match=r"^cannot start 'nowhere/tool': "):
            one.run(["nowhere/tool"])


def test_each_command_reads_its_standard_input_from_the_start(tmp_path: Path) -> None:
    code = "import sys; raise SystemExit(len(sys.stdin.read()))"
    with starter() as one:
        assert one.run([*PYTHON, code]).code == 0
    (tmp_path / "input").write_bytes(b"seven..")
    with starter(stdin=str(tmp_path / "input")) as one:
        assert [one.run([*PYTHON, code]).code for _ in range(2)] == [7, 7]


def test_endless_command_is_ended() -> None:
    with starter(timeout_s=0.2) as one:
        ended = one.run([*PYTHON, "import time; time.sleep(1000)"])
    assert ended.too_late and not ended.left_behind
    assert ended.code != 0


@posix
def test_descendants_of_a_command_are_ended_and_leftovers_reported(tmp_path: Path) -> None:
    child = tmp_path / "child"
    with starter(timeout_s=0.5) as one:
        assert one.run(["sh", "-c", f"sleep 1000 & echo $! > {child}; wait"]).too_late
    assert has_ended(int(child.read_text()))
    with starter() as one:
        assert one.run(["sh", "-c", f"sleep 1000 & echo $! > {child}"]) == CommandExit(0, False, True)
    assert has_ended(int(child.read_text()))


@posix
def test_command_is_ended_at_the_end_and_no_other_starts(tmp_path: Path) -> None:
    child = tmp_path / "child"
    one = CommandStarter(os.environ, None, 2, 30.0)
    words = ["sh", "-c", f"echo $$ > {child}.new; mv {child}.new {child}; exec sleep 1000"]
    # The thread remains where it would start the next command, until its process ends.
    threading.Thread(target=lambda: (one.run(words), one.run(words)), daemon=True).start()
    while not child.exists():
        time.sleep(0.01)
    pid = int(child.read_text())
    one.end()
    assert has_ended(pid)
    time.sleep(0.1)
    assert int(child.read_text()) == pid


def has_ended(pid: int) -> bool:
    """Wait until a process has ended; a zombie has ended, too."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


# The output of commands is read command by command, whole or in pieces, and floods take no memory.


def texts_of(commands: Sequence[Sequence[bytes]]) -> list[str]:
    """Let commands write pieces; return the text of each command."""
    texts: list[str] = []
    reader = OutputReader(texts.append)
    for pieces in commands:
        for piece in pieces:
            os.write(reader.theirs, piece)
        reader.mark_end()
    reader.close()
    return texts


@given(st.lists(st.lists(st.binary(max_size=300), max_size=4), max_size=8))
def test_each_command_has_its_own_text(commands: list[list[bytes]]) -> None:
    assert texts_of(commands) == [b"".join(pieces).decode(errors="replace") for pieces in commands]


def test_flood_is_cut_to_its_beginning_and_end() -> None:
    flood = [b"begin"] + [b"x" * 60_000] * 50 + [b"end"]
    first, second = texts_of([flood, [b"after"]])
    assert len(first) == 2 * KEPT
    assert (first[:5], first[-3:], second) == ("begin", "end", "after")


def test_mark_in_pieces_is_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlstress.experiments.exec.programs._PIECE", 1)
    assert texts_of([[b"ab"], [], [b"c"]]) == ["ab", "", "c"]


# Messages are counted by kind, regardless of numbers and paths, and the number of kinds is limited.


TRACEBACK = """Traceback (most recent call last):
  File "/app/tool.py", line 12, in <module>
    add()
sqlite3.OperationalError: database is locked
"""


NODE = """/app/tool.js:2
function f(){ throw new SqliteError("database is locked") }
              ^

SqliteError: database is locked
    at f (/app/tool.js:2:21)
    at node:internal/main/run_main_module:28:49 {
  code: 'SQLITE_BUSY'
}

Node.js v20.20.2
"""
JAVA = """SLF4J: no providers
Exception in thread "main" java.lang.RuntimeException: save failed
\tat A.main(A.java:1)
Caused by: org.sqlite.SQLiteException: [SQLITE_BUSY] database is locked
\tat A.g(A.java:2)
\t... 1 more
"""
RUBY = """tool.rb:1: warning: old
tool.rb:3:in `execute': database is locked (SQLite3::BusyException)
\tfrom tool.rb:3:in `<main>'
"""
PHP = """PHP Warning:  Undefined variable $x in /tmp/x.php on line 2
PHP Fatal error:  Uncaught PDOException: General error: 5 database is locked in /tmp/x.php:3
Stack trace:
#0 /tmp/x.php(3): PDO->exec()
  thrown in /tmp/x.php on line 3
"""


def test_line_of_source_code_is_above_the_error() -> None:
    assert source_line(TRACEBACK, error_line(TRACEBACK)) == "add()"
    marked = TRACEBACK.replace("add()\n", "add()\n    ~~~^^\n")
    assert source_line(marked, error_line(marked)) == "add()"
    assert source_line(NODE, error_line(NODE)).startswith("function f(){ throw new")
    assert source_line("database is locked", "database is locked") == ""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Error: stepping, database is locked (5)\n", "Error: stepping, database is locked (5)"),
        ("\n  usage: tool\nmore\n", "usage: tool"),
        (NODE, "SqliteError: database is locked"),
        (NODE.replace("^\n\n", "^\n").replace("SqliteError: database is locked", "a text"), "a text"),
        (NODE.replace("              ^", ""), "SqliteError: database is locked"),
        (NODE.replace("{\n", "{\n  [cause]: Error: disk I/O error\n"), "Error: disk I/O error"),
        (JAVA, "org.sqlite.SQLiteException: [SQLITE_BUSY] database is locked"),
        (JAVA.partition("Caused")[0], "java.lang.RuntimeException: save failed"),
        (
            "2026/11/26 begin\npanic: database is locked\n\ngoroutine 1 [running]:\n",
            "panic: database is locked",
        ),
        ("2026/11/26 begin\n2026/11/26 save: database is locked\n", "2026/11/26 save: database is locked"),
        (RUBY, "database is locked (SQLite3::BusyException)"),
        (PHP, "Uncaught PDOException: General error: 5 database is locked in /tmp/x.php:3"),
        (f"{TRACEBACK}DETAIL: more\nHINT: again\n", "sqlite3.OperationalError: database is locked"),
        (
            f"{TRACEBACK}\nDuring handling:\n\n{TRACEBACK.replace('locked', 'gone')}",
            "sqlite3.OperationalError: database is gone",
        ),
        ("Traceback (most recent call last):\n  | cut off", "| cut off"),
        ("\x1b[31mred\x1b[0m\n", "[31mred [0m"),
        ("", ""),
    ],
)
def test_line_with_the_error_is_chosen(text: str, line: str) -> None:
    assert error_line(text) == line


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("locked (5)", "locked (17)"),
        ("cannot open /tmp/a/kv.db", "cannot open /var/b.db"),
        (r"cannot open C:\data\kv.db", r"cannot open D:\x.db"),
        ("at 0x7ffe, 3.5 s", "at 0x11, 12 s"),
        ("2026-11-22 10:00:01 busy", "2027-01-02 23:59:59 busy"),
    ],
)
def test_numbers_and_paths_do_not_change_the_kind(one: str, other: str) -> None:
    assert group_key(one) == group_key(other)


def test_different_words_are_different_kinds() -> None:
    for message, other in (("locked", "busy"), ("table t1", "table t2"), ("and/or", "either/or")):
        assert group_key(message) != group_key(other)


@given(st.lists(st.text(CHARACTERS), max_size=60))
def test_every_message_is_counted_the_first_is_kept_and_memory_is_bounded(texts: list[str]) -> None:
    kinds = KindCounter(OTHER_KINDS)
    for text in texts:
        if line := error_line(text):
            kinds.add(group_key(line), line)
    lines = list(filter(None, map(error_line, texts)))
    assert kinds.counts.total() == len(lines) and len(kinds.counts) <= MAX_KINDS + (
        OTHER_KINDS in kinds.counts
    )
    for kind, example in kinds.examples.items():
        assert len(example) <= MAX_CHARS
        assert kind == OTHER_KINDS or example == next(line for line in lines if group_key(line) == kind)


# Placeholders in the words of a command are replaced; all other text is unchanged.


GIVEN = Given(7, 3, "/data/kv.db", 20, Random(1))


def words(*templates: str, values: Given = GIVEN) -> list[str]:
    return fill(parse(templates), values)


def test_placeholders_are_replaced() -> None:
    assert words("add", "{n}:{worker}", "--db={db}", "{inner}", "") == [
        *("add", "7:3", "--db=/data/kv.db", "20", "")
    ]


@given(st.text(CHARACTERS))
def test_text_with_doubled_braces_is_unchanged(text: str) -> None:
    assert words(text.replace("{", "{{").replace("}", "}}")) == [text]


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**9), st.integers())
def test_random_number_lies_within_its_bounds_and_follows_from_the_seed(
    least: int, more: int, seed: int
) -> None:
    word = f"{{random:{least}:{least + more}}}"
    first, again = (words(word, values=GIVEN._replace(random=Random(seed))) for _ in range(2))
    assert first == again
    assert least <= int(first[0]) <= least + more


@pytest.mark.parametrize("word", ["{foo}", "{}", "{", "{ n }", "{random:1}", "{random:a:b}", '{"a"}'])
def test_unknown_placeholder_is_refused_with_the_known_ones(word: str) -> None:
    with pytest.raises(UsageError, match=r"unknown placeholder .* Use \{n\}, .*, or \{\{ for a brace\.$"):
        parse([word])
    with pytest.raises(UsageError, match=r"write \{random:1:5\}"):
        parse(["{random:5:1}"])


@given(st.text(CHARACTERS))
def test_any_word_is_read_or_refused_in_a_line(word: str) -> None:
    try:
        words(word)
    except UsageError as error:
        assert len(str(error)) < 200


def test_numbers_of_commands_that_were_not_run_are_given_to_the_next_ones() -> None:
    given = {"command": [sys.executable, "{n}"], "concurrency": 3, "alone": True, "seed": 1}
    case = cases_of(given, "exec")[0]
    numbers: list[int] = []
    for worker in (1, 2, 3):
        source = CommandSource(case, DryPlace(case, Path()), worker, 1, (None, [0], "trial"))
        for run in (2, 0, 1):
            chunk = source.next_chunk(4)
            numbers += [int(words[1]) for words in list(chunk.params)[:run]]
            source.settle(chunk, run, [], source.stamps)
    assert sorted(numbers) == list(range(1, 10))
