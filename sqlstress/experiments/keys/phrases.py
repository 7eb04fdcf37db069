"""The sentences of what is found of keys, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase, sampled
from sqlstress.statistics.compare import Ratio

_TIME = Finding("type-time", ratio=Ratio(0.8, 0.75, 0.85, 5))
_COST = Finding("type-cost", time=_TIME, file=0.76)

PHRASES = sampled(
    {
        "made-inside": "Ids generated inside SQLite, by a Python function: {took}.",
        "inside-took": "{times:times} as long",
        "inside-compared": "{ratio:compared as long}",
        "inside-unclear": "cannot tell whether slower ({ratio} times as long)",
        "id-type": "{schema}: [use int if one database assigns all ids ({int_cost}). ]{has_int?Otherwise "
        "use|use} {chosen}.[ Cannot tell whether {unclear:or} is faster.]",
        "type-base": "uuid4 (no other type saves time or space)",
        "type-chosen": "{type}{dated?, which contains its creation time|} ({cost})",
        "type-cost": "{time}[; {file:two} of its file size]",
        "type-time": "{ratio} of uuid4's time",
        "type-time-equal": "about equal to uuid4's time",
        "type-time-unclear": "cannot tell whether faster than uuid4",
        "id-type-least": Phrase(
            "{schemas:semicolons}.",
            schemas=(Finding("type-least", schema="pair-rowid", quickest="int", seconds=2.1),),
        ),
        "type-least": "{schema}: {quickest} took the least time ({seconds:rounded} s)[ and [{smallest} ]the "
        "least space ({file:two} of uuid4's)]",
        "schema": Phrase(
            "With {type}, {quickest}[; smallest: {smallest} ({about?about |}{megabytes:rounded} MB)]. "
            "{unique}",
            quickest=Finding("schema-least", schema="no-key", seconds=2.1),
            smallest=("pair-norowid",),
        ),
        "schema-least": "{schema} took the least time ({seconds:rounded} s)",
        "schemas-lead": "fastest: {schemas} ({about?about |}{seconds:rounded} s{equal?; about "
        "equal|}{unclear?; cannot tell which is fastest|})",
        "unique": "Only {schemas} prevent{one?s|} duplicate picks[; size: {costs} the smallest file].",
        "unique-unmeasured": "Only {schemas} prevent duplicate picks: measure them with --schema.",
        "schema-costs": "{schema} {times:times}",
    },
    took=Finding("inside-took", times=1.5),
    times=1.5,
    ratio=Ratio(1.1, 0.8, 1.5, 5),
    schema="pair-rowid",
    schemas=("pair-norowid", "pair-rowid"),
    int_cost=_COST,
    has_int=True,
    chosen=Finding("type-chosen", type="uuid7", dated=False, cost=_COST),
    unclear=("ulid",),
    type="uuid7",
    dated=True,
    cost=_COST,
    time=_TIME,
    file=0.76,
    quickest="int",
    seconds=2.1,
    smallest="uuid7",
    about=True,
    megabytes=5.2,
    unique=Finding("unique", schemas=("pair-norowid",), one=True),
    one=False,
    costs=(Finding("schema-costs", schema="pair-rowid", times=1.6),),
)
