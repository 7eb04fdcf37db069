"""The sentences of what is found of keys, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "made-inside": Phrase("Ids generated inside SQLite, by a Python function: {took}."),
    "inside-took": Phrase("{times:times} as long"),
    "inside-compared": Phrase("{ratio:compared as long}"),
    "inside-unclear": Phrase("cannot tell whether slower ({ratio} times as long)"),
    "id-type": Phrase(
        "{schema}: [use int if one database assigns all ids ({int_cost}). ]{has_int?Otherwise use|use} "
        "{chosen}.[ Cannot tell whether {unclear:or} is faster.]"
    ),
    "type-base": Phrase("uuid4 (no other type saves time or space)"),
    "type-chosen": Phrase("{type}{dated?, which contains its creation time|} ({cost})"),
    "type-cost": Phrase("{time}[; {file:two} of its file size]"),
    "type-time": Phrase("{ratio} of uuid4's time"),
    "type-time-equal": Phrase("about equal to uuid4's time"),
    "type-time-unclear": Phrase("cannot tell whether faster than uuid4"),
    "id-type-least": Phrase("{schemas:semicolons}."),
    "type-least": Phrase(
        "{schema}: {quickest} took the least time ({seconds:rounded} s)[ and [{smallest} ]the least space "
        "({file:two} of uuid4's)]"
    ),
    "schema": Phrase(
        "With {type}, {quickest}[; smallest: {smallest} ({about?about |}{megabytes:rounded} MB)]. {unique}"
    ),
    "schema-least": Phrase("{schema} took the least time ({seconds:rounded} s)"),
    "schemas-lead": Phrase(
        "fastest: {schemas} ({about?about |}{seconds:rounded} s{equal?; about equal|}{unclear?; cannot "
        "tell which is fastest|})"
    ),
    "unique": Phrase("Only {schemas} prevent{one?s|} duplicate picks[; size: {costs} the smallest file]."),
    "unique-unmeasured": Phrase("Only {schemas} prevent duplicate picks: measure them with --schema."),
    "schema-costs": Phrase("{schema} {times:times}"),
}
