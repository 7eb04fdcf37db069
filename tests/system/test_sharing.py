"""Memory that processes share."""

from multiprocessing import get_context
from typing import Any

from sqlstress.system.sharing import shared_array


def double(numbers: Any) -> None:
    words = memoryview(numbers).cast("B").cast("q")
    for place, number in enumerate(words):
        words[place] = 2 * number


def test_shared_array_is_written_by_another_process() -> None:
    numbers = shared_array("q", 3)
    numbers[:] = [1, 2, 1 << 40]
    process = get_context("spawn").Process(target=double, args=(numbers,))
    process.start()
    process.join()
    assert list(numbers) == [2, 4, 1 << 41]


def test_shared_memory_has_the_expected_size_and_is_zeroed() -> None:
    assert [memoryview(shared_array(code, 5)).nbytes for code in "HIq"] == [10, 20, 40]
    for _ in range(3):
        numbers = shared_array("I", 50_000)
        assert not any(numbers)
        numbers[:] = [0xFFFFFFFF] * 50_000
        del numbers
