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
    """Modules, or single tests, that are left out."""

    def is_there(self, wine: Wine) -> bool:
        """Say whether Wine lacks it."""
        return wine.run("-c", self.probe).returncode == 0


CRASHES = """
import subprocess, sys
from subprocess import DEVNULL
try:
    done = subprocess.run(
        [sys.executable, "-c", {!r}], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, timeout=60
    )
except subprocess.TimeoutExpired:
    sys.exit(0)
sys.exit(done.returncode == 0)
"""
"""A program that ends with 0 if another one does not. It has no pipe: Wine would keep it open."""

GAPS = (
    Gap(
        "its C library has no complex functions (crealf), which numpy calls: nothing of scipy can be used",
        CRASHES.format("import scipy.stats"),
        (
            "tests/statistics/test_ratios.py",
            "tests/statistics/test_unpaired.py",
            "tests/statistics/test_paired.py",
            "tests/test_gate_benchmark.py",
        ),
    ),
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
            "tests/environment/test_filesystem.py::test_symbolic_links_are_resolved",
            "tests/environment/test_filesystem.py::test_a_folder_of_the_data_volume_of_macos_is_found_on_it",
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
        (
            "tests/environment/test_foreign.py::test_a_neighbour_that_burns_a_processor_is_seen_and_as_ours_is_not",
        ),
    ),
)
