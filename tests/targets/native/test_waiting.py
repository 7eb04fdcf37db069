"""The loop in C waits, and pauses, as the one in Python does."""

from __future__ import annotations

import ctypes
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.report.case import Case, Settings
from sqlstress.statistics.units import NS_PER_S
from sqlstress.targets import native
from sqlstress.targets.sqlite import busy
from sqlstress.targets.sqlite.connections import Client, lacks, native_store
from tests.engine.fakes import FakeClock

SOURCE = Path(str(native.__file__)).with_name("waiting.c")
STAGE = Path(__file__).with_name("turns.c")
COMPILER = shlex.split(sysconfig.get_config_var("CC") or "cc")
BEGUN_NS = 10**12
WORKERS = 8
TURN_NS, PAUSE_NS = (round(seconds * NS_PER_S) for seconds in (busy.turn_s(WORKERS), busy.PAUSE_S))


def test_both_have_the_same_numbers() -> None:
    found = dict(re.findall(r"^#define (\w+) ([\d.]+)$", SOURCE.read_text(encoding="utf-8"), re.MULTILINE))
    assert {name: float(number) for name, number in found.items()} == {
        "FIRST": busy.FIRST,
        "PATIENCE": busy.PATIENCE,
        "SHORTEST_NS": busy.SHORTEST_S * NS_PER_S,
        "PAUSE_NS": busy.PAUSE_S * NS_PER_S,
    }


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Build what waits in C, over a clock that a test sets."""
    if sys.platform == "win32" or not shutil.which(COMPILER[0]):
        pytest.skip("there is no C compiler")
    built = tmp_path_factory.mktemp("turns") / "turns.so"
    options = ("-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE.parent}")
    subprocess.run([*COMPILER, *options, "-o", str(built), str(SOURCE), str(STAGE)], check=True)
    library = ctypes.CDLL(str(built))
    library.play.restype = library.slept.restype = ctypes.c_int64
    return library


Write = tuple[int, int, int]
"""In ns: how long after the last one it is wanted, how long its lock is waited for, how long it takes."""


def played(writes: list[Write]) -> tuple[list[int], int, int]:
    """Return when Python's loop pauses, when it has ended, and how long its last turn was to be."""
    clock, pauses = FakeClock(BEGUN_NS), list[Any]()  # in whole ns, so that none of two ways to count rounds
    waits = busy.Waiting(WORKERS, 60.0, "", clock.sleep, clock)
    waits.turn_s = TURN_NS
    turns = busy.Turns(waits, lambda begin, _end: pauses.append(begin), clock.sleep, clock)

    def write(params: Any) -> None:
        _, waited, takes = params
        if waited:
            clock.sleep(waited)
            waits.woke_s = clock()
        clock.sleep(takes)

    put = turns.kept(write)
    for one in writes:
        clock.sleep(one[0])
        put(one)
    return pauses, clock.now, int(turns._length_s)


def played_in_c(library: ctypes.CDLL, writes: list[Write]) -> tuple[list[int], int, int]:
    """Return the same of the loop in C."""
    columns = [(ctypes.c_int64 * len(writes))(*column) for column in zip(*writes, strict=True)]
    length = library.play(len(writes), *columns, ctypes.c_int64(BEGUN_NS), ctypes.c_int64(TURN_NS))
    count = ctypes.c_int.in_dll(library, "paused").value
    pauses = (ctypes.c_int64 * 4096).in_dll(library, "pauses")[:count]
    return list(pauses), ctypes.c_int64.in_dll(library, "now").value, length


gaps = st.sampled_from([0, 3_000, PAUSE_NS - 1, PAUSE_NS, 10 * PAUSE_NS]) | st.integers(0, 2 * PAUSE_NS)
waited = st.just(0) | st.sampled_from([0, 0, 0, 1, PAUSE_NS, TURN_NS])
takes = st.sampled_from([0, 50_000, 300_000, TURN_NS - 1, TURN_NS, 3 * TURN_NS])


@given(writes=st.lists(st.tuples(gaps, waited, takes), min_size=1, max_size=80))
def test_both_take_the_same_turns(in_c: ctypes.CDLL, writes: list[Write]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(busy, "PAUSE_S", PAUSE_NS)
        assert played_in_c(in_c, writes) == played(writes)


def test_each_turn_in_c_is_twice_as_long_until_the_lock_was_waited_for(in_c: ctypes.CDLL) -> None:
    alone: list[Write] = [(0, 0, TURN_NS)] * 15
    pauses, _, length = played_in_c(in_c, alone)
    turns = [later - earlier - PAUSE_NS for earlier, later in pairwise(pauses)]
    assert turns == [2 * TURN_NS, 4 * TURN_NS]
    assert length == 8 * TURN_NS
    assert played_in_c(in_c, [*alone, (0, 1, TURN_NS)])[2] == TURN_NS


@given(attempt=st.integers(0, 30), workers=st.integers(1, 256), jitter=st.integers(1, 2**62 - 1))
def test_a_wait_in_c_is_one_that_python_could_have_drawn(
    in_c: ctypes.CDLL, attempt: int, workers: int, jitter: int
) -> None:
    waits = busy.Waiting(workers, 60.0, "")
    means = (ctypes.c_int64(round(wait * NS_PER_S)) for wait in (waits.mean_s, waits.least_s))
    shortest, longest = (_drawn(waits, share).interval(attempt) for share in (0.0, 1.0))
    slept = in_c.slept(*means, attempt, ctypes.c_uint64(jitter)) / NS_PER_S
    assert shortest - 1e-9 <= slept <= longest + 1e-9


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_the_loop_in_c_is_told_the_waits_and_turns_of_pythons(tmp_path: Path, workers: int) -> None:
    if lacks("sqlite3"):
        pytest.skip("no native loop here")
    case = Case(concurrency=workers, settings=Settings(busy="fair"))
    store = native_store(Client(case, [tmp_path / "kv.db"], 1), "IMMEDIATE")
    waits = busy.Waiting(workers, 60.0, "")
    told = [store.plan[name] / NS_PER_S for name in ("turn_ns", "mean_wait_ns", "least_wait_ns")]
    store.close()
    assert told == pytest.approx([waits.turn_s, waits.mean_s, waits.least_s])


def _drawn(waits: busy.Waiting, share: float) -> busy.Waiting:
    waits._random = lambda: share
    return waits
