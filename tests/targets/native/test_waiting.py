"""The C loop waits before a retry like the Python loop."""

import ctypes
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.report.case import Case
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets import native
from sqlstress.targets.sqlite import busy
from sqlstress.targets.sqlite.connections import SqliteClient, native_store, native_unavailable

SOURCE = Path(str(native.__file__)).with_name("waiting.c")
STAGE = Path(__file__).with_name("waits.c")
COMPILER = shlex.split(sysconfig.get_config_var("CC") or "cc")


def test_constants_are_equal_in_c_and_python() -> None:
    constants = dict(
        re.findall(r"^#define (\w+) ([\d.]+)$", SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert {name: float(number) for name, number in constants.items()} == {
        "FIRST": busy.FIRST_FACTOR,
        "PATIENCE": busy.MAX_ATTEMPTS,
        "SHORTEST_NS": busy.SHORTEST_S * NS_PER_S,
    }


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Build the waiting code in C on a clock that a test sets."""
    if sys.platform == "win32" or not shutil.which(COMPILER[0]):
        pytest.skip("there is no C compiler")
    built = tmp_path_factory.mktemp("waits") / "waits.so"
    options = ("-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE.parent}")
    subprocess.run([*COMPILER, *options, "-o", str(built), str(SOURCE), str(STAGE)], check=True)
    library = ctypes.CDLL(str(built))
    library.wait_ns.restype = ctypes.c_int64
    return library


@given(attempt=st.integers(0, 30), workers=st.integers(1, 256), jitter=st.integers(1, 2**62 - 1))
def test_wait_in_c_is_within_the_range_of_python(
    in_c: ctypes.CDLL, attempt: int, workers: int, jitter: int
) -> None:
    waits = busy.BusyRetries(workers, 60.0, "")
    means = (ctypes.c_int64(round(wait * NS_PER_S)) for wait in (waits.mean_s, waits.least_s))
    shortest, longest = (_with_random(waits, share).interval(attempt) for share in (0.0, 1.0))
    slept = in_c.wait_ns(*means, attempt, ctypes.c_uint64(jitter)) / NS_PER_S
    assert shortest - 1e-9 <= slept <= longest + 1e-9


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_c_loop_gets_the_waits_of_python(tmp_path: Path, workers: int) -> None:
    if native_unavailable("sqlite3"):
        pytest.skip("no native loop here")
    store = native_store(SqliteClient(Case(concurrency=workers), [tmp_path / "kv.db"], 1), "IMMEDIATE")
    waits = busy.BusyRetries(workers, 60.0, "")
    wait_means = [store.plan[name] / NS_PER_S for name in ("mean_wait_ns", "least_wait_ns")]
    store.close()
    assert wait_means == pytest.approx([waits.mean_s, waits.least_s])


def _with_random(waits: busy.BusyRetries, share: float) -> busy.BusyRetries:
    waits._random = lambda: share
    return waits
