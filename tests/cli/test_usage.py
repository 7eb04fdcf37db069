"""Tests of what is said of a command line that is wrong: one or two lines, and what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sqlstress.cli.group import summaries
from tests.cli.conftest import Cli, FakeSession, Said
from tests.commands import MEASURING, by_name

pytestmark = pytest.mark.usefixtures("session")

WRONG = [
    ("sql", "nothing to run", "sqlstress sql transfer.sql"),
    ("sql gone.sql", "cannot read 'gone.sql'", "No such file"),
    ("sql gone.sql@3", "cannot read 'gone.sql'", "No such file"),
    ("sql --builtin bnak", "--builtin 'bnak'", "Did you mean bank?"),
    ("sql -b bank --setup gone.sql", "cannot read 'gone.sql'", "No such file"),
    ("sql -b bank --database gone.db", "--database 'gone.db'", "there is no such file"),
    ("sql -b bank --scale 0", "--scale: '0'", "from 1 to"),
    ("sql -b bank --define x", "--define: 'x'", "NAME=VALUE"),
    ("sql -b bank --max-tries 0", "--max-tries: '0'", "from 1 to 1,000"),
    ("sql -b bank --check gone.sql", "cannot read 'gone.sql'", "No such file"),
    ("sql -b bank --check-timeout 0", "--check-timeout: '0'", "from 0.01 s to a day"),
    ("sql -b bank@0 --per-statement --ledger", "'bank@0'", "a weight is a whole number from 1"),
    ("--concurrency 0", "--concurrency: '0'", "1-1024"),
    ("--concurrency 2000", "--concurrency: '2000'", "1-1024"),
    ("--concurrency 8-1", "--concurrency: '8-1'", "runs backwards: write 1-8"),
    ("--concurrency four", "--concurrency: 'four'", "write 4, 1-8 or 1,2,4-6"),
    ("--concurrency=", "--concurrency: ''", "write 4, 1-8 or 1,2,4-6"),
    ("-c 1,2,", "--concurrency: ''", "write 4, 1-8 or 1,2,4-6"),
    ("-c -1", "--concurrency: '-1'", "write 4, 1-8 or 1,2,4-6"),
    ("--buckets 0", "--buckets: '0'", "1-10000"),
    ("-b 1.5", "--buckets: '1.5'", "write 4, 1-8 or 1,2,4-6"),
    ("-c 1-1000 -b 1-1000", "more than 1,000 cases", "split"),
    ("--duration soon", "--duration: 'soon'", "write 500ms, 2s, 2m"),
    ("--duration 0", "--duration: '0'", "from 0.01 s to a day"),
    ("--duration 2d", "--duration: '2d'", "write 500ms, 2s, 2m"),
    ("--duration 48h", "--duration: '48h'", "from 0.01 s to a day"),
    ("--duration 2000", "--duration: 2000", "write 2000ms or 2000s"),
    ("--busy-timeout 5000", "--busy-timeout: 5000", "write 5000ms or 5000s"),
    ("--checkpoint-interval 20 --checkpointer passive", "--checkpoint-interval: 20", "write 20ms or 20s"),
    ("--warmup -1s", "--warmup: '-1s'", "write 500ms, 2s, 2m"),
    ("--ops 0", "--ops: '0'", "from 1 to"),
    ("--ops 1e6", "--ops: '1e6'", "whole number"),
    ("--rate fast", "--rate: 'fast'", "write 2000, 500,1000 or 500-2000/500"),
    ("--rate 500-2000", "--rate: '500-2000'", "500-2000/500"),
    ("--rate 0", "--rate: '0'", "1-1,000,000"),
    ("--rate 5 --ops 5", "--rate needs a window", "leave out --ops or --rate"),
    ("--rate 5 --arrival often", "--arrival: 'often'", "poisson, even"),
    ("--rate 5 --latency-limit 10", "--latency-limit: 10 may mean", "10ms or 10s"),
    ("--arrival even", "--arrival is for", "add --rate"),
    ("--ops 5 --duration 1s", "leave out --ops or --duration", "--ops takes the place"),
    ("--ops 5 --warmup 1s", "leave out --ops or --warmup", "--ops takes the place"),
    ("--max-failed 2", "--max-failed: '2'", "share from 0 to 1"),
    ("--repeat 0", "--repeat: '0'", "from 1 to 1,000"),
    ("--read-ratio 1.5", "--read-ratio: '1.5'", "share from 0 to 1"),
    ("--read-ratio 50", "--read-ratio: '50'", "write 50% or 0.5"),
    ("--read-ratio 150%", "--read-ratio: '150%'", "share from 0 to 1"),
    ("--read-ratio nan", "--read-ratio: 'nan'", "share from 0 to 1"),
    ("--update-ratio -0.1", "--update-ratio: '-0.1'", "share from 0 to 1"),
    ("--update-ratio 0.6", "--read-ratio and --update-ratio", "Lower one of them"),
    ("--key-space 0", "--key-space: '0'", "from 1 to 100,000,000"),
    ("--key-space 10 --batch 11", "--batch is larger than --key-space", "distinct keys"),
    ("--distribution normal", "--distribution: 'normal'", "uniform, zipfian, sequential"),
    ("--key-type uuid", "--key-type: 'uuid'", "int, text, blob"),
    ("--value-size 7", "--value-size: '7'", "from 8 to"),
    ("--value-size 8k", "--value-size: '8k'", "whole number"),
    ("--batch 0", "--batch: '0'", "from 1 to"),
    ("--begin exclusive", "--begin: 'exclusive'", "deferred, immediate"),
    ("--loop fortran", "--loop: 'fortran'", "native, python"),
    ("--journal-mode wal2", "--journal-mode: 'wal2'", "wal, delete, truncate, persist, memory, off"),
    ("--synchronous 2", "--synchronous: '2'", "off, normal, full, extra"),
    ("--fullfsync maybe", "--fullfsync: 'maybe'", "neither on nor off"),
    ("--wal-autocheckpoint -1", "--wal-autocheckpoint: '-1'", "from 0 to"),
    ("--checkpointer full", "--checkpointer: 'full'", "none, passive, restart, truncate"),
    ("--checkpoint-interval 0", "--checkpoint-interval: '0'", "from 0.001 s"),
    ("--pinned-reader --journal-mode delete", "--pinned-reader needs a WAL", "leave out --journal-mode"),
    ("--where --driver dry", "--where can't be had: the dry driver stores nothing", "Leave it out"),
    ("--page-size 1000", "--page-size: '1000'", "power of two from 512 to 65536"),
    ("--cache-size 2147483648", "--cache-size: '2147483648'", "to 2,147,483,647"),
    ("--key-space 100000000 --value-size 1048576", "--key-space times --value-size", "1 TiB: lower one"),
    ("--batch 100000 --value-size 1048576", "--batch times --value-size", "1 GiB: lower one"),
    ("--cache-size big", "--cache-size: 'big'", "whole number"),
    ("--mmap-size 1G", "--mmap-size: '1G'", "whole number"),
    ("--pragma temp_store", "--pragma: 'temp_store'", "NAME=VALUE"),
    ("--pragma x=1;drop", "--pragma: 'x=1;drop'", "plain word or number"),
    ("--pragma a=é", "--pragma: 'a=é'", "plain word or number"),
    (f"--pragma a={'1' * 65}", "--pragma: 'a=111", "plain word or number"),
    ("--pragma synchronous=off", "--pragma: synchronous has an option", "use --synchronous"),
    ("--pragma locking_mode=exclusive", "locking_mode=exclusive", "--concurrency 1 only"),
    ("--busy-timeout forever", "--busy-timeout: 'forever'", "write 500ms, 2s, 2m"),
    ("--busy polite", "--busy: 'polite'", "default, fair"),
    ("--target sqlite,mysql", "--target: 'mysql'", "not one of sqlite, postgres"),
    ("--driver mysql", "--driver: 'mysql'", "sqlite3, apsw, psycopg, dry"),
    ("--dsn postgresql://me@localhost/db", "--dsn is for a server", "add --target postgres"),
    ("--isolation chaos", "--isolation: 'chaos'", "read-committed, repeatable-read, serializable"),
    ("--anyway", "--anyway is for a server", "add --target postgres"),
    ("--verify maybe", "--verify: 'maybe'", "none, quick, full"),
    ("--preset modern", "--preset: 'modern'", "classic"),
    ("--preset classic --ops 10", "--ops contradicts --preset classic", "fixes it at 5000"),
    (
        "--preset classic --synchronous full",
        "--synchronous contradicts",
        "leaves it unset. Leave one of them out",
    ),
    ("--seed -1", "--seed: '-1'", "from 0 to 4,294,967,295"),
    ("--seed tomorrow", "--seed: 'tomorrow'", "whole number"),
    ("--seed 99999999999999999999999", "--seed: '99999999999999999999999'", "from 0 to"),
    ("-o report", "-o 'report'", "json, csv, txt, md"),
    ("-o report.xlsx", "-o 'report.xlsx'", "json, csv, txt, md"),
    ("-o pdf:report", "-o 'pdf:report'", "FORMAT:FILE"),
    ("-o .json", "-o '.json'", "FORMAT:FILE"),
    ("-o json:", "-o 'json:'", "not the name of a file"),
    ("-o json:.", "-o 'json:.'", "not the name of a file"),
    ("-o folder.json", "-o 'folder.json'", "not the name of a file"),
    (
        "-o missing/report.json",
        "-o 'missing/report.json'",
        "missing does not exist. Make it first",
    ),
    ("-o file.txt/report.json", "-o 'file.txt/report.json'", "file.txt is a file"),
    ("--dir file.txt", "--dir", "is a file"),
    ("--duration", "--duration", "requires an argument"),
    ("-c", "-c", "requires an argument"),
    ("--quiet=yes", "--quiet", "not take a value"),
    ("--concurency 4", "--concurency", "--concurrency"),
    ("--buckets 4 --nope", "--nope", "sqlstress kv --help"),
    ("-x", "-x", "sqlstress kv --help"),
    ("kv 4", "'4' does not belong here", "kv takes options only"),
    ("--quiet kv", "'kv' does not belong here", "A command comes first: sqlstress kv and"),
    ("-c 4 doctor", "'doctor' does not belong here", "A command comes first: sqlstress doctor and"),
    ("-c 4 docter", "'docter' does not belong here", "A command comes first: sqlstress doctor and"),
    ("-b 20 1-8", "'1-8' does not belong here", "kv takes options only"),
    ("docter", "'docter'", "Did you mean doctor?"),
    ("schem", "'schem'", "Did you mean schema?"),
    ("bench", "'bench'", f"The commands are {', '.join(summaries())}"),
    ("KV", "'KV'", f"The commands are {', '.join(summaries())}"),
    (
        "keys --schema id-rowid,own",
        "--schema: 'own'",
        "id-rowid, id-norowid, pair-norowid, no-key, pair-rowid",
    ),
    ("keys --id-type uuid1", "--id-type: 'uuid1'", "int, uuid4, ulid, ulid-monotonic, uuid7"),
    ("keys --made-by me", "--made-by: 'me'", "python, sqlite"),
    ("keys --full --schema no-key", "--full is every schema", "leave out --full or --schema"),
    ("keys --users 0", "--users: '0'", "from 1 to 1,000,000"),
    ("keys --users 3", "--users 3 leaves some of 4 processes", "raise --users"),
    ("keys --picks 1000 --items 1000", "up to 1,100 distinct items", "Lower --picks or raise --items"),
    ("keys --schema no-key --made-by sqlite", "--made-by sqlite needs a --schema", "an id of their own"),
    ("keys --driver dry --made-by sqlite", "--made-by sqlite needs a database", "stores nothing"),
    ("keys --users 1000000 --picks 1000", "--users times --picks", "10,000,000 rows: lower one"),
    ("keys --begin exclusive", "--begin: 'exclusive'", "deferred, immediate"),
    ("keys --buckets 4", "--buckets", "sqlstress keys --help"),
    ("keys --pragma locking_mode=exclusive", "locking_mode=exclusive", "--concurrency 1 only"),
    ("methods --phase remove", "--phase: 'remove'", "insert, allocate, query"),
    ("methods --method 1b1,all", "--method: 'all'", "1b1, blk, blk/n, row, values, json, spc"),
    ("methods --method spc --phase insert", "--method spc has no part", "--phase"),
    ("methods --driver dry", "--driver: 'dry'", "peewee, sqlite3, apsw"),
    ("methods --scale 100", "--scale counts samples or pairs", "name one --phase"),
    ("methods --full --phase query --scale 100", "--scale and --full", "leave one of them out"),
    ("methods --phase query --scale 1009", "1,009 pairs lie between 1 and 1,009", "give more --samples"),
    ("methods --phase query --scale 1-1000000", "--scale: '1-1000000'", "more than 10,000 numbers"),
    ("methods --samples 0", "--samples: '0'", "from 2 to 3,000"),
    ("methods --chunk 0", "--chunk: '0'", "whole number"),
    ("methods --as-published=yes", "--as-published", "not take a value"),
    ("methods --full -c 1-8", "more than 1,000 cases", "split"),
    ("methods --timeout never", "--timeout: 'never'", "write 500ms, 2s, 2m"),
    ("methods --journal-mode wal", "--journal-mode", "sqlstress methods --help"),
    ("methods --pragma locking_mode=exclusive -c 2", "locking_mode=exclusive", "--concurrency 1 only"),
    ("cycles --settings wall", "--settings: 'wall'", "delete, delete-tx, wal, wal-tx, wal-tx-off, wal-off"),
    ("cycles --settings=", "--settings: ''", "delete, delete-tx, wal, wal-tx, wal-tx-off, wal-off"),
    ("cycles --cycles 0", "--cycles: '0'", "from 1 to 100,000"),
    ("cycles --rows 0", "--rows: '0'", "from 1 to 10,000"),
    ("cycles --transaction statement", "--transaction: 'statement'", "cycle, run"),
    ("cycles --transaction run --settings wal", "--transaction is for", "add one with tx"),
    ("cycles --timeout never", "--timeout: 'never'", "write 500ms, 2s, 2m"),
    ("cycles --wal-autocheckpoint 0", "--wal-autocheckpoint: '0'", "from 1 to"),
    ("cycles --wal-autocheckpoint 9 --settings delete", "--wal-autocheckpoint is for", "add one of them"),
    ("cycles --pragma locking_mode=exclusive", "hides the WAL's index", "--settings delete,delete-tx only"),
    ("cycles -c 2 --pragma locking_mode=exclusive", "lets one process in", "--concurrency 1 only"),
    ("cycles --duration 2s", "--duration", "sqlstress cycles --help"),
    ("cycles 5", "'5' does not belong here", "cycles takes options only"),
    ("crash --power --images 99", "--images: '99'", "from 100 to"),
    ("crash --power --disk wet", "--disk: 'wet'", "powersafe, spoiling"),
    ("crash --power --psow maybe", "--psow: 'maybe'", "on"),
    ("crash --matrix=yes", "--matrix", "not take a value"),
    ("presets --compare ralis", "there is no preset 'ralis'", "Did you mean rails?"),
    ("presets --compare rails,", "--compare: '' is no name", "of a preset"),
    ("presets --compare rails --against djnago", "there is no preset 'djnago'", "Did you mean django?"),
    ("presets --compare sqlite", "one preset has nothing beside it", "name another one"),
    ("presets --compare rails --rounds 2", "--rounds: '2'", "from 3 to 500"),
    ("presets --rounds 5", "--rounds is for presets that are measured", "--compare rails,django"),
    ("presets -- -c 4", "a load is for presets that are measured", "--compare rails,django"),
    ("presets -o presets.json", "-o is for what is measured", "leave it out"),
    ("presets --compare rails --concurrency 4", "No such option '--concurrency'", "presets --help"),
    ("presets --compare rails -- -c 1-4", "these are 4 cases", "such as --concurrency 4"),
    ("presets --compare rails -- app bank.py", "'app' is no load", "options of kv, or one of kv, sql"),
    ("presets --compare rails -- --rate 5", "behind --: No such option '--rate'", "options of the load"),
    ("presets --compare rails -- --read-ratio 2", "--read-ratio: '2'", "write 2% or 0.02"),
    ("presets --compare rails -- sql", "nothing to run", "sqlstress sql transfer.sql"),
    ("tune -c 1,2", "one number of processes at a time", "2 need not be for 8"),
    ("tune --buckets 1-7", "--buckets names 7 numbers", "among 6 at most"),
    ("tune --max-time 1s", "--max-time: '1s'", "from 5 s to a day"),
    ("tune --rate 5", "No such option '--rate'", "tune --help"),
    ("tune --pragma journal_mode=off", "journal_mode has an option of its own", "--journal-mode"),
    ("crash --rounds 0", "--rounds: '0'", "from 1 to 1,000,000"),
    ("crash --concurrency 1000000", "--concurrency: '1000000'", "from 1 to 256"),
    ("crash -c 1-3", "--concurrency: '1-3'", "from 1 to 256"),
    ("crash --buckets 1001", "--buckets: '1001'", "from 1 to 1,000"),
    ("crash --value-size 60000 --batch 1000", "3.8 GB of rows", "lower --batch, --value-size or --buckets"),
    ("crash --driver dry", "--driver: 'dry'", "sqlite3, apsw"),
    ("crash --pragma locking_mode=exclusive", "locking_mode=exclusive", "--concurrency 1 only"),
    ("crash --read-ratio 0.5", "--read-ratio", "sqlstress crash --help"),
    ("crash -o report.csv", "-o 'report.csv'", "json, txt, md, html, xml"),
    ("crash -o bmf:report.json -q", "-q", "sqlstress crash --help"),
    ("exec", "no command is given", "sqlstress exec [OPTIONS] -- PROGRAM"),
    ("exec -- nope", "no program 'nope'", "that can be run"),
    ("exec -- {db}", "'{db}' is to be one program", "nothing in it can stand for a value"),
    ("exec -- python {who}", "'{who}' stands for nothing", "{n}, {worker}, {db} and {random:LEAST:MOST}"),
    ("exec --alone=yes -- python", "--alone", "not take a value"),
    ("exec --setup nope.sql -- python", "cannot read 'nope.sql'", "No such file"),
    ("exec --database nope.db -- python", "--database 'nope.db'", "no such file"),
    ("exec --check nope.sql -- python", "cannot read 'nope.sql'", "No such file"),
    ("exec --check-timeout 1s -- python", "--check-timeout is of checks", "add --check"),
    ("exec --stdin nope -- python", "--stdin 'nope'", "no such file"),
    ("exec --timeout 0s -- python", "--timeout: '0s'", "duration from 0.01 s"),
    ("exec --journal-mode memory -- python", "--journal-mode: 'memory'", "wal, delete"),
    ("ab", "nothing to compare", 'give --a "OPTIONS" and --b "OPTIONS", or --python-a'),
    ("ab --a= --python-b python", "--python-a and --python-b belong together", "give both"),
    ("ab --a=--dir=x", "--a: No such option", "options of the load"),
    ("ab --b=--repeat=3", "--b: No such option", "options of the load"),
    ("ab --b=here", "--b: Got unexpected extra argument (here)", "options of the load"),
    ("ab --b='", "--b: No closing quotation", "options of the load"),
    ("ab --b=--synchronous=2", "--synchronous: '2'", "off, normal, full, extra"),
    ("ab --a=-c1-3 --b=-c2", "A has 3 cells and B has 1", "one with one"),
    ("ab --a= --max-drop 95%", "--max-drop: '95%'", "write 10% or 0.1"),
    ("ab --a= --max-drop much", "--max-drop: 'much'", "write 10% or 0.1"),
    ("ab --a= --max-pairs 9", "--max-pairs: '9'", "from 10 to 500"),
    ("ab --a= --max-time 100ms", "--max-time: '100ms'", "duration"),
    ("limit --concurrency 4", "nothing is promised", "give --p99 10ms"),
    ("limit --p99 10", "--p99: 10 may mean milliseconds or seconds", "write 10ms or 10s"),
    ("limit --p50 fast", "--p50: 'fast'", "duration"),
    ("limit --p999 2d", "--p999: '2d'", "duration"),
    ("limit --max -1s", "--max: '-1s'", "duration"),
    ("limit --p99 10ms -c 1-4", "one number of processes", "at a time"),
    ("limit --p99 10ms --repeat 3", "--repeat", "No such option"),
    ("ab --a= --metric p50", "--metric: 'p50'", "tps, p99"),
    ("ab --a= --strict=yes", "--strict", "not take a value"),
    ("ab --a= --keep", "--keep", "sqlstress ab --help"),
    ("ab --a= --repeat 3", "--repeat", "sqlstress ab --help"),
    ("ab --python-a nope --python-b nope", "cannot start nope", "Name an interpreter"),
    ("check", "BASELINE.json", "sqlstress check --help"),
    ("check nope.json nope.json", "cannot read 'nope.json'", "No such file"),
    ("check file.txt file.txt", "'file.txt': not a sqlstress report", "line 1"),
    ("check a.json b.json --max-drop 100%", "--max-drop: '100%'", "write 10% or 0.1"),
    ("check a.json b.json --metric p50", "--metric: 'p50'", "tps, p99"),
    ("run", "PLAN", "sqlstress run --help"),
    ("run nope.toml", "nope.toml", "No such file"),
    ("run a.toml b.toml", "b.toml", "sqlstress run --help"),
    ("run empty.toml", "empty.toml", "at least one [[case]]"),
    ("run file.txt", "file.txt", "is not a TOML file"),
    ("run folder.json", "folder.json", "cannot read the plan"),
    ("run typo.toml", "typo.toml, case 1: 'concurency' is not an option of kv", "Did you mean concurrency?"),
    ("run empty.toml --concurrency 4", "--concurrency", "sqlstress run --help"),
    ("doctor --driver mysql", "--driver: 'mysql'", "sqlite3, apsw, psycopg, dry"),
    ("doctor --synchronous 5", "--synchronous: '5'", "off, normal, full, extra"),
    ("doctor here", "here", "sqlstress doctor --help"),
    ("schema --json", "--json", "sqlstress schema --help"),
    ("app", "app needs a Python file", "sqlstress app bank.py"),
    ("app nope.py", "cannot read 'nope.py'", "No such file"),
    ("app file.txt", "file.txt", "its name ends with .py"),
    ("app a.py b.py", "b.py", "one FILE and options"),
    ("app a.py --setup nope.sql", "cannot read 'nope.sql'", "No such file"),
    ("app file.py --database nope.db", "nope.db", "there is no such file"),
    ("app a.py --check nope.sql", "cannot read 'nope.sql'", "No such file"),
    ("app a.py --check-timeout 0s", "--check-timeout: '0s'", "from 0.01 s"),
]
if sys.platform != "win32":
    WRONG.append((f"-o {'x' * 300}.json", "-o 'xxxxxx", "too long. Choose another file"))


@pytest.fixture
def around(cli: Cli) -> Cli:
    """A folder that holds a file, a folder named like a report, and plans."""
    Path("folder.json").mkdir()
    Path("file.txt").write_text("this is not TOML\n", encoding="utf-8")
    Path("file.py").touch()
    Path("empty.toml").write_text('workload = "kv"\n', encoding="utf-8")
    Path("typo.toml").write_text('[[case]]\nworkload = "kv"\nconcurency = 4\n', encoding="utf-8")
    return cli


def assert_short(said: Said) -> None:
    """One line, or a second one that says where to read on; nothing on standard output."""
    assert said.out == ""
    assert said.lines[0].startswith("Error: ")
    assert len(said.lines) == 1 or (len(said.lines) == 2 and said.lines[1].startswith("See sqlstress "))
    assert all(len(line) < 420 for line in said.lines)


@pytest.mark.parametrize(("line", "named", "remedy"), WRONG, ids=lambda text: text[:40])
def test_a_wrong_command_line_is_told_what_is_wrong_and_what_to_do(
    around: Cli, line: str, named: str, remedy: str
) -> None:
    said = around(*line.split())
    assert said.code == 2
    assert_short(said)
    assert named in said.err
    assert remedy in said.err
    assert FakeSession.cases == ()


def test_every_option_of_a_case_has_a_wrong_value_above() -> None:
    tried = " ".join(line for line, _, _ in WRONG)
    options = [name for own in MEASURING for name, option in by_name(own).items() if not option.argument]
    assert [name for name in options if f"--{name}" not in tried] == []


def test_a_driver_that_is_not_installed_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cli: Cli
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "sqlstress.targets.sqlite.drivers.apsw_driver", raising=False)
    monkeypatch.setitem(sys.modules, "apsw", None)
    said = cli("--driver", "apsw", "-c", "1")
    assert said.code == 2
    assert_short(said)
    assert "python -m pip install apsw, or choose another --driver" in said.err
    assert list(tmp_path.iterdir()) == []


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
names = st.sampled_from(
    [f"--{name}" for name in by_name("kv")] + ["-c", "-b", "-o", "--dir", "--keep", "--x"]
)
values = st.sampled_from(
    ["1", "4", "1-8", "wal", "off", "0.5", "2s", "classic", "temp_store=memory", "7", "-1"]
)
command_lines = st.lists(words | names | values, max_size=6) | st.lists(
    st.tuples(names, words | values).map(list), max_size=4
).map(lambda pairs: [word for pair in pairs for word in pair])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command_lines)
@example(["--", "kv"])
@example(["-"])
@example(["--help", "--concurrency"])
@example(["-h"])
@example(["--dir", ""])
def test_any_command_line_is_carried_out_or_refused_in_a_line_or_two(cli: Cli, line: list[str]) -> None:
    # What is to be measured is measured by a fake; help and version print.
    said = cli(*(word for word in line if word not in summaries() or word == "kv"))
    if said.code == 0:
        assert said.err == ""
    else:
        assert said.code == 2
        assert_short(said)
