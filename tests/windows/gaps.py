"""What Wine 8 lacks: which tests that costs, and what shows that it is Wine's lack and not ours.

Each probe is run before the suite. It ends with 0 where Wine still lacks it; otherwise the gap is to be
removed from this list.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.windows.wine import Wine


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that Windows documents and Wine does not do."""

    reason: str
    probe: str
    """A program that ends with 0 as long as Wine lacks it; it uses nothing of ours."""
    tests: tuple[str, ...]
    """Modules, or single tests, that are left out; none where it costs only a command of commands.py."""

    def is_there(self, wine: Wine) -> bool:
        """Say whether Wine lacks it."""
        return wine.run("-c", self.probe).returncode == 0


GAPS = (
    Gap(
        "the package of Python has no launcher for virtual environments",
        """
import sys, pathlib
sys.exit((pathlib.Path(sys.base_prefix) / "Lib/venv/scripts/nt/python.exe").exists())
""",
        ("tests/studies/test_slices.py::test_a_python_without_sqlstress_says_so",),
    ),
    Gap(
        "a symbolic link is an empty file there, and no link",
        """
import os, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    link = os.path.join(folder, "link")
    try:
        os.symlink("nowhere", link)
    except OSError:
        sys.exit(0)
    sys.exit(os.path.islink(link) and os.readlink(link) == "nowhere")
""",
        (
            "tests/engine/test_folder.py::test_a_symbolic_link_named_like_ours_is_never_followed",
            "tests/engine/test_folder.py::test_a_marker_that_is_a_symbolic_link_counts_for_nothing",
            "tests/engine/test_folder.py::test_of_a_database_that_is_a_symbolic_link_only_the_link_is_removed",
            "tests/machine/test_filesystem.py::test_symbolic_links_are_resolved",
            "tests/machine/test_filesystem.py::test_a_folder_of_the_data_volume_of_macos_is_found_on_it",
        ),
    ),
    Gap(
        "the processor time of another process stands still",
        """
import subprocess, sys, time, psutil
other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
try:
    time.sleep(1)
    before = psutil.Process(other.pid).cpu_times()
    time.sleep(2)
    sys.exit(psutil.Process(other.pid).cpu_times() != before)
finally:
    other.kill()
""",
        ("tests/machine/test_foreign.py::test_a_neighbour_that_burns_a_processor_is_seen",),
    ),
    Gap(
        "its ntdll has no NtFlushBuffersFileEx, which PostgreSQL's programs need: they are not installed",
        """
import ctypes, sys
sys.exit(hasattr(ctypes.WinDLL("ntdll"), "NtFlushBuffersFileEx"))
""",
        ("tests/cli/test_postgres.py::test_with_nothing_at_hand_one_of_our_own_runs_and_is_gone",),
    ),
    Gap(
        "its server keeps a descriptor for every time that a locked file was opened and closed, until nobody "
        "has it locked: of SQLite's files some 14 for each with one process, 21 with two",
        """
import msvcrt, os, sys, tempfile

def held():
    servers = 0
    for pid in filter(str.isdigit, os.listdir("Z:/proc")):
        try:
            with open(f"Z:/proc/{pid}/comm") as name:
                if name.read().startswith("wineserver"):
                    servers += len(os.listdir(f"Z:/proc/{pid}/fd"))
        except OSError:
            pass
    return servers

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "locked")
    with open(path, "w") as file:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        before = held()
        for _ in range(500):
            os.stat(path)
        sys.exit(held() - before < 250)
""",
        (),
    ),
    Gap(
        "its GetFinalPathNameByHandle has no room for 260 characters: no report is saved at so long a path",
        """
import os, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    deep = os.path.join(folder, *["d" * 40] * 7)
    os.makedirs(deep)
    try:
        os.path.realpath(deep)
    except OSError as error:
        sys.exit(error.winerror != 234)  # ERROR_MORE_DATA
sys.exit(1)
""",
        (),
    ),
    Gap(
        "it takes paths of 260 characters and more whatever is allowed: of what Windows says of them, "
        "tests/system/test_long_paths.py is all",
        """
import os, sys, tempfile
with tempfile.TemporaryDirectory() as folder:
    deep = folder
    try:
        while len(deep) < 300:
            deep = os.path.join(deep, "d" * 40)
            os.mkdir(deep)
        open(os.path.join(deep, "file"), "w").close()
    except OSError:
        sys.exit(1)
""",
        (),
    ),
)
