"""The sentences of what is found of methods, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase
from sqlstress.statistics.compare import Ratio

_TWICE = Ratio(2.0, 1.9, 2.1, 5)
_LEAD = Finding(
    "methods-lead", methods=("JSON",), about=False, rate=400_000.0, beside=None, equal=False, unclear=False
)
_MADE = Finding(
    "made",
    faster=(Finding("made-faster", doing="inserting", ratio=_TWICE),),
    both=True,
    unclear=("allocating",),
)

PHRASES = {
    "methods-highest": Phrase(
        "Highest through {driver}: {phases:semicolons}.",
        driver="sqlite3",
        phases=(Finding("method-highest", doing="inserting", method="JSON", rate=400_000.0),),
    ),
    "method-highest": Phrase(
        "{doing} by {method} ({rate:rounded} rows/s)", doing="inserting", method="JSON", rate=400_000.0
    ),
    "methods-fastest": Phrase(
        "Fastest through {driver}: {phases:semicolons}.",
        driver="sqlite3",
        phases=(Finding("phase-fastest", doing="inserting", fastest=_LEAD, others=None),),
    ),
    "phase-fastest": Phrase(
        "{doing} by {fastest}[, or else {others}]", doing="inserting", fastest=_LEAD, others=_LEAD
    ),
    "methods-lead": Phrase(
        "{methods} ({about?about |}{rate:rounded} rows/s[, {beside}])"
        "{equal?, which are about equal|}{unclear?, which can't be told apart|}",
        methods=("BLK", "JSON"),
        about=True,
        rate=9500.0,
        beside=Finding("method-beside", ratio=_TWICE, base="1b1"),
        equal=False,
        unclear=True,
    ),
    "method-beside": Phrase("{ratio:compared as fast as} {base}", ratio=_TWICE, base="1b1"),
    "method-beside-unclear": Phrase("can't be told from {base}", base="1b1"),
    "binding": Phrase(
        "What Peewee costs beside sqlite3 below it: {parts:semicolons}.",
        parts=(Finding("binding-little", share=0.1, ways=["querying by JSON"]),),
    ),
    "binding-most": Phrase(
        "most {ways}",
        ways=(Finding("way-dearer", way="inserting by BLK", row_ns=9300.0, ratio=_TWICE),),
    ),
    "binding-little": Phrase("less than {share:percent} {ways}", share=0.1, ways=["querying by JSON"]),
    "way-dearer": Phrase(
        "{way} ({row_ns:duration} a row, {ratio:compared as long})",
        way="inserting by BLK",
        row_ns=9300.0,
        ratio=_TWICE,
    ),
    "ways-unclear": Phrase("of {unclear:plural way} it can't be told", unclear=3),
    "contention": Phrase(
        "Through {driver}, {most:processes} at once, rows a second beside those of {fewest:processes}: "
        "{parts:semicolons}.",
        driver="sqlite3",
        most=4,
        fewest=1,
        parts=(Finding("contention-same", ways=["querying by JSON"]),),
    ),
    "contention-fewer": Phrase(
        "fewer {ways}", ways=(Finding("way-changed", way="inserting by 1b1", ratio=Ratio(0.4, 0.3, 0.5, 5)),)
    ),
    "contention-more": Phrase(
        "more {ways}", ways=(Finding("way-changed", way="inserting by JSON", ratio=_TWICE),)
    ),
    "contention-same": Phrase("about as many {ways}", ways=["querying by JSON"]),
    "way-changed": Phrase("{way} ({ratio:estimate}, {ratio})", way="inserting by JSON", ratio=_TWICE),
    "ways-more": Phrase("{count} more", count=2),
    "transaction": Phrase(
        "Put writes into one transaction: beside a commit for each row {made}.", made=_MADE
    ),
    "transaction-unclear": Phrase(
        "Whether one transaction is faster than a commit for each row can't be told."
    ),
    "wal": Phrase(
        "WAL: with a commit for each row {alone}[; in one transaction {within}].", alone=_MADE, within=_MADE
    ),
    "made": Phrase(
        "[it made {faster}]{both?, and |}[it can't be told for {unclear}]",
        faster=(Finding("made-faster", doing="inserting", ratio=_TWICE),),
        both=True,
        unclear=("allocating",),
    ),
    "made-faster": Phrase("{doing} {ratio:compared as fast}", doing="inserting", ratio=_TWICE),
    "method-limit": Phrase(
        "LIMIT {doing} {rows} rows by {method} ({drivers}): {reason}.[ {instead}]",
        doing="querying",
        rows=100_000,
        method="BLK",
        drivers=("sqlite3",),
        reason="too many SQL variables",
        instead=Finding("method-instead", method="JSON", rows=100_000, rate=400_000.0),
    ),
    "method-instead": Phrase(
        "{method} took {rows} rows, at {rate:rounded} a second.", method="JSON", rows=100_000, rate=400_000.0
    ),
    "row-values": Phrase(
        "Take VALUES, not ROW: pairs compared as row values took {took}. Some versions of SQLite read the "
        "whole table for them; EXPLAIN QUERY PLAN tells.",
        took=(Finding("took-as-long", ratio=_TWICE, driver="sqlite3"),),
    ),
    "took-as-long": Phrase("{ratio:compared as long} through {driver}", ratio=_TWICE, driver="sqlite3"),
}
