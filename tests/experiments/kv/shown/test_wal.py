"""Companions of the load, and the WALs: in heading, table, picture and findings."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.analysis.group import group_runs
from sqlstress.experiments.kv.show import WIDTH, bars, picture, wal_blocks
from sqlstress.experiments.kv.spec import Checkpointing, Load
from sqlstress.report import Report, Run, Trial
from sqlstress.report.case import MAX_BUCKETS, MAX_CONCURRENCY, Case, Settings
from sqlstress.show.blocks import MISSING, Block, Note, Picture, Table
from sqlstress.show.text import WIDTH as TERMINAL
from sqlstress.show.text import report_text
from sqlstress.statistics.series import (
    BUSY_CHECKPOINTS,
    CHECKPOINT_TIME,
    CHECKPOINTS,
    LARGEST_WAL,
    LONGEST_CHECKPOINT,
    STUCK_CHECKPOINTS,
    WAL_SIZE,
    Series,
)
from tests.analysis.hand_made import findings_with_codes, run, trial
from tests.example_report import assert_golden_texts
from tests.show.variants import EXAMPLE, beside_report, each_trial, with_case

MS = MB = 1_000_000
SECOND = 1_000_000_000


def blocks_of(report: Report) -> list[Block]:
    (group,) = group_runs(report.runs)
    return list(wal_blocks(group))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Checkpointing("restart"), "during the load a RESTART checkpoint every 20ms"),
        (Checkpointing(pinned_reader=True), "during the load a reader that keeps its snapshot open"),
        (
            Checkpointing("passive", 1.5, pinned_reader=True),
            "during the load a PASSIVE checkpoint every 1.5s and a reader that keeps its snapshot open",
        ),
    ],
)
def test_heading_names_the_companions_of_the_load(asked: Checkpointing, told: str) -> None:
    text = " ".join(report_text(with_case(beside_report(), spec=Load(checkpointing=asked))).split())
    assert f"8-byte values; {told}; 2s windows" in text


def test_reader_alone_has_no_columns_and_no_legend_of_checkpoints() -> None:
    only_wal = each_trial(
        lambda trial: replace(trial, series=tuple(series for series in trial.series if "WAL" in series.name)),
        with_case(beside_report(), spec=Load(checkpointing=Checkpointing(pinned_reader=True))),
    )
    table, meanings, draw_bars = blocks_of(only_wal)
    assert isinstance(table, Table)
    assert table.headers == ("buckets", "processes", "replace p99.9 ms", "largest WAL MB")
    assert isinstance(meanings, Note)
    assert "checkpoints" not in meanings.text
    assert isinstance(draw_bars, Picture)


def test_cases_without_figures_have_a_row_and_their_columns() -> None:
    report = beside_report()
    first, *others = report.runs
    table = blocks_of(replace(report, runs=(replace(first, trials=(), error="no disk"), *others)))[0]
    assert isinstance(table, Table)
    assert set(table.rows[0][2:]) == {MISSING}

    def few(trial: Trial) -> Trial:
        replaces = replace(trial.latency["replace"], p999_ns=None)
        return replace(trial, latency={**trial.latency, "replace": replaces})

    table = blocks_of(each_trial(few, report))[0]
    assert isinstance(table, Table)
    place = table.headers.index("replace p99.9 ms")
    assert {row[place] for row in table.rows} == {MISSING}


def test_report_without_companions_or_trials_shows_no_wal_block() -> None:
    assert blocks_of(with_case(EXAMPLE, buckets=1)) == []
    report = beside_report()
    assert blocks_of(replace(report, runs=tuple(replace(run, trials=()) for run in report.runs))) == []


# The picture.


def draw_bars(values: list[int], times: list[int], window_ns: int = WIDTH) -> str:
    return bars(Series(WAL_SIZE, "bytes", tuple(values), tuple(times)), window_ns)


def test_part_of_the_picture_shows_its_maximum_or_the_last_value() -> None:
    assert draw_bars([0, 1, 100, 200, 400, 799, 800], [0, 1, 2, 3, 4, 5, 6])[:7] == " ▁▁▂▄██"
    assert draw_bars([800, 1, 8], [0, 1, WIDTH], 2 * WIDTH)[:1] == "█"
    assert draw_bars([8, 1], [2, 4]) == f"  ██{'▁' * (WIDTH - 4)}"
    # A window of unknown length ends with the last value.
    assert draw_bars([1, 8], [0, SECOND], 0) == f"{'▁' * (WIDTH - 1)}█"


@given(
    st.lists(st.integers(0, 2**64), max_size=50),
    st.lists(st.integers(-(2**64), 2**64), max_size=50),
    st.integers(0, 2**64),
)
def test_picture_has_the_same_width_for_any_values(
    values: list[int], times: list[int], window_ns: int
) -> None:
    assert len(draw_bars(values, times, window_ns)) == WIDTH


def lines(report: Report) -> list[str]:
    (group,) = group_runs(report.runs)
    return list(picture(group))


def test_widest_line_fits_a_terminal() -> None:
    report = with_case(beside_report(), buckets=MAX_BUCKETS, concurrency=MAX_CONCURRENCY)
    assert 1 < max(map(len, lines(report))) <= TERMINAL


@pytest.mark.parametrize(
    "report",
    [
        with_case(EXAMPLE, buckets=1),
        each_trial(lambda trial: replace(trial, series=()), beside_report()),
        each_trial(lambda trial: replace(trial, error="worker 1 died"), beside_report()),
    ],
    ids=["not watched", "nothing seen", "not valid"],
)
def test_series_without_values_has_no_picture(report: Report) -> None:
    assert lines(report) == []


# The findings.


CODES = ("checkpoint-starvation", "busy-checkpoints", "large-wal")
CALM: dict[str, tuple[int, ...]] = {
    CHECKPOINTS: (1, 1, 1),
    BUSY_CHECKPOINTS: (0, 0, 0),
    STUCK_CHECKPOINTS: (0, 1, 2),
    CHECKPOINT_TIME: (2 * MS, 4 * MS, 14 * MS),
    LONGEST_CHECKPOINT: (2 * MS, 4 * MS, 14 * MS),
    LARGEST_WAL: (1 * MB, 3 * MB, 16 * MB),
}


def beside(
    mode: str = "passive",
    *,
    pinned: bool = False,
    settings: Settings | None = None,
    page_size: str = "4096",
    processes: int = 2,
    seen: dict[str, tuple[int, ...]] | None = None,
    **figures: tuple[int, ...],
) -> Run:
    """Return a run of two seconds with these figures of its companions; the other figures are calm."""
    settings = settings or Settings(wal_autocheckpoint=0)
    case = Case(settings=settings, spec=Load(checkpointing=Checkpointing(mode, 0.02, pinned)))
    told = (CALM if seen is None else seen) | {
        name.replace("_", " "): values for name, values in figures.items()
    }
    series = tuple(Series(name, "", values, tuple(range(len(values)))) for name, values in told.items())
    return run(1, processes, trial(seconds=2.0, series=series, effective={"page_size": page_size}), case=case)


def texts_of(*runs: Run) -> list[str]:
    return findings_with_codes(runs, *CODES)


def test_series_of_a_worker_is_not_the_series_of_the_database() -> None:
    one = beside(seen={})
    series = (Series(LARGEST_WAL, "bytes", (900 * MB,), worker=1),)
    assert texts_of(replace(one, trials=(replace(one.trials[0], series=series),))) == []


LIMIT = 4 * 1000 * 4096


@pytest.mark.parametrize(
    ("largest", "settings", "page_size", "is_large"),
    [
        (LIMIT, Settings(wal_autocheckpoint=0), "4096", False),
        (LIMIT + 1, Settings(wal_autocheckpoint=0), "4096", True),
        (LIMIT + 1, Settings(), "4096", True),
        (LIMIT + 1, Settings(wal_autocheckpoint=2000), "4096", False),
        (LIMIT // 10 + 1, Settings(wal_autocheckpoint=100), "4096", True),
        (LIMIT + 1, Settings(), "8192", False),
        (LIMIT + 1, Settings(), "nonsense", True),
    ],
)
def test_wal_over_four_times_the_checkpoint_size_is_large(
    largest: int, settings: Settings, page_size: str, is_large: bool
) -> None:
    one = beside(settings=settings, page_size=page_size, largest_WAL=(5, largest, 3))
    assert bool(texts_of(one)) == is_large


LARGE = beside(largest_WAL=(900 * MB,))
KILLED = replace(LARGE, trials=(replace(LARGE.trials[0], error="the checkpointer was killed"),))
FOUND: dict[str, Sequence[Run]] = {
    "calm": [beside("passive"), beside("passive", processes=8)],
    "nothing beside": [run(1, 2)],
    "busy, which costs nobody anything": [beside("passive", busy_checkpoints=(1,))],
    "not valid": [KILLED],
    "no series": [beside("restart", seen={})],
    "empty series": [beside("restart", seen=dict.fromkeys(CALM, ()))],
    "starved": [beside(stuck_checkpoints_in_a_row=(1, 2, 3, 0))],
    "starved by the pinned reader": [beside(pinned=True, stuck_checkpoints_in_a_row=(40,))],
    **{
        f"busy {mode}": [
            beside(mode, busy_checkpoints=(0, 1, 1), longest_checkpoint=(1_000 * MS,)),
            beside(mode),
        ]
        for mode in ("restart", "truncate")
    },
    **{
        f"large, {mode}": [beside(mode, largest_WAL=(900 * MB,))]
        for mode in ("passive", "restart", "truncate")
    },
    "large by the pinned reader": [beside("none", pinned=True, largest_WAL=(900 * MB,))],
    "large and starved": [beside(largest_WAL=(900 * MB,), stuck_checkpoints_in_a_row=(9,))],
}


def test_findings_on_checkpoints_and_wals_equal_the_golden_file() -> None:
    assert_golden_texts("wal-findings.txt", {name: texts_of(*runs) for name, runs in FOUND.items()})
