"""Tests of -o: where reports are saved, in which form, and when."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlstress.cli.outputs import Output, Saver, parse_output
from sqlstress.errors import Interrupted, UsageError
from sqlstress.report import from_json
from sqlstress.show.formats import FORMATS
from sqlstress.system.interrupt import install_stop_handlers
from tests.cli.conftest import EXAMPLE, Cli, FakeSession, assert_refused
from tests.faults.surroundings import is_root, read_only
from tests.rows import fault


@pytest.mark.parametrize(
    ("text", "form", "name"),
    [
        ("report.json", "json", "report.json"),
        ("REPORT.CSV", "csv", "REPORT.CSV"),
        ("my.report.md", "md", "my.report.md"),
        ("json:report", "json", "report"),
        ("md:report.json", "md", "report.json"),
        *([] if sys.platform == "win32" else [("csv:a:b", "csv", "a:b")]),  # a: is a drive there
        ("sub/report.json", "json", "sub/report.json"),
        ("with space.json", "json", "with space.json"),
    ],
)
def test_format_is_the_suffix_or_the_prefix_before_the_colon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, form: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    assert parse_output(text) == Output(form, Path(name))


def test_report_that_is_too_large_to_read_again_is_a_warning(
    cli: Cli, session: type[FakeSession], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert cli("-o", "report.json", "--quiet").err == ""
    size = (tmp_path / "report.json").stat().st_size
    monkeypatch.setattr("sqlstress.cli.outputs.MAX_BYTES", size - 100)
    said = cli("-o", "report.json", "-o", "report.csv", "--quiet")
    assert (said.code, len(said.lines)) == (0, 1)
    assert said.err.startswith("Warning: report.json is larger than ")


def test_stream_is_written_once_at_the_end(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("there are no such paths")
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        saver = Saver([parse_output(str(pipe))])
        saver.after_step(EXAMPLE)
        assert os.read(reader, 1) == b""
        saver.save_final(EXAMPLE)
        assert os.read(reader, 1 << 20).decode() == FORMATS["csv"](EXAMPLE)
        assert saver.problem is None
    finally:
        os.close(reader)


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("form", [form for form in FORMATS if form != "github-action-benchmark"])
def test_dash_is_standard_output_without_other_text(cli: Cli, tmp_path: Path, form: str) -> None:
    said = cli("-o", f"{form}:-", "-o", "copy.json", "--keep")
    assert (said.code, said.lines) == (0, ["The databases are kept in sqlstress-01234567."])
    saved = from_json((tmp_path / "copy.json").read_text(encoding="utf-8"))
    assert said.out == FORMATS[form](saved).replace("\r\n", "\n")
    assert [path.name for path in tmp_path.iterdir()] == ["copy.json"]


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_by_another_name_gets_no_other_text(cli: Cli, name: str) -> None:
    if sys.platform == "win32":
        pytest.skip("there are no such paths")
    assert (
        cli("-o", f"csv:{name}").out == ""
    )  # sqlstress writes to the descriptor itself, which is not captured here


@pytest.mark.usefixtures("session")
def test_annotations_for_github_leave_the_standard_output_to_the_report(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    said = cli("-o", "json:-", "--github")
    assert from_json(said.out).runs == EXAMPLE.runs
    assert "::warning " in said.err


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        (("-o", "-"), "the format is missing. Write FORMAT:-, such as json:-"),
        (("-o", "json:-", "-o", "csv:-"), "only one report can go to standard output"),
        (("-o", "github-action-benchmark:-"), "writes two files. Give the name of the first"),
    ],
    ids=str,
)
def test_outputs_unfit_for_standard_output_are_refused(
    cli: Cli, tmp_path: Path, outputs: tuple[str, ...], told: str
) -> None:
    assert told in assert_refused(cli(*outputs))
    assert not list(tmp_path.iterdir())


@fault("resources", "the report's folder gone for a while", "the report is saved once it is back")
def test_file_that_is_locked_for_a_while_is_written_in_the_end(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    saver = Saver([parse_output(str(tmp_path / "sub" / "report.json"))])
    (tmp_path / "sub").rmdir()
    saver.after_step(EXAMPLE)
    assert saver.problem is not None
    (tmp_path / "sub").mkdir()
    saver.after_step(EXAMPLE)
    assert saver.problem is None
    assert from_json((tmp_path / "sub" / "report.json").read_text(encoding="utf-8")) == EXAMPLE


@fault(
    "resources", "a report's place that can't be written from the start", "exit 2 before anything is measured"
)
def test_unwritable_folder_is_refused_before_the_measurement(restricted_folder: Path) -> None:
    restricted_folder.chmod(0o500)
    why = r"no permission to create files in this folder \(dr-x------\)\. Choose another file"
    with pytest.raises(UsageError, match=rf"cannot write {restricted_folder}: {why}"):
        parse_output(str(restricted_folder / "report.json"))
    restricted_folder.chmod(0o700)


def test_folder_that_cannot_be_opened_is_refused_with_its_permission(restricted_folder: Path) -> None:
    folder = restricted_folder / "closed"
    folder.mkdir(0o600)
    with pytest.raises(UsageError, match=rf"no permission .*{folder} \(drw-------\)"):
        parse_output(str(folder / "report.json"))


def test_file_without_permission_is_refused_with_its_permission(restricted_folder: Path) -> None:
    report = restricted_folder / "report.json"
    report.write_text("mine", encoding="utf-8")
    report.chmod(0o400)
    with pytest.raises(UsageError, match=rf"cannot write {report}: no permission \(-r--------\)\. Choose"):
        parse_output(str(report))
    assert report.read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="/proc is on Linux only")
def test_folder_that_takes_no_file_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"cannot write /proc: No such file or directory\. Choose"):
        parse_output("/proc/report.json")


@fault(
    "resources",
    "a report's folder on a file system that is read-only",
    "exit 2 before anything is measured, with the reason",
)
def test_read_only_file_system_is_refused_with_the_reason(tmp_path: Path) -> None:
    with (
        read_only(tmp_path),
        pytest.raises(UsageError, match=r"(Read-only file system|\(dr-x------\))\. Choose"),
    ):
        parse_output(str(tmp_path / "report.json"))
    assert list(tmp_path.iterdir()) == []


@fault(
    "resources", "a report's place that can't be written from the start", "exit 2 before anything is measured"
)
@pytest.mark.skipif(sys.platform == "win32", reason="rights of POSIX")
@pytest.mark.parametrize("command", ["kv", "ab", "report", "compare"])
def test_unwritable_output_is_refused_at_once(cli: Cli, tmp_path: Path, command: str) -> None:
    arguments = {
        "kv": ("--driver", "dry"),
        "ab": ("ab", "--a=--synchronous=full", "--b=--synchronous=off"),
        "report": ("report", "a.json"),
    }
    for folder in ("folder.md", "locked"):
        (tmp_path / folder).mkdir()
    (tmp_path / "dangling.md").symlink_to(tmp_path / "nowhere" / "x.md")
    (tmp_path / "kept.md").write_text("mine", encoding="utf-8")
    (tmp_path / "kept.md").chmod(0o400)
    names = ["folder.md", "missing/x.md", "locked/x.md", "dangling.md", *["kept.md"] * (not is_root())]
    with read_only(tmp_path / "locked"):
        for name in names:
            words = arguments.get(command, ("compare", "a.json", "b.json"))
            assert f"-o '{name}'" in assert_refused(cli(*words, "-o", name))
    assert (tmp_path / "kept.md").read_text(encoding="utf-8") == "mine"


@pytest.fixture
def heard_once() -> Iterator[None]:
    """Let signals to stop raise KeyboardInterrupt, as in the program; restore the handlers afterwards."""
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    install_stop_handlers()
    yield
    for number in before:
        if signal.getsignal(number) != before[number]:
            signal.signal(number, before[number])


def test_stop_during_a_save_raises_interrupted(heard_once: None) -> None:
    with pytest.raises(Interrupted, match=r"^stopped\.$"), Saver([]).interruption_explained():
        signal.raise_signal(signal.SIGINT)


def test_stop_after_all_is_saved_is_ignored(heard_once: None) -> None:
    with Saver([]).interruption_explained():
        pass
    signal.raise_signal(signal.SIGINT)
