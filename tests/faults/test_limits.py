"""Too few descriptors, too little shared memory, too few processes."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from sqlstress.errors import EnvironmentFailure
from sqlstress.system.sharing import shared_array
from tests.brief import PROGRAM
from tests.engine.processes import saved_report, sqlstress
from tests.faults.commands import EXPERIMENTS, SHORT, Held, left
from tests.faults.surroundings import bounded, few_processes, linux, posix
from tests.rows import fault, thorough

NO_SHARED_MEMORY = fault(
    "resources", "no room for shared memory", "exit 4: how much was needed, and where; never a SIGBUS"
)

KV = ("kv", *SHORT, "--quiet", "-o", "report.json")


def forbid_descriptors(pid: int) -> None:
    """Let a process open nothing further before it closes something."""
    if sys.platform == "linux":
        import resource

        used = {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}
        free = next(number for number in count() if number not in used)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, free))


@fault(
    "resources",
    "too few descriptors, from the start",
    "exit 4 before anything is measured: how many are needed",
)
@posix
@pytest.mark.parametrize("experiment", ["ab", thorough("keys"), thorough("crash"), thorough("app")])
def test_too_few_descriptors_are_an_error_of_every_command(tmp_path: Path, experiment: str) -> None:
    code, output, errors = sqlstress(tmp_path, *EXPERIMENTS[experiment], program=bounded("-n 60"))
    assert (code, output, len(errors.splitlines())) == (4, "", 1)
    assert "open files, but the limit is 60" in errors
    assert list(tmp_path.iterdir()) == []


@fault("resources", "no descriptor left, from a moment on", "exit 4; what was measured before is kept")
@linux
@pytest.mark.parametrize(
    ("moment", "cases", "told"),
    [
        thorough("preparing", "-c1 --repeat=2", "Too many open files|unable to open database file"),
        thorough("preparing", "-c1,2 --repeat=1", "no shared memory: Too many open files"),
        ("verifying", "-c1 --repeat=2", "the data could not be verified: "),
    ],
)
def test_descriptors_that_run_out_fail_their_case_only(
    tmp_path: Path, moment: str, cases: str, told: str
) -> None:
    with Held(tmp_path, moment, *KV, *cases.split(), count=2) as command:
        forbid_descriptors(command.process.pid)
        code, output, errors = command.finish()
    assert (code, output) == (4, "")
    assert re.search(told, errors)
    assert len(saved_report(tmp_path).runs[0].valid) == 1
    assert left(tmp_path) == ["report.json"]


@NO_SHARED_MEMORY
@posix
def test_forbidden_shared_memory_is_an_error(tmp_path: Path) -> None:
    options = ("kv", "-c", "4", "--key-space", "500000", "--quiet")
    code, output, errors = sqlstress(tmp_path, *options, program=bounded("-f 1000"))
    assert (code, output, len(errors.splitlines())) == (4, "", 1)
    assert errors.startswith("Error: not enough space for ")
    assert list(tmp_path.iterdir()) == []


TINY = """
mount -t tmpfs -o size={shm}k tmpfs /dev/shm && mount -t tmpfs -o size=4k tmpfs "$TMPDIR" || exit 77
exec {program} "$@"
"""


@pytest.mark.thorough
@NO_SHARED_MEMORY
@pytest.mark.parametrize("shm", [4, thorough(1000)])
def test_full_folders_for_shared_memory_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shm: int
) -> None:
    if sys.platform != "linux" or not shutil.which("unshare") or os.geteuid() != 0:
        pytest.skip("no other /dev/shm can be had here: that needs Linux and root")
    for name in ("tmp", "place"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    script = TINY.format(shm=shm, program=" ".join(PROGRAM))
    program = ("unshare", "--mount", "bash", "-c", script, "bash")
    arguments = ("kv", "-c", "2", "--key-space", "20000", "--quiet")
    code, output, errors = sqlstress(tmp_path / "place", *arguments, program=program)
    if code == 77:
        pytest.skip("no file system can be mounted here: that needs Linux and root")
    assert (code, output, len(errors.splitlines())) == (4, "", 1)
    assert "bytes of shared memory in /dev/shm or the temporary folder. Free some" in errors
    assert list((tmp_path / "place").iterdir()) == []


FORBIDDEN = """
mount -t tmpfs -o mode={mode} tmpfs /dev/shm || exit 77
exec {user} {program} "$@"
"""
HIDDEN = """
mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/zero c 1 5 || exit 77
mknod -m 666 /dev/urandom c 1 9 && exec {program} "$@"
"""


@pytest.mark.thorough
@fault(
    "resources",
    "no /dev/shm, or no permission for it",
    "exit 0; a file in the temporary folder serves instead",
)
@pytest.mark.parametrize("script", ["forbidden", thorough("hidden")])
def test_missing_dev_shm_is_replaced_by_a_temporary_file(script: str) -> None:
    user = few_processes(100)  # skips without root
    text = {
        "forbidden": FORBIDDEN.format(mode=755, user=" ".join(user), program=" ".join(PROGRAM)),
        "hidden": HIDDEN.format(program=" ".join(PROGRAM)),
    }[script]
    with TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o777)
        program = ("unshare", "--mount", "bash", "-c", text, "bash")
        code, output, errors = sqlstress(place, *KV, "-c", "2", program=program)
        if code == 77:
            pytest.skip("no file system can be mounted here: that needs Linux and root")
        assert (code, output, errors) == (0, "", "")
        code, output, errors = sqlstress(place, "doctor", program=program)
    assert (code, errors) == (0, "")
    assert "Fit for measuring" in output
    assert re.search(r"^Sharing +shared memory is in /(?!dev/)", output, re.MULTILINE)


@NO_SHARED_MEMORY
@posix
def test_limited_address_space_is_reported(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the limit of the address space is tested on Linux")
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = psutil.Process().memory_info().vms
    resource.setrlimit(resource.RLIMIT_AS, (used, hard))
    try:
        with pytest.raises(EnvironmentFailure, match=r"address space is limited to [\d,]+ KiB \(ulimit -v\)"):
            shared_array("q", 100_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.thorough
@fault("resources", "too few processes and threads allowed", "exit 4: which process could not start")
@pytest.mark.parametrize("allowed", [2, thorough(3), thorough(5)])
def test_limit_on_processes_is_an_error(allowed: int) -> None:
    program = (*few_processes(allowed), *PROGRAM)
    with TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o777)  # pytest's own folders are for us alone
        code, output, errors = sqlstress(place, *KV, "-c", "2", program=program)
        (run,) = saved_report(place).runs
        assert [path.name for path in place.iterdir()] == ["report.json"]
    assert (code, output, len(errors.splitlines())) == (4, "", 1)
    assert "cannot start process " in errors or "could not start: can't start new thread" in errors
    assert (run.trials, bool(run.error)) == ((), True)


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, if there is one: a thousand files are synced there at no cost."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or not os.access(memory, os.W_OK):
        yield tmp_path
        return
    place = memory / f"{tmp_path.name}-{os.getpid()}"
    place.mkdir()
    try:
        yield place
    finally:
        place.rmdir()


@pytest.mark.thorough
@fault("resources", "too low a soft limit of descriptors", "exit 0; it is raised")
@posix
def test_many_files_raise_the_soft_limit(quick_folder: Path) -> None:
    arguments = ("-c", "1", "-b", "150", "--key-space", "300", "--ops", "20", "-o", "csv:/dev/stdout")
    code, output, errors = sqlstress(quick_folder, *arguments, "--quiet", program=bounded("-Sn 256"))
    assert (code, errors) == (0, "")
    assert len(output.splitlines()) == 2
