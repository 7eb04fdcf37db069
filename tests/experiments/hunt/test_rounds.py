"""The drawing of rounds, and the smaller rounds made from them."""

from dataclasses import asdict, replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiment import get_experiment
from sqlstress.experiments.hunt.rounds import LEFT_OUT, calmer, draw_round, scheduled, smaller
from sqlstress.experiments.hunt.spec import (
    POINTS,
    ROLES,
    SETTINGS,
    Round,
    Schedule,
    counts,
    pause_rate,
    role_of,
)
from sqlstress.plan import plan_of
from sqlstress.report.case import Case

NUMBERS = st.integers(0, 5000)


def base(**given: Any) -> Case:
    """Return the base case of rounds, with options as on the command line."""
    return plan_of({"seed": "5", **given}, "hunt").cases[0]


@given(NUMBERS)
def test_drawn_round_is_complete_and_valid(number: int) -> None:
    case = draw_round(base(), number)
    assert None not in asdict(case.spec).values()
    assert case.concurrency == sum(counts(case.spec).values()) >= 1
    assert set(case.spec.pause_at) <= set(POINTS)
    assert case.settings.journal_mode == "wal" or case.spec.checkpointers == 0
    assert type(case.spec)(**asdict(case.spec)) == case.spec


@given(NUMBERS)
def test_round_depends_on_number_and_seed_only(number: int) -> None:
    assert draw_round(base(), number) == draw_round(base(), number)
    assert draw_round(base(), number) != draw_round(base(), number + 1)
    assert draw_round(base(), number) != draw_round(base(seed="6"), number)


@given(NUMBERS)
def test_given_option_is_not_drawn(number: int) -> None:
    case = draw_round(base(writers="7", churn="off", **{"page-size": "8192", "pause-at": "fetch"}), number)
    assert (case.spec.writers, case.spec.churn, case.spec.pause_at) == (7, False, ("fetch",))
    assert case.settings.page_size == 8192


def test_round_as_given_has_only_the_given_options() -> None:
    case = draw_round(base(writers="3"), 1, as_given=True)
    assert case.spec == Round(writers=3)
    assert {name: getattr(case.settings, name) for name in SETTINGS} == {
        name: LEFT_OUT[name] for name in SETTINGS
    }


def test_rounds_differ_in_every_drawn_option() -> None:
    cases = [draw_round(base(), number) for number in range(300)]
    for name in asdict(Round()):
        assert len({getattr(case.spec, name) for case in cases}) > 1, name
    for name in SETTINGS:
        assert len({getattr(case.settings, name) for case in cases}) > 1, name


@given(NUMBERS)
def test_every_process_has_a_role_and_a_rate_of_pauses(number: int) -> None:
    case = draw_round(base(), number)
    roles = [role_of(case.spec, process) for process in range(1, case.concurrency + 1)]
    assert len(set(roles)) == case.concurrency
    assert {name: sum(role.name == name for role in roles) for name in ROLES} == counts(case.spec)
    assert all(pause_rate(case.spec, role.name) >= 0 for role in roles)


def _size(case: Case) -> tuple[int, ...]:
    """Return the size of a round, as numbers that only decrease in smaller rounds."""
    spec = case.spec
    settings = sum(getattr(case.settings, name) is not None for name in SETTINGS)
    beside = (spec.reopen, spec.filler, spec.batch, int(spec.churn), len(spec.checkpoint))
    pauses = sum(map(bool, (spec.writer_pause, spec.reader_pause, spec.checkpointer_pause)))
    return (*counts(spec).values(), *beside, pauses, len(spec.pause_at), settings)


@given(NUMBERS)
def test_smaller_rounds_have_no_larger_size(number: int) -> None:
    case = draw_round(base(), number)
    for candidate in smaller(case):
        assert all(less <= more for less, more in zip(_size(candidate), _size(case), strict=True))
        assert candidate.concurrency == sum(counts(candidate.spec).values())
        assert candidate.spec.writers >= 1 and candidate.spec.pause_at and candidate.spec.checkpoint


def test_smallest_round_has_no_smaller_round() -> None:
    least = draw_round(base(), 0, as_given=True)
    least = replace(least, spec=replace(least.spec, pause_at=("read",), checkpoint=("full",)))
    assert set(smaller(least)) == {least}


@given(NUMBERS, st.integers(1, 9))
def test_user_work_pauses_as_drawn_or_as_given(number: int, processes: int) -> None:
    random, case = Random(number), replace(Case(), concurrency=processes)
    nothing = Schedule(None, None, None)  # type: ignore[arg-type]
    schedule = scheduled(random, nothing)
    assert schedule.pause_at and schedule.pause and schedule.longest_pause_s
    assert scheduled(random, replace(nothing, pause=3)).pause == 3
    for fewer, calm in calmer(case, schedule):
        assert (fewer.concurrency, calm.pause, calm.pause_at) != (
            processes,
            schedule.pause,
            schedule.pause_at,
        )
        assert 1 <= fewer.concurrency <= processes


def test_experiment_draws_the_options_without_default() -> None:
    drawn_options = {option.name for option in get_experiment("races").options if option.default is None}
    assert {"writers", "checkpointers", "pause-at", "journal-mode"} <= drawn_options
