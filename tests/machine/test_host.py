"""The host: read by the method of each system; failures leave fields empty."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlstress.machine import host

X86 = "processor\t: 0\nmodel\t\t: 167\nmodel name\t: Example(R)  CPU @ 2.60GHz\n\nmodel name\t: Other\n"
ARM = "processor\t: 0\nBogoMIPS\t: 108.00\nCPU implementer\t: 0x41\n\nModel\t\t: Raspberry Pi 4 Model B\n"
POWER = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nmodel\t\t: 8375-42A\n"


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        (X86, "Example(R) CPU @ 2.60GHz"),
        (ARM, "Raspberry Pi 4 Model B"),
        (POWER, "POWER9, altivec supported"),
        ("model name :\nModel : Example board\n", "Example board"),
        ("processor : 0\nBogoMIPS : 48.00\nmodel name :\n", ""),
        ("", ""),
    ],
)
def test_processor_name_is_read_from_cpuinfo(cpuinfo: str, name: str) -> None:
    assert host.model_name(cpuinfo) == name


def test_processor_name_is_read_by_system_and_empty_if_missing(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(X86, encoding="utf-8")
    assert host.processor("Linux", cpuinfo) == "Example(R) CPU @ 2.60GHz"
    command = (sys.executable, "-c", "print('Apple M9 Max')")
    assert host.processor("Darwin", sysctl=command, timeout_s=30) == "Apple M9 Max"
    nothing = tmp_path / "nothing"
    assert host.processor("Linux", nothing) == ""
    assert host.processor("Darwin", sysctl=(str(nothing),)) == ""


@pytest.mark.parametrize(
    "code", ["print('half'); raise SystemExit(1)", "import time; time.sleep(5); print('late')"]
)
def test_failing_or_hanging_sysctl_leaves_the_name_empty(code: str) -> None:
    assert host.processor("Darwin", sysctl=(sys.executable, "-c", code), timeout_s=0.5) == ""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has a registry to ask")
def test_processor_name_is_empty_on_other_systems() -> None:
    assert host.processor("FreeBSD") == ""


def test_length_of_a_sleep_is_the_median() -> None:
    lengths = iter([1, 9, 2, 8, 3, 7, 400, 4, 6])
    now = 0

    def sleep() -> None:
        nonlocal now
        now += next(lengths) * 1000

    assert host.median_sleep_ns(sleep, lambda: now) == 6000
    assert list(lengths) == []


@pytest.fixture
def one_core() -> Iterator[None]:
    if sys.platform != "linux":
        pytest.skip("affinity is Linux's")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("one_core")
def test_only_cores_that_the_process_may_use_are_counted() -> None:
    assert host.usable_cores() == 1
