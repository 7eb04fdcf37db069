"""The text of the doctor: its facts, aligned, in 80 columns."""

from dataclasses import replace

import pytest

from sqlstress.report import Environment, FileSystem, SqliteBuild, SyncCost, Warning
from sqlstress.show.doctor_view import doctor_text
from tests.example_report import assert_golden_texts, example_report
from tests.show.variants import UNKNOWN

EXAMPLE = example_report().environment
NOTE = Warning("few-cores", "A note that is long enough to be wrapped, " * 3 + "with its end.")
SERIOUS = Warning("sync-does-nothing", "A serious warning that is long enough, " * 3 + "with its end.", True)

AWKWARD = replace(
    EXAMPLE,
    host=replace(EXAMPLE.host, processor="A processor with a very long name " * 4, cores=1),
    file_system=FileSystem("overlay", "overlay", "rw,lowerdir=" + "/var/lib/layer:" * 90),
    builds=(
        *EXAMPLE.builds,
        SqliteBuild("apsw", "3.51.3.0", "3.51.3", "", tuple(f"DEFAULT_CACHE_SIZE={n}" for n in range(40))),
    ),
    sync=SyncCost("fdatasync", 96_000, 123_456_000_000, 400, 350_000, 200),
    warnings=(NOTE, SERIOUS),
)


def lines(environment: Environment) -> list[str]:
    return doctor_text(environment, "native").splitlines()


@pytest.mark.parametrize("environment", [EXAMPLE, AWKWARD, UNKNOWN])
def test_no_line_is_wider_than_80_columns_or_ends_in_spaces(environment: Environment) -> None:
    for line in lines(environment):
        assert len(line) <= 80 and line == line.rstrip()
    # A sync below a microsecond is not shown as 0.
    assert any("overwrite" in line and "< 0.001 ms" in line for line in lines(AWKWARD))


BARE = replace(
    EXAMPLE,
    host=replace(EXAMPLE.host, processor="", cores=1),
    file_system=FileSystem("", "", ""),
    builds=(SqliteBuild("sqlite3", "", "3.51.3", "", ()),),
)
ODD = replace(EXAMPLE, file_system=FileSystem("ext4", "/dev/\x1b[31mred\nline", "rw"))
VERDICTS = {
    "few-cores": False,
    "sqlite-wal-reset-bug": True,
    "shared-file-system": True,
    "sync-does-nothing": True,
    "of a later version": True,
}


def test_known_facts_are_shown_and_unknown_ones_marked_or_omitted() -> None:
    known = {"awkward": AWKWARD, "unknown": UNKNOWN, "bare": BARE, "odd": ODD}
    known["without warnings"] = replace(EXAMPLE, warnings=())
    assert_golden_texts("doctor.txt", {name: lines(environment) for name, environment in known.items()})


def test_first_line_says_whether_the_machine_is_fit() -> None:
    warned = {code: (Warning(code, "Why.", serious),) for code, serious in VERDICTS.items()}
    first = {code: lines(replace(EXAMPLE, warnings=own))[0] for code, own in warned.items()}
    assert first == {
        "few-cores": "Fit for measuring.",
        "sqlite-wal-reset-bug": "Fit for measuring, with a warning: SQLite has the WAL-reset bug.",
        "shared-file-system": "Not fit for measuring: the folder is on a shared file system.",
        "sync-does-nothing": "Not fit for measuring: a sync does nothing in this folder.",
        "of a later version": "Fit for measuring, with a warning: see below.",
    }


def test_free_space_is_shown_if_it_is_known() -> None:
    assert "Free space   1,024.0 GiB\n" in doctor_text(EXAMPLE, "native", free_bytes=1 << 40)
    assert "Free space" not in doctor_text(EXAMPLE, "native")


def test_missing_shared_memory_makes_a_machine_unfit() -> None:
    """The verdict of doctor comes first, even if everything else works."""
    missing = Warning("no-shared-memory", "no 8 bytes of shared memory: /dev/shm: Permission denied.", True)
    text = doctor_text(replace(example_report().environment, warnings=(missing,)), "native")
    assert text.startswith("Not fit for measuring: processes cannot share memory.")
