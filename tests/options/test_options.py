"""Parsing of the values of options."""

import datetime
import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.experiment import Experiment, all_experiments
from sqlstress.options.option import Option, options_of
from sqlstress.options.parsing import (
    MAX_RATE,
    Parse,
    abbreviate,
    byte_size,
    choice,
    choices,
    duration,
    duration_with_unit,
    milliseconds,
    percentage,
    power_of_two,
    pragmas,
    ranges,
    rates,
    ratio,
    switch,
    whole_number,
)
from sqlstress.studies.ab import ab_options
from sqlstress.studies.limit import limit_options
from tests.drawing import CHARACTERS

HUGE = 10**5000
DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]

anything: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(CHARACTERS)
    | st.dates()
    | st.sampled_from((5000, 20_000)).map(lambda digits: 10**digits)
    | st.sampled_from((DEEP, "9" * 5000, "1-8", "2s", "wal", "a=1")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS), inner, max_size=3),
    max_leaves=5,
)
"""Any value of a command line or of a TOML file."""


@pytest.mark.parametrize(
    ("parse", "value", "expected"),
    [
        (whole_number(1, 100), "42", 42),
        (whole_number(1, 10**6), " 10_000 ", 10_000),
        (whole_number(-5, 5), "-5", -5),
        (byte_size(1, 10**15), "100MB", 100_000_000),
        (byte_size(1, 10**15), "1.5gb", 1_500_000_000),
        (byte_size(1, 10**15), 4096, 4096),
        (ratio, "0.5", 0.5),
        (ratio, 1, 1.0),
        (ratio, "90%", 0.9),
        (ratio, " 12.5 % ", 0.125),
        (percentage(0.005, 0.9), "10%", 0.1),
        (choice("wal", "delete"), "WAL", "wal"),
        (choices("a", "b", "c"), " C , a,C", ("c", "a")),
        (choices("a", "b", "c"), ["b", "a"], ("b", "a")),
        (switch, "on", True),
        (switch, "OFF", False),
        (switch, True, True),
        (switch, 0, False),
        (duration(0.0), "500ms", 0.5),
        (duration(0.0), 2, 2.0),
        (duration(0.0), "24h", 86_400.0),
        (duration(0.0), 60, 60.0),
        (duration_with_unit(0.0), "0", 0.0),
        (duration_with_unit(0.001), "20ms", 0.02),
        (milliseconds(0.0), "5s", 5000),
        (milliseconds(0.0), 0, 0),
        (milliseconds(0.0), "5", 5000),
        (milliseconds(0.0), 0.5, 500),
        (ranges(8), "1,2,4-6", (1, 2, 4, 5, 6)),
        (ranges(8), " 8 , 1 - 2 ", (8, 1, 2)),
        (ranges(8), "2,1-3,2", (2, 1, 3)),
        (ranges(8), 3, (3,)),
        (ranges(8), [1, "3-4"], (1, 3, 4)),
        (rates, "500, 1000,500", (500, 1000)),
        (rates, "500-1900/500,7", (500, 1000, 1500, 7)),
        (rates, [500, "600-700/100"], (500, 600, 700)),
        (power_of_two(512, 65536), "4096", 4096),
        (pragmas, "Temp_Store=MEMORY", (("temp_store", "MEMORY"),)),
        (pragmas, ("a=1", " b=-2 "), (("a", "1"), ("b", "-2"))),
    ],
)
def test_option_values_are_parsed(parse: Parse, value: Any, expected: Any) -> None:
    parsed = parse(value)
    assert parsed == expected
    assert type(parsed) is type(expected)


@pytest.mark.parametrize(
    ("parse", "value", "message"),
    [
        (byte_size(1, 10**15), "0", "'0' is not a size from 1 to"),
        (byte_size(1, 10**15), "1 MiB", "is not a size: write 100MB, 1GB or a number of bytes"),
        (whole_number(1, 100), "0", "'0' is not a whole number from 1 to 100"),
        (whole_number(1, 10**6), 2_000_000, "2000000 is not a whole number from 1 to 1,000,000"),
        (whole_number(1, 100), 4.0, "4.0 is not a whole number"),
        (whole_number(0, 100), True, "True is not a whole number"),
        (whole_number(0, 100), "__1", "'__1' is not a whole number"),
        (whole_number(0, 100), HUGE, "what was given is not a whole number"),
        (whole_number(0, 100), "9" * 5000, "9999... is not a whole number"),
        (ratio, "1.01", "'1.01' is not a share from 0 to 1"),
        (ratio, "nan", "'nan' is not a share"),
        (ratio, False, "False is not a share"),
        (ratio, HUGE, "what was given is not a share"),
        (choice("wal", "delete"), "wall", "'wall' is not one of wal, delete. Did you mean wal?"),
        (choices("a", "b"), "a,c", "'c' is not one of a, b"),
        (choices("a", "b"), [], "the list is empty: name some of a, b"),
        (choices("a", "b"), [["a"]], "['a'] is not one of a, b"),
        (switch, "maybe", "'maybe' is not on or off"),
        (switch, [], "[] is not on or off"),
        (ratio, "%", "'%' is not a share from 0 to 1"),
        (ratio, "90", "'90' is not a share from 0 to 1: write 90% or 0.9"),
        (ratio, 12.5, "12.5 is not a share from 0 to 1: write 12.5% or 0.125"),
        (percentage(0.005, 0.9), "20", "'20' is not a share from 0.005 to 0.9: write 20% or 0.2"),
        (percentage(0.005, 0.9), "95", "'95' is not a share from 0.005 to 0.9: write 10% or 0.1"),
        (ratio, "150%", "'150%' is not from 0% to 100%"),
        (ratio, "-5%", "'-5%' is not from 0% to 100%"),
        (percentage(0.005, 0.9), "95 %", "'95 %' is not from 0.5% to 90%"),
        (duration(1.0), "500", "500 needs a unit: write 500s"),
        (duration(0.0), "2000", "2000 needs a unit: write 2000ms or 2000s"),
        (duration(0.0), 60.5, "60.5 needs a unit: write 60.5ms or 60.5s"),
        (duration_with_unit(0.001), "0.5", "0.5 needs a unit: write 0.5s"),
        (milliseconds(0.0), "5000", "5000 needs a unit: write 5000ms or 5000s"),
        (milliseconds(0.0), 61, "61 needs a unit: write 61ms or 61s"),
        (duration_with_unit(0.001), 5, "5 needs a unit: write 5ms or 5s"),
        (milliseconds(0.0), 10**6, "is not a duration from 0 s to a day"),
        (duration(0.01), "1ms", "'1ms' is not a duration from 0.01 s to a day"),
        (duration(0.0), "-1s", "'-1s' is not a duration: write 500ms, 2s, 2m or plain seconds"),
        (duration(0.0), float("nan"), "nan is not a duration from"),
        (duration(0.0), HUGE, "what was given is not a duration from"),
        (duration(0.0), True, "True is not a duration: write"),
        (duration(0.0), datetime.time(1), "datetime.time(1, 0) is not a duration: write"),
        (ranges(8), "0", "'0' is not within 1-8"),
        (ranges(8), "4-2", "'4-2' is reversed: write 2-4"),
        (ranges(8), "4-0", "'4-0' is not within 1-8"),
        (ranges(8), "9-2", "'9-2' is not within 1-8"),
        (ranges(8), "", "'' is not a number or a range: write 4, 1-8 or 1,2,4-6"),
        (ranges(10**6), "1-10001", "'1-10001' is more than 10,000 numbers"),
        (ranges(8), ",".join(["1-8"] * 1251), "... is more than 10,000 numbers"),
        (ranges(8), "1-2-3", "'1-2-3' is not a number or a range"),
        (ranges(8), [], "the list is empty: write 4"),
        (ranges(8), [1.5], "1.5 is not a number or a range"),
        (ranges(8), True, "True is not a number or a range"),
        (ranges(8), HUGE, "what was given is not within 1-8"),
        (ranges(8), DEEP, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[... is not a number or a range"),
        (rates, "fast", "'fast' is not a rate: write 2000, 500,1000 or 500-2000/500"),
        (rates, "0", "'0' is not within 1-1,000,000"),
        (rates, "500-0/100", "'500-0/100' is not within 1-1,000,000 operations per second"),
        (rates, "500-2000/0", "'500-2000/0' has a step of 0: write a step of 1 or more"),
        (rates, "2000-500/100", "'2000-500/100' is reversed: write 500-2000/100"),
        (rates, True, "True is not a rate"),
        (rates, [], "the list is empty: write 2000"),
        (rates, f"1-{MAX_RATE}/1", "more than 10,000 rates"),
        (power_of_two(512, 65536), "4000", "'4000' is not a power of two from 512 to 65536"),
        (power_of_two(512, 65536), "131072", "'131072' is not a whole number from 1 to 65,536"),
        (pragmas, "cache_spill", "'cache_spill' is not NAME=VALUE"),
        (pragmas, "a=1; DROP TABLE kv", "'a=1; DROP TABLE kv' is not NAME=VALUE"),
        (pragmas, {"a": 1}, "{'a': 1} is not NAME=VALUE"),
        (pragmas, "CACHE_SIZE=5", "cache_size has its own option: use --cache-size"),
    ],
    ids=lambda value: value.__qualname__.split(".")[0] if callable(value) else abbreviate(value),
)
def test_invalid_value_is_refused_with_a_valid_example(parse: Parse, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(value)


@given(anything)
def test_any_value_is_parsed_or_refused_in_a_short_line(value: Any) -> None:
    for option in chain.from_iterable(experiment.options for experiment in all_experiments()):
        try:
            option.parse(value)
        except ValueError as error:
            assert len(str(error)) < 180, option.name
            assert "\n" not in str(error)


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 5)), min_size=1, max_size=5))
def test_list_of_ranges_is_expanded(spans: list[tuple[int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}" if more else str(first) for first, more in spans)
    numbers = [number for first, more in spans for number in range(first, first + more + 1)]
    assert ranges(100)(text) == tuple(dict.fromkeys(numbers))


EVERY = pytest.mark.parametrize(
    "options",
    [
        *(pytest.param(experiment.options, id=experiment.name) for experiment in all_experiments()),
        pytest.param(ab_options(), id="ab"),
        pytest.param(limit_options(), id="limit"),
    ],
)
"""All options of a command together: hundreds of tests of a microsecond each would take seconds."""


@EVERY
def test_every_default_is_a_valid_value(options: Sequence[Option]) -> None:
    for option in options:
        if option.default is not None:
            option.parse(option.default)
        assert option.help.endswith("."), option.name


@EVERY
def test_help_of_an_option_names_every_choice(options: Sequence[Option]) -> None:
    for option in options:
        try:
            option.parse("?")
        except ValueError as error:
            _, chosen, names = str(error).partition(" is not one of ")
            words = set(re.findall(r"[\w/-]+", f"{option.help} {option.default}".lower()))
            assert not chosen or set(names.split(", ")) <= words, option.name


@pytest.mark.parametrize("experiment", all_experiments(), ids=lambda experiment: experiment.name)
def test_command_offers_every_option_of_its_spec(experiment: Experiment) -> None:
    offered_by_spec = {
        option.name for cls in (experiment.spec, experiment.selection) for option in options_of(cls).values()
    }
    assert offered_by_spec <= {option.name for option in experiment.options}


@pytest.mark.parametrize("experiment", all_experiments(), ids=lambda experiment: experiment.name)
def test_options_of_an_experiment_have_unique_names_and_letters(experiment: Experiment) -> None:
    names = [option.name for option in experiment.options]
    letters = [option.short for option in experiment.options if option.short]
    assert len(names) == len(set(names))
    assert len(letters) == len(set(letters))
