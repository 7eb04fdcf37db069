"""Tests of what is said of a command line that is wrong: one or two lines, and what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sqlstress.cli.commands import summaries
from tests.cli.conftest import Cli, FakeSession, Said
from tests.commands import MEASURING, by_name

pytestmark = pytest.mark.usefixtures("session")

WRONG = [
    ("sql", "nothing to run", "sqlstress sql transfer.sql"),
    ("sql gone.sql", "cannot read 'gone.sql'", "No such file"),
    ("sql --builtin bnak", "--builtin 'bnak'", "Did you mean bank?"),
    ("sql -b bank --setup gone.sql", "cannot read 'gone.sql'", "No such file"),
    ("sql -b bank --database gone.db", "--database: no such file: 'gone.db'", "no such file"),
    ("sql -b bank --define x", "--define: 'x'", "NAME=VALUE"),
    ("sql -b bank@0 --per-statement --ledger", "'bank@0'", "the weight must be a whole number from 1"),
    ("hunt --max-time 0", "--max-time: '0'", "from 1 s to a day"),
    ("hunt --pause-at lunch", "--pause-at: 'lunch'", "such as open or read"),
    ("hunt --longest-pause 5", "--longest-pause: 5", "write 5ms or 5s"),
    ("hunt --pause 5", "--pause needs your own work", "--writer-pause"),
    ("watch gone.db", "no such file: gone.db", "."),
    ("watch a.db --rate 0", "--rate: '0'", "from 1 to 1,000"),
    ("watch a.db --duration 0s", "--duration: '0s'", "from 0.1 s to a day"),
    ("watch a.db --until-held soon", "--until-held: 'soon'", "write 500ms, 2s, 2m"),
    ("watch a.db --plain=yes", "--plain", "does not take a value"),
    ("hunt exec x", "hunt does not support 'exec'", "Give sql FILE or app FILE"),
    ("hunt 20 sec", "hunt does not support '20'", "--max-time sets the time"),
    ("hunt --writers 2 app examples/app/bank.py", "--writers is not supported by hunt app", "leave it out"),
    ("hunt --driver dry", "--driver: 'dry'", "sqlite3, apsw"),
    ("hunt kv --driver dry", "pauses need SQLite", "Choose --driver sqlite3 or apsw"),
    ("--concurrency 8-1", "--concurrency: '8-1'", "is reversed: write 1-8"),
    ("-c 1-1000 -b 1-1000", "more than 1,000 cases", "split"),
    ("--duration 2000", "--duration: 2000", "write 2000ms or 2000s"),
    ("--rate 5 --ops 5", "--rate needs a window", "Leave out --ops or --rate"),
    ("--rate 5 --latency-limit 10", "--latency-limit: 10 needs a unit", "10ms or 10s"),
    ("--arrival even", "--arrival needs an open loop", "add --rate"),
    ("--ops 5 --duration 1s", "Leave out --ops or --duration", "--ops replaces the window"),
    ("--ops 5 --warmup 1s", "Leave out --ops or --warmup", "--ops replaces the window"),
    ("--read-ratio 50", "--read-ratio: '50'", "write 50% or 0.5"),
    ("--update-ratio 0.6", "--read-ratio and --update-ratio", "Lower one of them"),
    ("--key-space 10 --batch 11", "--batch is larger than --key-space", "distinct keys"),
    ("--pinned-reader --journal-mode delete", "--pinned-reader needs a WAL", "leave out --journal-mode"),
    ("--pinned-reader --driver dry", "--pinned-reader needs a database", "stores nothing"),
    ("--checkpoint-interval 1s", "--checkpoint-interval needs --checkpointer or --pinned-reader", "add"),
    ("--checkpointer passive --journal-mode delete", "--checkpointer needs a WAL", "leave out"),
    ("--checkpointer passive --wal-autocheckpoint 10", "turns off automatic checkpoints", "leave out"),
    ("-c 1 --checkpointer passive --pragma locking_mode=exclusive", "a further process", "leave one"),
    ("--begin deferred", "--begin needs transactions of several statements", "add --batch"),
    ("--where --driver dry", "--where is not available: the dry driver stores nothing", "Leave it out"),
    ("exec --where --target postgres -- true", "--where is not available", "only SQLite's locks"),
    ("--cache-size 2147483648", "--cache-size: '2147483648'", "to 2,147,483,647"),
    ("--key-space 100000000 --value-size 1048576", "--key-space times --value-size", "1 TiB. Lower one"),
    ("--batch 100000 --value-size 1048576", "--batch times --value-size", "1 GiB. Lower one"),
    ("--pragma a=é", "--pragma: 'a=é'", "plain word or number"),
    (f"--pragma a={'1' * 65}", "--pragma: 'a=111", "plain word or number"),
    ("--pragma synchronous=off", "--pragma: synchronous has its own option", "use --synchronous"),
    ("--pragma locking_mode=exclusive", "locking_mode=exclusive", "Use --concurrency 1."),
    ("--synchronous normla", "--synchronous: 'normla'", "extra. Did you mean normal?"),
    ("--driver sqllite3", "--driver: 'sqllite3'", "dry. Did you mean sqlite3?"),
    ("keys --id-type uuid4,uuid", "--id-type: 'uuid'", "Did you mean uuid7, uuid4 or ulid?"),
    ("-o report.jsno", "-o 'report.jsno'", "Did you mean json?"),
    ("--target sqlite,mysql", "--target: 'mysql'", "not one of sqlite, postgres"),
    ("--driver mysql", "--driver: 'mysql'", "sqlite3, apsw, psycopg, dry"),
    ("--dsn postgresql://me@localhost/db", "--dsn needs a server", "add --target postgres"),
    ("--anyway", "--anyway needs a server", "add --target postgres"),
    ("--preset classic --ops 10", "--ops contradicts --preset classic", "fixes it at 5000"),
    (
        "--preset classic --synchronous full",
        "--synchronous contradicts",
        "leaves it unset. Leave one of them out",
    ),
    ("-o report", "-o 'report'", "json, csv, txt, md"),
    ("-o .json", "-o '.json'", "FORMAT:FILE"),
    ("-o json:", "-o 'json:'", "not a file name"),
    ("-o folder.json", "-o 'folder.json'", "not a file name"),
    (
        "-o missing/report.json",
        "-o 'missing/report.json'",
        "missing. Create it first",
    ),
    ("-o file.txt/report.json", "-o 'file.txt/report.json'", "file.txt is a file"),
    ("--dir file.txt", "--dir", "is a file"),
    ("--duration", "--duration", "requires an argument"),
    ("-c", "-c", "requires an argument"),
    ("--quiet=yes", "--quiet", "not take a value"),
    ("--concurency 4", "--concurency", "--concurrency"),
    ("--buckets 4 --nope", "--nope", "sqlstress kv --help"),
    ("kv 4", "unexpected argument '4'", "kv takes options only"),
    ("-c 4 doctor", "unexpected argument 'doctor'", "Write the command first: sqlstress doctor"),
    ("-b 20 1-8", "unexpected argument '1-8'", "kv takes options only"),
    ("docter", "'docter'", "Did you mean doctor?"),
    ("--verison", "No such option '--verison'", "--version"),
    (
        "ab --a=--sync",
        "--a: No such option '--sync'. Did you mean --synchronous?",
        "options of the load",
    ),
    ("app README.md", "FILE: 'README.md'", "must end with .py"),
    ("bank.py", "no such command: 'bank.py'", "Did you mean sqlstress app bank.py?"),
    ("a/transfer.sql -c 2", "'a/transfer.sql'", "Did you mean sqlstress sql a/transfer.sql?"),
    ("help docter", "'docter'", "Did you mean doctor?"),
    ("-- kv", "unexpected argument 'kv'", "Write the command first: sqlstress kv"),
    ("-", "unexpected argument '-'", "kv takes options only"),
    ("bench", "'bench'", f"The commands are {', '.join(summaries())}"),
    (
        "keys --schema id-rowid,own",
        "--schema: 'own'",
        "id-rowid, id-norowid, pair-norowid, no-key, pair-rowid",
    ),
    ("keys --full --schema no-key", "--full measures every schema", "leave out --full or --schema"),
    ("keys --users 3", "--users 3 is less than the 4 processes", "raise --users"),
    ("keys --picks 1000 --items 1000", "up to 1,100 distinct items", "Lower --picks or raise --items"),
    ("keys --schema no-key --made-by sqlite", "--made-by sqlite needs a --schema", "picks have an id"),
    ("keys --driver dry --made-by sqlite", "--made-by sqlite needs a database", "stores nothing"),
    ("keys --users 1000000 --picks 1000", "--users times --picks", "10,000,000 rows. Lower one"),
    ("keys --buckets 4", "--buckets", "sqlstress keys --help"),
    ("methods --method 1b1,all", "--method: 'all'", "1b1, blk, blk/n, row, values, json, spc"),
    ("methods --method spc --phase insert", "--method spc does not exist", "--phase"),
    ("methods --phase allocate --scale 3001", "--scale 3001 is not supported by", "2 to 3,000 samples"),
    ("methods --phase query --scale 100 --samples 19", "10 and 10 samples, and the queried", "has 19"),
    ("methods --samples 100", "--scale 4,000: these pairs need 50 and 80", "raise --samples"),
    ("methods --samples 60 --phase insert", "--samples applies to queries", "add --phase query"),
    ("methods --chunk 5 --method blk", "--chunk applies to BLK/n", "add it to --method"),
    ("methods --as-published --phase insert", "--as-published applies to insertions", "add both to --phase"),
    ("methods --scale 100", "--scale counts samples or pairs", "give one --phase"),
    ("methods --full --phase query --scale 100", "--scale and --full", "leave one of them out"),
    ("methods --phase query --scale 1009", "--scale 1,009: these pairs need 1 and 1,009", "raise --samples"),
    ("methods --phase query --scale 1-1000000", "--scale: '1-1000000'", "more than 10,000 numbers"),
    ("methods --full -c 1-8", "more than 1,000 cases", "split"),
    ("methods --journal-mode wal", "--journal-mode", "sqlstress methods --help"),
    ("cycles --settings wall", "--settings: 'wall'", "delete, delete-tx, wal, wal-tx, wal-tx-off, wal-off"),
    (
        "cycles --transaction run --settings wal",
        "--transaction needs a setting with tx",
        "add one to --settings",
    ),
    (
        "cycles --wal-autocheckpoint 9 --settings delete",
        "--wal-autocheckpoint needs the setting wal",
        "add one to --settings",
    ),
    ("cycles --pragma locking_mode=exclusive", "hides the WAL index", "--settings delete,delete-tx only"),
    (
        "cycles --pragma locking_mode=exclusive --settings delete -c 2",
        "allows one process",
        "use --concurrency 1",
    ),
    ("presets --compare ralis", "no such preset: 'ralis'", "Did you mean rails?"),
    ("presets --compare rails,", "--compare: '' is not the name", "of a preset"),
    ("presets --compare rails --against djnago", "no such preset: 'djnago'", "Did you mean django?"),
    ("presets --compare sqlite", "--compare needs two presets", "add another"),
    ("presets --rounds 5", "--rounds needs presets to measure", "--compare rails,django"),
    ("presets -- -c 4", "a load needs presets to measure", "--compare rails,django"),
    ("presets -o presets.json", "nothing is measured", "Leave out -o"),
    ("presets --compare rails --concurrency 4", "No such option '--concurrency'", "presets --help"),
    ("presets --compare rails -- -c 1-4", "the load has 4 cases", "such as --concurrency 4"),
    ("presets --compare rails -- app bank.py", "'app' is not a load", "options of kv, or one of kv, sql"),
    ("presets --compare rails -- --rate 5", "behind --: No such option '--rate'", "options of the load"),
    ("presets --compare rails -- --read-ratio 2", "--read-ratio: '2'", "write 2% or 0.02"),
    ("presets --compare rails -- sql", "nothing to run", "sqlstress sql transfer.sql"),
    ("tune -c 1,2", "tune takes one number of processes", "Give one --concurrency"),
    ("tune --buckets 1-7", "--buckets has 7 numbers", "at most 6"),
    ("tune --max-time 1s", "--max-time: '1s'", "from 5 s to a day"),
    ("tune --rate 5", "No such option '--rate'", "tune --help"),
    ("crash -c 1-3", "--concurrency: '1-3'", "from 1 to 256"),
    (
        "crash --value-size 60000 --batch 1000",
        "each kill would read 3.8 GB of rows",
        "lower --batch, --value-size or --buckets",
    ),
    ("crash --power --rounds 3", "--rounds is not supported by power cuts", "leave it out"),
    ("crash --matrix --synchronous full", "--matrix tries every --synchronous", "leave it out"),
    ("crash --power --driver sqlite3", "power cuts need --driver apsw", "simulate the disk"),
    ("crash --power --buckets 100", "at most 100 files and 200", "Lower --buckets or --concurrency"),
    ("crash --power --pragma locking_mode=exclusive", "allows one connection", "use --concurrency 1"),
    ("crash --images 500", "--images needs power cuts", "add --power or --matrix"),
    ("crash --power --images 99", "--images: '99'", "from 100 to 1,000,000"),
    ("crash -o report.csv", "-o 'report.csv'", "json, txt, md, html, xml"),
    ("crash -o bmf:report.json -q", "-q", "sqlstress crash --help"),
    ("exec", "no command given", "sqlstress exec [OPTIONS] -- PROGRAM"),
    ("exec -- nope", "no such program: 'nope'", "no such program"),
    ("exec -- {db}", "the program '{db}'", "must not contain placeholders"),
    ("exec -- python {who}", "unknown placeholder '{who}'", "{n}, {worker}, {db}, {inner} and"),
    ("exec --setup nope.sql -- python", "cannot read 'nope.sql'", "No such file"),
    ("exec --check-timeout 1s -- python", "--check-timeout needs --check", "add it"),
    ("exec --lines --stdin x -- python", "--lines writes the program's standard input", "--stdin"),
    ("exec --lines -- python {n}", "with --lines, {n} is the line", "leave it out"),
    ("exec --inner 2 --rate 5 -- python", "--inner needs a closed loop", "--rate"),
    ("exec --inner 0 -- python", "--inner:", "1 to 1,000,000"),
    ("exec --stdin nope -- python", "--stdin: no such file: 'nope'", "no such file"),
    ("ab", "nothing to compare", 'give --a "OPTIONS" and --b "OPTIONS", or --python-a'),
    ("ab --a= --python-b python", "--python-a needs --python-b", "give both"),
    ("ab --a=--dir=x", "--a: No such option", "options of the load"),
    ("ab --b=--repeat=3", "--b: No such option", "options of the load"),
    ("ab --b=here", "--b: Got unexpected extra argument (here)", "options of the load"),
    ("ab --b='", "--b: No closing quotation", "options of the load"),
    ("ab --a=-c1-3 --b=-c2", "A has 3 cases and B has 1", "compared in pairs"),
    ("ab --a= --max-drop 95%", "--max-drop: '95%'", "write 10% or 0.1"),
    ("limit --concurrency 4", "no latency promise", "give --p99 10ms"),
    ("limit --p99 10", "--p99: 10 needs a unit", "write 10ms or 10s"),
    ("limit --p99 10ms --rate 5", "No such option", "limit --help"),
    ("limit --p99 10ms -c 1-4", "limit finds a single rate", "Give one --concurrency"),
    ("ab --a= --keep", "--keep", "sqlstress ab --help"),
    ("ab --python-a nope --python-b nope", "cannot start nope", "Name an interpreter"),
    ("check", "BASELINE.json", "sqlstress check --help"),
    ("check nope.json nope.json", "cannot read 'nope.json'", "No such file"),
    ("check file.txt file.txt", "'file.txt': not a sqlstress report", "line 1"),
    ("check a.json b.json --max-drop 100%", "--max-drop: '100%'", "write 10% or 0.1"),
    ("run", "PLAN", "sqlstress run --help"),
    ("run nope.toml", "nope.toml", "No such file"),
    ("run a.toml b.toml", "b.toml", "sqlstress run --help"),
    ("run empty.toml", "empty.toml", "at least one [[case]]"),
    ("run file.txt", "file.txt", "is not a TOML file"),
    ("run folder.json", "folder.json", "cannot read the plan"),
    ("run typo.toml", "typo.toml, case 1: 'concurency' is not an option of kv", "Did you mean concurrency?"),
    ("run empty.toml --concurrency 4", "--concurrency", "sqlstress run --help"),
    ("doctor --driver mysql", "--driver: 'mysql'", "sqlite3, apsw, psycopg, dry"),
    ("doctor here", "here", "sqlstress doctor --help"),
    ("schema --json", "--json", "sqlstress schema --help"),
    ("app", "app needs a Python file", "sqlstress app bank.py"),
    ("app file.txt", "file.txt", "its name must end with .py"),
    ("app a.py b.py", "b.py", "one FILE and options"),
    ("app a.py --setup nope.sql", "cannot read 'nope.sql'", "No such file"),
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
    assert remedy.lower() in said.err.lower()
    assert FakeSession.cases == ()


ANY_TEXT = {"setup", "database", "check", "stdin", "builtin", "compare", "against", "a", "b"}
"""Options that take names of files and others: wrong ones are above. So are those of the Pythons."""


@pytest.mark.parametrize("command", MEASURING)
def test_every_option_says_that_a_value_is_wrong_and_which(around: Cli, command: str) -> None:
    needed = {"ab": ["--a="], "limit": ["--p99=10ms"]}.get(command, [])
    program = ["--", "python"] if command == "exec" else []
    for name, option in by_name(command).items():
        if option.argument or name in ANY_TEXT or name.startswith("python-"):
            continue
        power = ["--power"] if option.group == "Power cuts" else []
        said = around(command, *needed, *power, f"--{name}=~wrong", *program)
        assert_short(said)
        assert (said.code, f"--{name}" in said.lines[0]) == (2, True), said
        # In a connection string there may be a password.
        assert option.flag or name == "dsn" or "~wrong" in said.lines[0]
    assert FakeSession.cases == ()


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
