"""Tests of compare through the command line: arguments, refusals, imports."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstress.analysis.differences import LETTERS
from sqlstress.cli.commands import short_names
from sqlstress.report import FORMAT_VERSION, Report, to_json
from tests.cli.conftest import EXAMPLE, Cli, assert_golden_refusals, assert_refused
from tests.engine.processes import environment
from tests.published import FOLDER

MACOS, WINDOWS = (FOLDER / f"003-{name}-1-file.json" for name in ("macos", "windows"))
ROOT = FOLDER.parents[1]


def save(name: str, report: Report = EXAMPLE) -> None:
    Path(name).write_text(to_json(report), encoding="utf-8")


@pytest.fixture
def saved(cli: Cli) -> Cli:
    """A folder with two reports, and with files that are not reports."""
    save("a.json")
    save("b.json")
    (run, *_) = EXAMPLE.runs
    save("elsewhere.json", replace(EXAMPLE, runs=(replace(run, case=replace(run.case, concurrency=77)),)))
    Path("notes.json").write_text("not JSON", encoding="utf-8")
    Path("list.json").write_text("[]", encoding="utf-8")
    Path("later.json").write_text(to_json(EXAMPLE).replace(f'"{FORMAT_VERSION}"', '"2.0"'), encoding="utf-8")
    Path("picture.json").write_bytes(b"\x89PNG\xff\xfe")
    Path("folder.json").mkdir()
    return cli


def test_published_figures_are_compared_with_a_real_run(cli: Cli) -> None:
    said = cli("compare", str(MACOS), str(WINDOWS), str(ROOT / "reports" / "linux-classic.json"), expected=0)
    assert "C  linux-classic" in said.out and "C Linux" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


def test_comparison_is_saved_by_suffix(saved: Cli) -> None:
    said = saved("compare", "a.json", "b.json", "-o", "out.md", "-o", "out.txt", "-o", "md:page", "--details")
    assert (said.code, said.err) == (0, "")
    assert Path("out.txt").read_text(encoding="utf-8") == said.out
    assert Path("out.md").read_text(encoding="utf-8") == Path("page").read_text(encoding="utf-8")
    assert "|   buckets |" in Path("out.md").read_text(encoding="utf-8")


def test_comparison_is_saved_as_the_page_that_report_makes(saved: Cli) -> None:
    assert saved("compare", "a.json", "b.json", "-o", "compared.html").code == 0
    assert saved("report", "a.json", "b.json", "-o", "shown.html").code == 0
    assert Path("compared.html").read_bytes() == Path("shown.html").read_bytes()


def test_page_shows_meaningless_ratios_on_request(cli: Cli) -> None:
    assert cli("compare", str(MACOS), str(WINDOWS), "--anyway", "-o", "anyway.html").code == 0
    assert "Ratios to A are shown because of " in Path("anyway.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["txt", "md", "html"])
def test_comparison_alone_goes_to_standard_output(saved: Cli, form: str) -> None:
    said = saved("compare", "a.json", "b.json", "-o", f"{form}:-", "-o", f"{form}:copy")
    assert (said.code, said.out, said.err) == (0, Path("copy").read_text(encoding="utf-8"), "")


@pytest.mark.parametrize("form", ["txt", "md", "html"])
def test_every_format_keeps_the_whole_names_of_the_files(saved: Cli, form: str) -> None:
    name = "a-name-that-is-far-too-long-for-a-column"
    save(f"{name}.json")
    assert f"B: {name}." in saved("compare", "a.json", f"{name}.json", "-o", f"{form}:-").out


def test_reports_that_cannot_be_compared_are_one_line_errors(saved: Cli) -> None:
    assert_golden_refusals(saved, "compare.txt")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("a.json folder.json", "the folder 'folder.json' has no JSON file"),
        ("a.json notes.json", "'notes.json': not a sqlstress report"),
    ],
)
def test_unreadable_file_is_a_one_line_error(saved: Cli, words: str, named: str) -> None:
    assert named in assert_refused(saved("compare", *words.split()))


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_link_to_a_compared_file_is_recognized(saved: Cli) -> None:
    os.symlink("a.json", "link.json")  # noqa: PTH211
    assert "'link.json' is given twice" in saved("compare", "a.json", "link.json").err


def test_reports_are_labelled_by_the_distinct_parts_of_their_paths() -> None:
    assert short_names([Path("x/a.json"), Path("b.json")]) == ["a", "b"]
    assert short_names([Path("x/a.json"), Path("y/a.json")]) == ["x/a", "y/a"]
    assert short_names([Path("a.json"), Path("a.txt")]) == ["a.json", "a.txt"]
    assert len({*short_names([Path(f"{letter}.json") for letter in LETTERS])}) == len(LETTERS)


def test_saved_reports_are_shown_and_compared_without_a_database_driver(saved: Cli) -> None:
    blocked = "import sys; sys.modules.update(dict.fromkeys(('sqlite3', '_sqlite3', 'apsw')))"
    commands = (["compare", str(MACOS), str(WINDOWS)], ["report", "a.json", *["-oout.xml", "-oout.md"]])
    code = f"{blocked}; from sqlstress.cli.commands import run; sys.exit(any(map(run, {commands})))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "NOT COMPARABLE" in done.stdout and Path("out.xml").exists()


def save_hosts(*names: str) -> None:
    for place, name in enumerate(names):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        report = replace(EXAMPLE, created=f"2026-01-15T09:{place:02}:00+00:00")
        path.write_text(to_json(report), encoding="utf-8")


def test_folder_is_compared_as_its_reports_and_those_of_its_subfolders(cli: Cli) -> None:
    files = ("hosts/anna.json", "hosts/bert.json", "hosts/old/carl.json")
    save_hosts(*files)
    Path("hosts/notes.txt").write_text("not a report", encoding="utf-8")
    Path("hosts/.hidden.json").touch()
    result = cli("compare", "hosts", expected=0)
    assert result == cli("compare", *files) == cli("compare", "hosts/anna.json", files[1], "hosts/old")


def test_files_of_equal_names_are_shown_with_their_folders_too(cli: Cli) -> None:
    save_hosts("hosts/artifact-a/report.json", "hosts/artifact-b/report.json")
    assert "artifact-b/report" in cli("compare", "hosts").out


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([], "the folder 'hosts' has no JSON file"),
        (["anna"], "compare takes 2 to 26 reports, not 1."),
        (
            [f"host-{place}" for place in range(len(LETTERS) + 1)],
            "the folder 'hosts' has more than 26 JSON files.",
        ),
    ],
    ids=["empty", "one", "27"],
)
def test_folder_with_too_few_or_too_many_reports_is_refused(cli: Cli, names: list[str], reason: str) -> None:
    Path("hosts").mkdir()
    save_hosts(*(f"hosts/{name}.json" for name in names))
    assert reason in assert_refused(cli("compare", "hosts"))


def test_damaged_report_in_a_folder_is_reported_by_name(cli: Cli) -> None:
    save_hosts("hosts/anna.json", "hosts/bert.json")
    Path("hosts/bad.json").write_text("{", encoding="utf-8")
    error = assert_refused(cli("compare", "hosts"))
    assert "bad.json" in error and "not a sqlstress report" in error


def test_unreadable_folder_is_reported_by_name(
    cli: Cli, restricted_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(restricted_folder)
    save_hosts("hosts/anna.json", "hosts/bert.json", "hosts/closed/carl.json")
    Path("hosts/closed").chmod(0)
    result = cli("compare", "hosts")
    Path("hosts/closed").chmod(0o700)
    assert (result.code, result.out, len(result.lines)) == (2, "", 1)
    assert "cannot read the folder 'hosts/closed': Permission denied." in result.err


def test_only_regular_files_of_a_folder_are_compared(cli: Cli) -> None:
    save_hosts("hosts/anna.json", "hosts/bert.json")
    if sys.platform != "win32":
        os.mkfifo("hosts/pipe.json")
    Path("hosts/folder.json").mkdir()
    assert cli("compare", "hosts").code == 0
