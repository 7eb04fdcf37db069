"""Options and spec of the experiment with primary keys."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstress.options.option import LOAD, SWEEP, option
from sqlstress.options.parsing import choice, choices, join_alternatives, switch, whole_number
from sqlstress.report.case import BEGIN_MODES
from sqlstress.request import Request

SCHEMAS = ("id-rowid", "id-norowid", "pair-norowid", "no-key", "pair-rowid")
ID_TYPES = ("int", "uuid4", "ulid", "ulid-monotonic", "uuid7")
USUAL_TYPES = ("int", "uuid4", "ulid", "uuid7")
"""The types that are measured by default. Monotonic ULIDs cost as much as other ULIDs."""


@dataclass(frozen=True, slots=True)
class Picks:
    """The experiment with primary keys: users pick items, a transaction for each user."""

    schema: str = option(
        choices(*SCHEMAS),
        "id-rowid,no-key",
        SWEEP,
        f"Schemas of the table of picks: a list of {', '.join(SCHEMAS)}.",
        metavar="LIST",
        varies=True,
        meaning="Name of the schema of the table of picks.",
        required=True,
    )
    id_type: str = option(
        choices(*ID_TYPES),
        ",".join(USUAL_TYPES),
        SWEEP,
        f"Types of the primary keys: a list of {', '.join(ID_TYPES)}.",
        metavar="LIST",
        varies=True,
        meaning="What identifies users, items and, where they have an id of their own, picks.",
        required=True,
    )
    users: int = option(whole_number(1, 10**6), 1000, LOAD, "Number of users. Each is one transaction.")
    picks: int = option(whole_number(1, 10**5), 100, LOAD, "Items that a user picks, give or take 10%.")
    items: int = option(whole_number(1, 10**6), 10_000, LOAD, "Number of items to pick from.")
    begin: str = option(
        choice(*BEGIN_MODES),
        "deferred",
        LOAD,
        f"BEGIN of each transaction: {join_alternatives(BEGIN_MODES)}.",
        metavar="HOW",
    )

    @property
    def own_id(self) -> bool:
        """Whether a pick has an id of its own; else it is the user and the item that identify it."""
        return self.schema.startswith("id-")

    @property
    def most_picks(self) -> int:
        """The largest number of items that one user can pick."""
        return self.picks + self.picks // 10


@dataclass(frozen=True, slots=True)
class KeysSelection:
    """Options that only say which cases there are."""

    full: bool = option(switch, False, SWEEP, "Measure all schemas and types.", flag=True)


KeysRequest = Request[Picks, KeysSelection]
