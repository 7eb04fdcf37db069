"""Damaged plans in TOML: planned, or refused in a line."""

from collections import Counter
from pathlib import Path

from hypothesis import strategies as st

from tests.hostile.conftest import Judge, amounts
from tests.hostile.texts import NUMBERS, TEXTS
from tests.rows import fault

EXAMPLES = [
    path.read_bytes() for path in sorted(Path(__file__).parents[2].joinpath("examples").glob("*.toml"))
]
OPTIONS = sorted({line.split(b" =")[0] for text in EXAMPLES for line in text.splitlines() if b" = " in line})
VALUES = [
    *(repr(text).encode("utf-8", "surrogatepass") for text in TEXTS),
    *(f'"{number}"'.encode() for number in NUMBERS),
    *(number.encode() for number in NUMBERS),
    b"true", b"1979-05-27", b"07:32:00", b"[]", b"[[]]", b"[1, 'a', 1.5]", b"{}", b"{a = 1}", b'""',
    b'"\\u0000"',
    b"'''\n'''", b"[\n" * 400 + b"]" * 400, b"[\n" * 20_000, b"0x" + b"f" * 480, b"1" * 490, b"1e400",
    b"-inf", b"\xff",
]  # fmt: skip
LINES = [
    b"[[case]]", b"[case]", b"[[case]]\nworkload = 'kv'", b"[[case.case]]", b"[case.x]",
    b"workload = 'none'", b"case = []",
    b".".join([b"a"] * 240) + b" = 1", b"[" + b".".join([b"a"] * 240) + b"]", b'"\\n\\u202e" = 1', b"'' = ''",
    b'"""', b"'''", b"#" + b"x" * 600, b"\r", b"\x00", b"\x1b[31m", b"[[case]]\n" * 2000, b"a = {" * 90,
]  # fmt: skip


@st.composite
def plans(draw: st.DrawFn) -> bytes:
    """Return a damaged example plan: lines lost, repeated or replaced, or the end cut off."""
    lines = draw(st.sampled_from(EXAMPLES)).splitlines()
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(lines)))
        line = draw(
            st.tuples(st.sampled_from(OPTIONS), st.sampled_from(VALUES)).map(b" = ".join)
            | st.sampled_from(LINES)
            | st.sampled_from(lines or [b""])
            | st.binary(max_size=20)
        )
        lines[place : place + draw(st.integers(0, 1))] = [line]
    text = b"\n".join(lines)
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 4)) == 4 else text


@fault("input", "plans harmed at any place, nested, huge, of wrong types", "carried out or refused")
@amounts(1.5, 5000)
def test_any_plan_is_executed_or_refused_in_a_line(judge: Judge, number: int) -> None:
    cases_understood: Counter[bool] = Counter()

    def check(plan: bytes) -> None:
        Path("plan.toml").write_bytes(plan)
        output = judge("run", "plan.toml", "-o", "stop")
        assert output.code == 2 and len(output.lines) == 1
        understood = "-o 'stop'" in output.err
        assert understood or "plan.toml" in output.err
        cases_understood[understood] += 1

    judge.cases(plans(), check, number)
    judge.record("understood", cases_understood[True])
    assert min(cases_understood[True], cases_understood[False]) > number / 20
