"""No process reads the output, or the errors: that is no error, and hides none."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sqlstress.engine.folder import PREFIX
from sqlstress.statistics.units import plural
from tests.brief import PROGRAM
from tests.engine.processes import environment, saved_report, sqlstress
from tests.faults.commands import EXPERIMENTS, REPORT, SHORT, Held, left, posix, stopped
from tests.faults.held import MOMENTS
from tests.rows import fault, mostly_long, thorough

pytestmark = posix

KV = ("kv", "-c", "1", *SHORT)
SEVERAL = [experiment for experiment in EXPERIMENTS if experiment != "ab"]


def close(command: Held, name: str) -> None:
    """Stop reading a standard stream, as `| head` does."""
    getattr(command.process, name).close()
    setattr(command.process, name, None)


@pytest.mark.thorough
@fault(
    "stop",
    "standard output of `kv`, `methods`, `keys`, `cycles` or `crash` closed at any moment",
    "exit 0, no message; the report is saved",
)
@pytest.mark.parametrize("experiment", mostly_long(("kv", *SEVERAL), ("kv",)))
@pytest.mark.parametrize("moment", MOMENTS)
def test_closed_output_is_no_error(tmp_path: Path, experiment: str, moment: str) -> None:
    with Held(tmp_path, moment, *EXPERIMENTS.get(experiment, KV), *REPORT) as command:
        close(command, "stdout")
        code, _, errors = command.finish()
    assert (code, errors) == (0, "")
    report = saved_report(tmp_path)
    verdicts = [run.verdict for run in report.runs]
    if "crash" in report.results:
        verdicts.append(report.results["crash"].verdict)
    assert {verdict.status for verdict in verdicts} == {"ok"}
    assert left(tmp_path) == ["report.json"]


@pytest.mark.thorough
@fault(
    "stop",
    "standard output closed, then Ctrl-C, in the third slice of `ab`",
    "exit 130; the slices before are saved",
)
def test_comparison_with_closed_output_can_be_stopped(tmp_path: Path) -> None:
    with Held(tmp_path, "measuring", *EXPERIMENTS["ab"], *REPORT, count=3) as command:
        close(command, "stdout")
        code, _, errors = stopped(command)
    slices = sum(len(run.trials) for run in saved_report(tmp_path).runs)
    assert slices in (1, 2)  # A slice is measured again if one of its workers came late.
    assert (code, errors) == (
        130,
        f"Stopped after {plural(slices, 'slice')}; what was measured is in report.json.\n",
    )
    assert left(tmp_path) == ["report.json"]


@fault("stop", "standard error closed, then SIGTERM, at any moment", "exit 130")
@pytest.mark.thorough
@pytest.mark.parametrize("moment", mostly_long(MOMENTS, ("measuring", "saving", "showing")))
def test_closed_error_stream_changes_no_exit_code(tmp_path: Path, moment: str) -> None:
    with Held(tmp_path, moment, *KV, *REPORT) as command:
        close(command, "stderr")
        code, _, _ = stopped(command, "SIGTERM")
    assert code == 130
    assert left(tmp_path) == (["report.json"] if moment in ("saving", "showing") else [])


@pytest.mark.thorough
@fault(
    "stop",
    "a full disk behind standard output, then Ctrl-C, with `--keep`",
    "exit 130, both are reported; the databases are kept",
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_stop_works_without_usable_streams(tmp_path: Path) -> None:
    with (
        Path("/dev/full").open("w") as full,
        Held(tmp_path, "measuring", *KV, "--keep", stdout=full) as command,
    ):
        code, _, errors = stopped(command)
    assert code == 130
    assert errors == (
        "Stopped after 0 of 1 cases.\nError: cannot write to standard output: No space left on device.\n"
    )
    (folder,) = left(tmp_path)
    assert folder.startswith(PREFIX)


@fault("stop", "standard output closed while `--help` prints", "exit 0, no message")
def test_help_into_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m sqlstress kv --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment()
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.thorough
@fault("resources", "a full disk behind standard output", "exit 4; the report is saved")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_standard_output_on_a_full_disk_is_an_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        code, _, errors = sqlstress(tmp_path, *KV, "--driver", "dry", "-o", "report.json", stdout=full)
    assert (code, errors) == (4, "Error: cannot write to standard output: No space left on device.\n")
    assert (tmp_path / "report.json").exists()


@pytest.mark.thorough
@fault("stop", "standard output and error closed from the start", "exit 0; the report is saved")
def test_no_standard_streams_at_all_are_no_error(tmp_path: Path) -> None:
    program = ("bash", "-c", f'exec {" ".join(PROGRAM)} "$@" >&- 2>&-', "bash")
    options = (*KV, "--driver", "dry", "--no-progress", "-o", "report.json")
    code, _, _ = sqlstress(tmp_path, *options, program=program)
    assert code == 0
    assert (tmp_path / "report.json").exists()


def closed(streams: str) -> tuple[str, ...]:
    """Return a program that starts sqlstress with these streams closed, such as "1>&- 2>&-"."""
    return ("bash", "-c", f'exec {" ".join(PROGRAM)} "$@" {streams}', "bash")


@fault("stop", "standard output closed from the start, without `-o`", "exit 4 before anything is measured")
@pytest.mark.parametrize(
    "options", [(), thorough(("-o", "json:-")), thorough(("-o", "report.json", "-o", "csv:-"))]
)
def test_closed_output_without_another_place_is_refused(tmp_path: Path, options: tuple[str, ...]) -> None:
    code, _, errors = sqlstress(tmp_path, *KV, "--driver", "dry", *options, program=closed("1>&-"))
    assert code == 4
    assert errors.startswith("Error: standard output is closed") and "-o" in errors
    assert list(tmp_path.iterdir()) == []


@fault("stop", "standard output closed from the start, with `-o`", "exit 0; the report is saved")
def test_closed_output_loses_no_saved_report(tmp_path: Path) -> None:
    code, _, errors = sqlstress(tmp_path, *KV, *REPORT, program=closed("1>&-"))
    assert (code, errors) == (0, "")
    assert {run.verdict.status for run in saved_report(tmp_path).runs} == {"ok"}
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.thorough
@fault("stop", "standard error closed from the start", "exit 0; the report is printed")
def test_closed_standard_error_is_no_failure(tmp_path: Path) -> None:
    code, output, _ = sqlstress(tmp_path, "kv", "-c", "1", *SHORT, program=closed("2>&-"))
    assert code == 0
    assert "buckets" in output


@fault("stop", "all standard streams closed from the start", "no file or pipe takes the number of a stream")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is on Linux only")
def test_closed_streams_are_replaced_by_the_null_device(tmp_path: Path) -> None:
    (tmp_path / "streams.py").write_text(
        "import os\nfrom sqlstress import transaction\n\n@transaction\ndef look(connection):\n"
        f"    with open({str(tmp_path / 'links')!r}, 'w') as file:\n"
        "        file.write(' '.join(os.readlink(f'/proc/self/fd/{number}') for number in range(3)))\n",
        encoding="utf-8",
    )
    program = closed("<&- 1>&- 2>&-")
    options = ("app", "streams.py", "-c", "1", "--duration", "100ms", "--repeat", "1", *REPORT)
    code, _, _ = sqlstress(tmp_path, *options, program=program)
    links = (tmp_path / "links").read_text(encoding="utf-8")
    assert (code, links) == (0, "/dev/null /dev/null /dev/null")


@pytest.mark.thorough
@fault("stop", "standard output closed from the start, for a command that prints", "exit 4")
def test_closed_output_of_a_command_that_prints_is_reported(tmp_path: Path) -> None:
    code, _, errors = sqlstress(tmp_path, "doctor", program=closed("1>&-"))
    assert (code, errors) == (4, "Error: standard output is closed, so nothing can be printed.\n")


@fault("resources", "a full disk behind standard output, without `-o`", "exit 4; the report is kept as JSON")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_report_is_kept_when_it_cannot_be_printed(tmp_path: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        code, _, errors = sqlstress(tmp_path, *KV, "--driver", "dry", stdout=full)
    kept = re.search(r"The report is in (\S+\.json)\.\n$", errors)
    assert code == 4 and kept
    Path(kept[1]).unlink()


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_help_on_a_full_disk_is_an_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        code, _, errors = sqlstress(tmp_path, "kv", "--help", stdout=full)
    told = "Error: cannot write: No space left on device. Make room, also where the output goes.\n"
    assert (code, errors) == (4, told)
