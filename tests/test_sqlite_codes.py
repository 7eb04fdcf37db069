"""Result codes: BUSY, damage or lack of resources, and their names."""

import apsw
import pytest

from sqlstress import sqlite_codes as codes

BUSY_RECOVERY, BUSY_TIMEOUT, CORRUPT_INDEX, IOERR_FSYNC = 261, 773, 779, 1034
BUSY = (codes.BUSY, codes.BUSY_SNAPSHOT, BUSY_RECOVERY, BUSY_TIMEOUT)
DAMAGE = (codes.CORRUPT, codes.NOTADB, CORRUPT_INDEX)
LACK = (codes.FULL, codes.NOMEM, codes.CANTOPEN, IOERR_FSYNC)
NONE_OF_IT = (None, 0, codes.ERROR, codes.LOCKED, codes.PROTOCOL, codes.IOERR_SHORT_READ, 5 << 8)


@pytest.mark.parametrize("code", [*BUSY, *DAMAGE, *LACK, *NONE_OF_IT])
def test_codes_belong_to_one_class_of_error(code: int | None) -> None:
    assert codes.is_busy(code) is (code in BUSY)
    assert codes.is_damage(code) is (code in DAMAGE)
    assert codes.is_lack(code) is (code in LACK)
    assert code is None or (codes.advice(code) is not None) is (code in LACK)


@pytest.mark.parametrize("code", [codes.IOERR_NOMEM, codes.IOERR_SHMMAP])
def test_codes_for_lack_of_memory_have_the_remedy_for_memory(code: int) -> None:
    assert codes.advice(code) == codes.advice(codes.NOMEM) != codes.advice(codes.IOERR)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (5, "SQLITE_BUSY"),
        (IOERR_FSYNC, "SQLITE_IOERR_FSYNC"),
        (5 | 99 << 8, "SQLITE_BUSY (extended code 25349)"),
        (99, "SQLite result code 99"),
    ],
)
def test_name_of_a_code(code: int, name: str) -> None:
    assert codes.name(code) == name


def test_names_agree_with_apsw() -> None:
    known = {**apsw.mapping_result_codes, **apsw.mapping_extended_result_codes}
    assert {code: known[code] for code in codes.NAMES} == codes.NAMES
