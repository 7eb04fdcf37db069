"""The sentences of what is found of keys, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase
from sqlstress.statistics.compare import Ratio

_TIME = Finding("type-time", ratio=Ratio(0.8, 0.75, 0.85, 5))
_COST = Finding("type-cost", time=_TIME, file=0.76)

PHRASES = {
    "made-inside": Phrase(
        "Ids generated inside SQLite, by a Python function: {took}.",
        took=Finding("inside-took", times=1.5),
    ),
    "inside-took": Phrase("{times:times} as long", times=1.5),
    "inside-compared": Phrase("{ratio:compared as long}", ratio=Ratio(1.5, 1.4, 1.6, 5)),
    "inside-unclear": Phrase(
        "cannot tell whether slower ({ratio} times as long)", ratio=Ratio(1.1, 0.8, 1.5, 5)
    ),
    "id-type": Phrase(
        "{schema}: [use int if one database assigns all ids ({int_cost}). ]{has_int?Otherwise use|use} "
        "{chosen}.[ Cannot tell whether {unclear:or} is faster.]",
        schema="pair-rowid",
        int_cost=_COST,
        has_int=True,
        chosen=Finding("type-chosen", type="uuid7", dated=False, cost=_COST),
        unclear=("ulid",),
    ),
    "type-base": Phrase("uuid4 (no other type saves time or space)"),
    "type-chosen": Phrase(
        "{type}{dated?, which contains its creation time|} ({cost})", type="uuid7", dated=True, cost=_COST
    ),
    "type-cost": Phrase("{time}[; {file:two} of its file size]", time=_TIME, file=0.76),
    "type-time": Phrase("{ratio} of uuid4's time", ratio=Ratio(0.8, 0.75, 0.85, 5)),
    "type-time-equal": Phrase("about equal to uuid4's time"),
    "type-time-unclear": Phrase("cannot tell whether faster than uuid4"),
    "id-type-least": Phrase(
        "{schemas:semicolons}.",
        schemas=(
            Finding("type-least", schema="pair-rowid", quickest="int", seconds=2.1, smallest=None, file=0.4),
        ),
    ),
    "type-least": Phrase(
        "{schema}: {quickest} took the least time ({seconds:rounded} s)[ and [{smallest} ]the least space "
        "({file:two} of uuid4's)]",
        schema="pair-rowid",
        quickest="int",
        seconds=2.1,
        smallest="uuid7",
        file=0.4,
    ),
    "schema": Phrase(
        "With {type}, {quickest}[; smallest: {smallest} ({about?about |}{megabytes:rounded} MB)]. {unique}",
        type="uuid7",
        quickest=Finding("schema-least", schema="no-key", seconds=2.1),
        smallest=("pair-norowid",),
        about=False,
        megabytes=5.2,
        unique=Finding("unique", schemas=("pair-norowid",), one=True, costs=()),
    ),
    "schema-least": Phrase(
        "{schema} took the least time ({seconds:rounded} s)", schema="no-key", seconds=2.1
    ),
    "schemas-lead": Phrase(
        "fastest: {schemas} ({about?about |}{seconds:rounded} s{equal?; about equal|}{unclear?; cannot "
        "tell which is fastest|})",
        schemas=("no-key", "id-rowid"),
        about=True,
        seconds=2.1,
        equal=True,
        unclear=False,
    ),
    "unique": Phrase(
        "Only {schemas} prevent{one?s|} duplicate picks[; size: {costs} the smallest file].",
        schemas=("pair-rowid",),
        one=True,
        costs=(Finding("schema-costs", schema="pair-rowid", times=1.6),),
    ),
    "unique-unmeasured": Phrase(
        "Only {schemas} prevent duplicate picks: measure them with --schema.",
        schemas=("pair-norowid", "pair-rowid"),
    ),
    "schema-costs": Phrase("{schema} {times:times}", schema="pair-rowid", times=1.6),
}
