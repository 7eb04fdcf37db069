"""The documentation is true: commands run, outputs have the shape shown, links resolve.

    python -m tests.test_docs

writes docs/options.md from the output of `--help`.
"""

import csv
import io
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstress.analysis.group import group_runs
from sqlstress.cli.commands import run as run_here
from sqlstress.cli.commands import summaries
from sqlstress.experiment import get_experiment
from sqlstress.experiments.kv.show import columns as kv_columns
from sqlstress.plan import cases_of, from_toml
from sqlstress.show.csv_file import report_csv
from sqlstress.show.json_file import report_json
from tests.brief import PROGRAM
from tests.example_report import example_report
from tests.pages import (
    PAGES,
    ROOT,
    WRITTEN,
    anchors,
    blocks,
    columns,
    first_cells,
    have_one_form,
    links,
    outputs,
    outputs_of,
    tables,
    written_commands,
)
from tests.reference import check_command_line, reference
from tests.rows import thorough
from tests.show.test_text import MOST_LINES as LINES_OF_A_RUN
from tests.test_examples import EXAMPLES, run, shortened

README = ROOT / "README.md"
INDEX = ROOT / "docs" / "README.md"
COLUMNS = ROOT / "docs" / "reading.md"
INDEX_OF_EXAMPLES = EXAMPLES / "README.md"
REFERENCE = ROOT / "docs" / "options.md"
MAIN_COMMAND = "sqlstress --concurrency 1-8 --buckets 20"

MOST_LINES = 120
SHORT = "--concurrency 1,2 --repeat 1 --duration 200ms --warmup 200ms --key-space 2000"
BRIEF = "--repeat 1 --duration 300ms --warmup 200ms"
"""With a warm-up in which several processes begin on a busy machine, too."""
AB_SHORT = (
    "--concurrency 1 --read-ratio 1 --ops 1000 --key-space 20 --verify none --max-drop 90% --max-pairs 10"
)
HUNT_SHORT = "--driver apsw --max-time 1s"
OWN_SHORT = "-c 1 --repeat 1 --ops 20"
PINNED = (
    "sqlstress -c 2 --read-ratio 0 --checkpointer restart --pinned-reader --busy-timeout 500ms --duration 2s"
)
TICKETS = (
    "sqlstress exec -c 1,4 --alone --setup examples/tickets.sql --check examples/tickets_checks.sql -- "
    'sqlite3 -cmd ".timeout 5000" {db} '
    '"INSERT INTO ticket (number) SELECT coalesce(max(number), 0) + 1 FROM ticket"'
)
LOCKED = TICKETS.replace("-c 1,4 --alone", "-c 4 --alone --where").replace(
    " --check examples/tickets_checks.sql", ""
)
NUMBERED = "--setup examples/tickets.sql --check examples/tickets_checks.sql"
LONG_LIVED = tuple(
    f"sqlstress exec -c 4 {option} {NUMBERED} -- {words}"
    for option, words in (
        ("--lines", "node examples/exec/next_ticket.js"),
        ("--inner 20", "sh examples/exec/next_tickets.sh {inner}"),
    )
)
RIGHT = (
    "sqlstress sql examples/transfer/right.sql --setup examples/transfer/schema.sql "
    "--check examples/transfer/invariants.sql"
)
PLAIN = f"{RIGHT.replace('right', 'plain')} --driver psycopg --isolation serializable --max-tries 1000"
TICKETS_BY_UTILS = (
    "sqlstress exec -c 1,4 --ops 4 --timeout 60s --setup examples/tickets.sql --check "
    "examples/tickets_checks.sql -- sqlite-utils query {db} "
    '"INSERT INTO ticket (number) SELECT coalesce(max(number), 0) + 1 FROM ticket"'
)
TRIED = "examples/tried"
PASSES = "--duration 2s --keep-going"
TRAC_APP = f"sqlstress app {TRIED}/tickets_trac.py --database trac/db/trac.db -c 1,4 --repeat 3 {PASSES}"
TRAC_SQL = (
    f"sqlstress sql {TRIED}/comment.sql {TRIED}/changelog.sql@3 --database trac/db/trac.db "
    f"--setup {TRIED}/tickets.sql --check {TRIED}/comments.sql -c 1,4"
)
TRAC_AB = (
    f"sqlstress ab sql {TRIED}/comment.sql {TRIED}/changelog.sql@3 --database trac/db/trac.db "
    f"--setup {TRIED}/tickets.sql --check {TRIED}/comments.sql -c 4 "
    '--a "--journal-mode delete" --b "--journal-mode wal"'
)
TAKEN = f"--check {TRIED}/taken_once.py:each_job_is_taken_once --"
TRIED_ELSEWHERE = (
    f"sqlstress app {TRIED}/trials_optuna.py -c 4 --repeat 3 {PASSES}",
    f"sqlstress exec -c 4 --lines {TAKEN} node {TRIED}/queue_plainjob.mjs",
    f"SQLSTRESS_DATABASE=jobs.db perl {TRIED}/queue_minion.pl setup",
    f"sqlstress exec -c 4 --lines --database jobs.db {TAKEN} perl {TRIED}/queue_minion.pl",
    f"sqlstress exec -c 4 --ops 1 --repeat 5 --setup {TRIED}/fee.sql "
    f"--check {TRIED}/fee_once.py:the_migration_ran_at_most_once -- "
    f"caribou upgrade {{db}} {TRIED}/migrations/caribou",
)
LOSING = "sqlstress --driver psycopg -c 4 --read-ratio 0 --update-ratio 1 --begin deferred"
ADDED = {
    "sqlstress sql --builtin bank -c 4 --rate 200,800 --duration 1s": "--duration 200ms --repeat 1",
    RIGHT.replace("sqlstress", "sqlstress limit") + " --p99 10ms": "-c 2 --duration 100ms --max-time 1s",
    RIGHT: "--concurrency 1,2 --repeat 1 --duration 300ms --warmup 200ms --synchronous off",
    "sqlstress sql --builtin tpcb-like@2 --builtin select-only": OWN_SHORT,
    "sqlstress sql --builtin bank -c 4 --ledger": BRIEF,
    "sqlstress app examples/app/bank.py -c 4 --ledger": BRIEF,
    MAIN_COMMAND: SHORT,
    "sqlstress -c 1-8 -b 1,20": SHORT,
    "sqlstress -c 4 --busy-timeout 0ms": f"{BRIEF} --max-failed 100%",
    "sqlstress -c 8 --read-ratio 0": BRIEF,
    "sqlstress -c 4 --read-ratio 0 --update-ratio 1 --begin deferred": BRIEF,
    "sqlstress -c 4 --rate 250,500,1000,4000 --duration 1s": "--duration 200ms --repeat 1",
    "sqlstress limit --p99 10ms --concurrency 4": "--duration 100ms --max-time 1s --key-space 2000",
    PINNED: "--duration 1s --repeat 1 --busy-timeout 100ms --max-failed 100%",
    "sqlstress -c 2 --read-ratio 0 --synchronous normal --checkpointer restart": BRIEF,
    "sqlstress -c 4 --synchronous normal --where": BRIEF,
    "sqlstress --driver psycopg -c 1-8": SHORT,
    "sqlstress sql --builtin tpcb-like --driver psycopg": OWN_SHORT,
    "sqlstress sql --builtin bank --target sqlite,postgres -c 1,4": OWN_SHORT,
    PLAIN: OWN_SHORT,
    "sqlstress app examples/app/bank_psycopg.py --target postgres -c 1,4": OWN_SHORT,
    "sqlstress app examples/app/bank_sqlalchemy.py --target sqlite,postgres -c 1,4": OWN_SHORT,
    "sqlstress --preset classic --concurrency 1-8 --buckets 1,20": "--concurrency 1",
    'sqlstress ab --a "--synchronous full" --b "--synchronous normal" --concurrency 4': AB_SHORT,
    'sqlstress ab --a "" --b "" --concurrency 2': AB_SHORT,
    "sqlstress crash --rounds 100 --concurrency 3": "--rounds 2 --seed 1",
    "sqlstress hunt": HUNT_SHORT,
    "sqlstress cycles": "--repeat 1 --cycles 5",
    "sqlstress cycles --settings wal,wal-tx --synchronous normal": "--repeat 1 --cycles 5",
    "sqlstress doctor --dir /var/lib/app --fullfsync on": "--dir .",
    TICKETS: "--repeat 1 --duration 500ms",
    LOCKED: "--repeat 1 --duration 500ms",
    get_experiment("exec").command.example: "--repeat 1 --duration 500ms",
    TICKETS_BY_UTILS: "--repeat 1 --ops 1",
    "sqlstress app examples/app/bank.py -c 1,4": BRIEF,
    "sqlstress app examples/recipes/job_queue.py -c 4": "--repeat 1 --ops 20",
    "sqlstress kv --target sqlite,postgres --concurrency 1,2 --synchronous full": SHORT,
    "sqlstress methods": "--repeat 1 --phase insert --scale 20 --driver sqlite3",
    "sqlstress methods --phase insert --driver peewee,sqlite3,apsw": "--repeat 1 --scale 20 --driver sqlite3",
    "sqlstress keys": "--repeat 1 --schema no-key --id-type uuid4,ulid --users 40 --items 200",
    "sqlstress keys --schema no-key --users 300": ("--repeat 1 --users 40 --picks 20 --items 100"),
    "sqlstress keys --schema id-rowid --id-type uuid4,uuid7 -o keys.json": "--repeat 1 --users 40",
}
"""Options added to a command, so that a test takes seconds: of an option given twice the last one counts.

Plans are shortened in the file.
"""
ELSEWHERE = {
    "sqlstress doctor --hunt": "what it finds depends on the SQLite; a test of doctor hunts",
    **dict.fromkeys(
        (
            "sqlstress watch app.db",
            "sqlstress watch shop.sqlite3",
            "sqlstress watch app.db --until-held 2s --quiet -o report.html",
            "sqlstress watch app.db --until-wal 100MB --duration 60s",
        ),
        "it needs a database in use, as tests of watch make one",
    ),
    "sqlstress hunt --max-time 20s app examples/app/bank_wrong.py": "it must fail, as a test of hunts sees",
    RIGHT.replace("right", "wrong"): "it must fail, as a test of sql sees",
    RIGHT.replace("sqlstress sql", "sqlstress ab sql --a").replace(
        "--setup", "--b examples/transfer/wrong.sql --setup"
    )
    + " -c 4": "it must fail, as a test of ab sees",
    "python -m pip install huey litequeue persist-queue trac": "the extra thorough brings them",
    "trac-admin trac initenv Project sqlite:db/trac.db": "tests/test_tried.py makes such a project",
    "sqlstress --driver psycopg --dsn postgresql://me@localhost/mine -c 1-8": "it needs a server of yours",
    **{
        f"sqlstress app {TRIED}/{name}.py -c 4 --repeat 10 {PASSES}": "a test of what was tried runs it"
        for name in ("queue_huey", "queue_lite", "queue_persist")
    },
    **dict.fromkeys((TRAC_APP, TRAC_SQL, TRAC_AB), "as above"),
    **dict.fromkeys(TRIED_ELSEWHERE, "no extra brings the library; a long test runs those in Python"),
    "python -m pip install .": ".ci/run and the workflow install the project",
    "python -m benchmarks.picture": "it draws the README's picture, which a test compares",
    "python -m pip install -e '.[test]'": ".ci/run runs the README's test command",
    "python -m pip install -e '.[test,lint]'": "as above",
    "python -m pytest": "this is it",
    "python -m tests.renew": "it writes what other tests compare",
    "python -m tests.reliability": "it runs the fault tests, and writes reports/reliability.md",
    "python -m sqlstress.show.phrases": "a test reads every phrase with its sample",
    "python -m benchmarks all --output benchmarks/results/NAME.md": "it takes hours",
    "python -m benchmarks --help": "the benchmarks have tests of their own",
    ".ci/run": "it runs the tests",
    "sqlstress crash --rounds 100 --journal-mode off --cache-size 10": "it must fail, as a test sees",
    "sqlstress exec -c 4 --setup examples/tickets.sql --check examples/tickets_checks.sql -- "
    "sh examples/next_ticket.sh": "it must fail, as the test of that example sees",
    **dict.fromkeys(LONG_LIVED, "it must fail; a test of the examples runs it with one process"),
    "sqlstress exec --target postgres -c 1,4 --setup examples/tickets.sql "
    "--check examples/tickets_checks.sql -- "
    'psql -q -c "INSERT INTO ticket (number) SELECT coalesce(max(number), 0) + 1 FROM ticket"': (
        "it must fail, as a test of such a command sees"
    ),
    "sqlstress exec -c 4 --ops 4 --timeout 60s --database bookmarks.db --check bookmarks_checks.sql -- "
    'buku --nostdin --db {db} --offline --nc -a "https://example.org/{n}"': "it needs buku and its file",
    "python -m pip install '.[postgres]'": "the extra test brings what it does",
    LOSING: "it must fail, as a test sees",
    "sqlstress fleet plan.toml --scheduler tcp://127.0.0.1:8786 --folder reports": "it needs a cluster",
    "sqlstress check baseline.json report.json --max-drop 20%": "two real ones differ",
    "sqlstress app examples/app/bank_wrong.py -c 4": "it must fail, as a test sees",
    "python -m pytest examples/test_my_settings.py": "the test of that example runs it",
    **dict.fromkeys(written_commands(ROOT / "docs" / "tutorial.md"), "tests/test_tutorial.py runs it"),
    "sqlstress app examples/recipes/job_queue_wrong.py -c 4": "it must fail, as a test of recipes sees",
}
"""Commands that no test runs, and why."""
SAME_OUTPUT = {
    "sqlstress kv --concurrency 1-8 --buckets 1,20 -o report.json": "sqlstress -c 1-8 -b 1,20",
    "sqlstress app examples/app/bank.py": "sqlstress app examples/app/bank.py -c 1,4",
    "sqlstress hunt --max-time 60s": "sqlstress hunt",
    "sqlstress hunt --max-time 60s --seed 4": "sqlstress hunt",
}
"""Commands that print the same as another command except for figures; the tests run the other command."""
PLAN = re.compile(r"sqlstress run examples/\S+( -o \S+)*")
"""Commands that the tests of the examples run; those tests compare the output."""
SAVED = re.compile(r"sqlstress (compare|report) ")
"""Commands whose output a page shows to the letter."""
READING = re.compile(r"sqlstress (compare|report|check|schema|doctor)\b")
"""Commands that measure nothing."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the documentation's commands run: reports, and examples, shortened."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "reports", folder / "reports")
    shutil.copy(folder / "reports" / "linux-1-and-20-files.json", folder / "report.json")
    for plan in (folder / "examples").glob("*.toml"):
        plan.write_text(shortened(plan, repeat=1), encoding="utf-8")
    return folder


Execute = Callable[[str], str]


@pytest.fixture
def execute(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], brief_runs: None
) -> Execute:
    """Run a command, shortened, as a user would in a checkout; return its output. stderr must be empty.

    The command runs in this process, because starting Python takes as long as many commands do.
    """
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("COLUMNS", "80")

    def printed(command: str) -> str:
        line, _, file = command.partition(" > ")
        program, *words = shlex.split(line)
        # The user's command follows --.
        place = words.index("--") if "--" in words else len(words)
        words[place:place] = shlex.split(ADDED.get(command, ""))
        if program == "python":
            output, complaints = (done := run(words, checkout)).stdout, done.stderr
        else:
            code = run_here(words)
            output, complaints = capfd.readouterr()
            assert code == 0, output + complaints
        assert complaints == ""
        if file:
            Path(file).write_text(output, encoding="utf-8")
        return output

    return printed


def run_by_a_test() -> list[str]:
    """Return the documentation's commands that these tests run, without duplicates."""
    written = dict.fromkeys(command for page in WRITTEN for command in written_commands(page))
    return [line for line in written if line not in {*ELSEWHERE, *SAME_OUTPUT} and not PLAN.fullmatch(line)]


@pytest.mark.parametrize(
    "command", [line if READING.match(line) else thorough(line) for line in run_by_a_test()]
)
def test_documented_command_runs_and_prints_the_shown_output(command: str, execute: Execute) -> None:
    check_output(command, execute(command))


def is_an_excerpt(output: str, printed: str) -> bool:
    """Return whether an output equals the printed text, except for parts that [...] lines replace."""
    parts = re.split(r"^\[\.\.\.\]\n", output, flags=re.M)
    if len(parts) == 1:
        return output == printed
    return re.fullmatch("(?s:.*\n)?".join(map(re.escape, parts)), printed) is not None


def test_excerpt_has_the_lines_in_order_and_omits_only_marked_parts() -> None:
    printed = "one\ntwo\nthree\nfour\n"
    for output in (printed, "[...]\ntwo\n[...]\nfour\n", "one\n[...]\n", "[...]\nfour\n"):
        assert is_an_excerpt(output, printed), output
    for output in (
        "one\n",
        "two\n[...]\n",
        "[...]\nthree\n[...]\ntwo\n[...]\n",
        "[...]\nwo\n[...]\n",
        "one\n[...]\nfive\n",
    ):
        assert not is_an_excerpt(output, printed), output


def check_output(command: str, printed: str) -> None:
    """Check the printed text against every page that shows the output of this command."""
    same = (name for name, other in SAME_OUTPUT.items() if other == command)
    for page, output in (each for name in (command, *same) for each in outputs_of(name)):
        if SAVED.match(command):
            assert is_an_excerpt(output, printed), page
        else:
            assert all(map(have_one_form, columns(output), columns(printed))), page
            assert len(columns(output)) == len(columns(printed)), page


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_every_row_of_an_output_has_a_cell_in_each_column(page: Path) -> None:
    for _, output in outputs(page):
        for _, rows in tables(output):
            assert rows and all(map(all, rows))


def test_every_plan_of_the_documentation_can_be_read(tmp_path: Path) -> None:
    plans = [text for page in WRITTEN for language, text in blocks(page) if language == "toml"]
    assert plans
    for text in plans:
        (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
        assert from_toml(tmp_path / "plan.toml")


def test_readme_shows_a_row_for_each_case_of_the_main_command() -> None:
    output = dict(outputs(README))[MAIN_COMMAND]
    assert len(output.splitlines()) <= LINES_OF_A_RUN
    ((_, rows),) = tables(output)
    planned = cases_of({"concurrency": "1-8", "buckets": "20"})
    assert [row[:2] for row in rows] == [[str(case.buckets), str(case.concurrency)] for case in planned]
    assert {row[-1] for row in rows} == {"ok"}


def within_sentences(page: Path) -> set[str]:
    """Return every command of ours within a sentence or a table of a page, but those that name it alone."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found = re.findall(r"`sqlstress ([^`|]+)`", prose.replace("\n", " "))
    return {words for words in found if words not in summaries() and "COMMAND" not in words}


def test_inline_commands_and_their_options_exist() -> None:
    written = {words for page in WRITTEN for words in within_sentences(page)}
    assert len(written) > 20
    for words in written:
        name, *given = shlex.split(f"kv {words}" if words.startswith("-") else words)
        check_command_line(name, given)


def test_excused_and_shortened_commands_are_in_the_documentation() -> None:
    written = {command for page in WRITTEN for command in written_commands(page)}
    assert {*ADDED, *ELSEWHERE, *SAME_OUTPUT, *SAME_OUTPUT.values()} - written == set()
    assert all((ROOT / command.split()[2]).is_file() for command in written if PLAN.fullmatch(command))


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_every_column_is_explained_on_the_page_that_the_readme_links() -> None:
    assert "docs/reading.md#the-table" in links(README)
    text = COLUMNS.read_text(encoding="utf-8")
    (group,) = group_runs(example_report().runs)
    assert [column.name for column in kv_columns(group) if f"**{column.name}**" not in text] == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_every_internal_link_resolves(page: Path) -> None:
    for target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {target}"


def test_index_links_every_page() -> None:
    assert "docs/README.md" in links(README)
    pages = {page.name for page in PAGES if page != INDEX}
    assert sorted(pages - {link.partition("#")[0] for link in links(INDEX)}) == []


def test_index_of_examples_links_every_example() -> None:
    examples = {path.name for path in EXAMPLES.iterdir() if path.is_file() and path != INDEX_OF_EXAMPLES}
    assert sorted(examples - set(links(INDEX_OF_EXAMPLES))) == []


def at(document: Any, path: str) -> Any:
    """Return the value at a path such as runs[].trials[].tps; [] is the first, * is any key."""
    for step in path.split("."):
        name = step.removesuffix("[]")
        document = next(iter(document.values())) if name == "*" else document[name]
        document = document[0] if step.endswith("[]") else document
    return document


def test_every_json_path_of_the_documentation_exists() -> None:
    document = json.loads(report_json(example_report()))
    paths = first_cells(ROOT / "docs" / "report.md", "JSON")
    assert len(paths) > 10
    for path in paths:
        at(document, path)


def test_every_csv_column_of_the_documentation_exists() -> None:
    header = next(csv.reader(io.StringIO(report_csv(example_report()))))
    columns = first_cells(ROOT / "docs" / "report.md", "CSV")
    assert columns
    assert set(columns) <= set(header)


def test_every_command_and_option_of_help_is_in_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for name in summaries():
        section = text.split(f"\n## sqlstress {name}\n")[1].split("\n## ")[0]
        for other, shared in re.findall(r"^As with \[(\w+)\].*?: (.*)$", section, re.M):
            whole = text.split(f"\n## sqlstress {other}\n")[1].split("\n## ")[0]
            section += "".join(
                whole.split(f"\n### {group}\n")[1].split("\n### ")[0]
                for group in re.findall(r"\*([^*]+)\*", shared)
            )
        rows = " ".join(re.findall(r"`[^`\n]+`", section))
        assert run_here([name, "--help"]) == 0
        printed = capsys.readouterr().out
        options = re.findall(r"^  (?:-\w, )?(--[a-z][a-z-]+)", printed, re.M)
        assert options
        assert [option for option in options if not re.search(rf"{option}[ `]", rows)] == []


def test_reference_of_options_equals_the_help_texts() -> None:
    stale = "docs/options.md is stale: run python -m tests.test_docs"
    assert REFERENCE.read_text(encoding="utf-8") == reference(), stale


def renew_outputs(page: Path) -> None:
    """Rewrite a page's outputs of commands on saved reports."""
    text = page.read_text(encoding="utf-8")
    for command, output in outputs(page):
        if SAVED.match(command) and "[...]" not in output:
            text = text.replace(f"```text\n{output}```", f"```text\n{run_brief(command)}```")
    page.write_text(text, encoding="utf-8", newline="\n")


def run_brief(command: str) -> str:
    """Return the output of a command in this checkout."""
    return run([*PROGRAM[1:], *shlex.split(command)[1:]], ROOT).stdout


if __name__ == "__main__":
    REFERENCE.write_text(reference(), encoding="utf-8", newline="\n")
    for written in WRITTEN:
        renew_outputs(written)
