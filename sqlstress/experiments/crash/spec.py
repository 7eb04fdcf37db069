"""What a crash test says of its writers beside what all cases say, and how often they are killed."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.options.option import LOAD, either, option
from sqlstress.options.parsing import choice, whole
from sqlstress.report.case import BEGINS

KILLING = "Killing"
MOST_ROUNDS = 1_000_000
MOST_WRITERS = 256
MOST_FILES = 1000


@dataclass(frozen=True, slots=True)
class Transactions:
    """What the writers write."""

    batch: int = option(whole(1, 1000), 4, LOAD, "Rows of a transaction, beside the one that logs it.")
    value_size: int = option(
        whole(8, 1 << 16), 256, LOAD, "Bytes in the value of a row, 8 or more.", metavar="BYTES"
    )
    begin: str = option(
        choice(*BEGINS), "immediate", LOAD, f"How a transaction begins: {either(BEGINS)}.", metavar="HOW"
    )


@dataclass(frozen=True, slots=True)
class Extra:
    """Options that stand in no case."""

    rounds: int = option(
        whole(1, MOST_ROUNDS),
        100,
        KILLING,
        "Rounds: in each all writers are killed, and then the files examined.",
    )
