"""Conversion of dataclasses to plain data and back, JSON text of a report, and checks of integer lists."""

import json
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstress.report.document import json_text
from sqlstress.report.jsonable import INT_LIMIT, all_integer_rows, all_integers, from_plain, to_plain
from tests.drawing import CHARACTERS
from tests.example_report import assert_golden_texts


@dataclass(frozen=True, slots=True)
class Leaf:
    tps: float
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    unit: ClassVar[str] = "pair"
    name: str
    leaves: tuple[Leaf, ...] = ()
    pairs: tuple[tuple[str, int], ...] = ()
    by_kind: dict[str, Leaf] = field(default_factory=dict)
    flag: bool = False
    count: int = 0
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Sparse:
    rows: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Series:
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wood:
    oaks: tuple[Tree, ...]

    def __post_init__(self) -> None:
        if any(tree.name != "oak" for tree in self.oaks):
            raise ValueError("these are not all oaks")


TREE = Tree("oak", (Leaf(1.5), Leaf(2.0, "dry")), (("a", 1),), {"get": Leaf(0.0)}, True, 3, 0.25)
PLAIN = {
    "name": "oak",
    "leaves": [{"tps": 1.5, "note": None}, {"tps": 2.0, "note": "dry"}],
    "pairs": [["a", 1]],
    "by_kind": {"get": {"tps": 0.0, "note": None}},
    "flag": True,
    "count": 3,
    "share": 0.25,
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(CHARACTERS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS), inner, max_size=3),
    max_leaves=8,
)


def test_dataclass_becomes_plain_lists_and_dicts_and_back() -> None:
    assert to_plain(TREE) == PLAIN
    assert from_plain(Tree, json.loads(json.dumps(PLAIN))) == TREE
    assert "unit" not in to_plain(TREE)
    assert from_plain(Tree, {"name": "oak", "unit": "hour"}).unit == "pair"
    assert from_plain(Tree, {"name": "oak"}) == Tree("oak")
    assert from_plain(Leaf, {"tps": 1.0, "colour": ["green"]}) == Leaf(1.0)
    tps = from_plain(Leaf, {"tps": 7}).tps
    assert (tps, type(tps)) == (7.0, float)


WRONG: list[Any] = [
    {"name": "oak", "leaves": [{"tps": 1}, {}]},
    *({}, [], {"name": 3}),
    *({"name": "oak", "count": True}, {"name": "oak", "share": True}, {"name": "oak", "flag": 1}),
    *({"name": "oak", "leaves": {}}, {"name": "oak", "by_kind": []}),
    *({"name": "oak", "pairs": [["a"]]}, {"name": "oak", "pairs": [[1, 1]]}),
    *({"name": "oak", "count": 2**64}, {"name": "oak", "share": 10**4000}),
    *({"name": "a\ud800"}, {"name": "oak", "by_kind": {"\udc00": {"tps": 1}}}),
]


def refused(plain: Any) -> str:
    with pytest.raises(ValueError) as caught:
        from_plain(Tree, plain)
    return str(caught.value)


def test_data_that_does_not_fit_is_refused_with_its_path() -> None:
    assert_golden_texts("data-refused.txt", {json.dumps(plain)[:60]: refused(plain) for plain in WRONG})


def test_value_refused_by_its_class_is_reported_with_its_path() -> None:
    with pytest.raises(ValueError, match=r"^these are not all oaks$"):
        from_plain(Wood, {"oaks": [{"name": "elm"}]})
    with pytest.raises(ValueError, match=r"^oaks\[1\]\.leaves\[0\]\.tps: missing$"):
        from_plain(Wood, {"oaks": [{"name": "oak"}, {"name": "elm", "leaves": [{}]}]})


@pytest.mark.parametrize("numbers", [[1, True], [1, 2.0], [1, "2"], [1, 2**64], [1, -(2**64)], [[1]], [None]])
def test_every_number_of_a_list_is_checked(numbers: list[Any]) -> None:
    assert from_plain(Series, {"values": [2**64 - 1, 0, 1 - 2**64]}).values == (2**64 - 1, 0, 1 - 2**64)
    assert from_plain(Series, {"values": []}).values == ()
    with pytest.raises(ValueError, match=rf"^values\[{len(numbers) - 1}\]: "):
        from_plain(Series, {"values": numbers})


@pytest.mark.parametrize(
    "row", [[1, True], [1, 2.0], [1], [1, 2, 3], [], [1, 2**64], [[1], 2], None, "ab", 1]
)
def test_every_row_of_numbers_is_checked(row: Any) -> None:
    assert from_plain(Sparse, {"rows": [[1, 2], [3, 4]]}).rows == ((1, 2), (3, 4))
    assert from_plain(Sparse, {"rows": []}).rows == ()
    assert to_plain(Sparse(((1, 2), (3, 4)))) == {"rows": [[1, 2], [3, 4]]}
    with pytest.raises(ValueError, match=r"^rows\[1\]"):
        from_plain(Sparse, {"rows": [[1, 2], row]})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinity_are_refused_both_ways(number: float) -> None:
    with pytest.raises(ValueError, match=r"^leaves\[0\]\.tps: NaN and Infinity"):
        to_plain(Tree("oak", (Leaf(number),)))
    with pytest.raises(ValueError, match=r"^tps: NaN and Infinity"):
        from_plain(Leaf, {"tps": number})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**64, "a whole number of more than 64 bits"),
        ({"a": {1, 2}}, "a: set has no JSON form"),
        ({3: 1}, "a key must be text"),
        ([Leaf], "[0]: type has no JSON form"),
    ],
)
def test_value_without_a_json_form_is_refused_with_its_path(value: object, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        to_plain(value)
    assert str(caught.value) == message


def test_endless_data_and_unknown_types_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested too deeply"):
        to_plain(endless)
    with pytest.raises(TypeError, match="does not know"):
        from_plain(bytes, "a")


def test_undecodable_file_name_is_saved_escaped_and_read_back() -> None:
    plain = to_plain(Tree("caf\udce9", by_kind={"\udce9": Leaf(1.0)}))
    assert plain["name"] == r"caf\udce9"
    assert list(plain["by_kind"]) == [r"\udce9"]
    assert from_plain(Tree, plain).name == r"caf\udce9"


def test_hostile_names_are_shortened_and_escaped_in_the_path() -> None:
    with pytest.raises(ValueError) as caught:
        from_plain(Tree, {"name": "oak", "by_kind": {"\x1b[31m\U0001f600" * 100_000: 1}})
    assert len(str(caught.value)) < 120
    assert str(caught.value).isascii() and "\x1b" not in str(caught.value)


@given(json_values)
def test_any_json_value_is_read_or_refused_with_value_error(plain: Any) -> None:
    for value in (
        plain,
        {"name": "oak", "leaves": plain},
        {"name": "oak", "by_kind": plain},
        {"name": plain},
    ):
        try:
            tree = from_plain(Tree, value)
        except ValueError as error:
            assert len(str(error)) < 200
        else:
            assert from_plain(Tree, to_plain(tree)) == tree


NUMBERS: st.SearchStrategy[Any] = st.integers(-3, 3) | st.sampled_from(
    [INT_LIMIT, INT_LIMIT - 1, 1 - INT_LIMIT, -INT_LIMIT, True, 1.0, "1", None, (), [1]]
)


def is_whole(value: Any) -> bool:
    return type(value) is int and -INT_LIMIT < value < INT_LIMIT


@given(st.lists(st.integers(-3, 3) | NUMBERS, max_size=4))
def test_all_whole_needs_only_integers_and_at_least_one(values: list[Any]) -> None:
    assert all_integers(values) == (bool(values) and all(map(is_whole, values)))


@given(st.lists(st.lists(NUMBERS, max_size=3) | st.tuples(NUMBERS, st.just(1)) | NUMBERS, max_size=3))
def test_all_rows_needs_only_integer_rows_and_at_least_one(values: list[Any]) -> None:
    for kind in (list, tuple):
        sound = all(type(row) is kind and row and all(map(is_whole, row)) for row in values)
        assert all_integer_rows(values, kind) == (bool(values) and sound)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(st.integers() | st.just(0.5), max_size=4)
        | st.lists(st.lists(st.integers(), max_size=2), max_size=3)
        | st.dictionaries(st.text(CHARACTERS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_any_written_value_is_read_back_equal(value: Any) -> None:
    again = json.loads(json_text(value))
    assert again == value
    assert repr(again) == repr(value)  # True is not written as 1, nor 1 as 1.0


@given(
    st.dictionaries(
        st.text(CHARACTERS), st.lists(st.text(CHARACTERS) | st.booleans(), min_size=1), min_size=1
    )
)
def test_text_without_numbers_equals_the_standard_librarys(value: Any) -> None:
    assert json_text(value) == json.dumps(value, indent=1)


def test_list_of_numbers_or_rows_is_written_in_a_single_line() -> None:
    assert json_text({"bins": [1, 2.5], "buckets": [[1, 2], [3, 4]], "mixed": [[1], "a"]}).splitlines() == [
        "{",
        ' "bins": [1, 2.5],',
        ' "buckets": [[1, 2], [3, 4]],',
        ' "mixed": [',
        "  [1],",
        '  "a"',
        " ]",
        "}",
    ]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "wrap", [lambda item: item, lambda item: [item], lambda item: [[item]], lambda item: {"a": item}]
)
def test_nan_and_infinity_are_never_written(wrap: Any, number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        json_text(wrap(number))
