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
        "Highest with {driver}: {phases:semicolons}.",
        driver="sqlite3",
        phases=(Finding("method-highest", doing="inserting", method="JSON", rate=400_000.0),),
    ),
    "method-highest": Phrase(
        "{doing} by {method} ({rate:rounded} rows/s)", doing="inserting", method="JSON", rate=400_000.0
    ),
    "methods-fastest": Phrase(
        "Fastest with {driver}: {phases:semicolons}.",
        driver="sqlite3",
        phases=(Finding("phase-fastest", doing="inserting", fastest=_LEAD, others=None),),
    ),
    "phase-fastest": Phrase(
        "{doing} by {fastest}[, or without SPC by {others}]", doing="inserting", fastest=_LEAD, others=_LEAD
    ),
    "methods-lead": Phrase(
        "{methods} ({about?about |}{rate:rounded} rows/s[, {beside}]{equal?; about equal|}{unclear?; "
        "cannot tell which is fastest|})",
        methods=("BLK", "JSON"),
        about=True,
        rate=9500.0,
        beside=Finding("method-beside", ratio=_TWICE, base="1b1"),
        equal=False,
        unclear=True,
    ),
    "method-beside": Phrase("{ratio:relative as fast as} {base}, {ratio}", ratio=_TWICE, base="1b1"),
    "method-beside-unclear": Phrase("cannot tell whether faster than {base}", base="1b1"),
    "binding": Phrase(
        "Cost of Peewee over sqlite3, on which it runs: {parts:semicolons}.",
        parts=(Finding("binding-little", share=0.1, ways=["querying by JSON"]),),
    ),
    "binding-most": Phrase(
        "most when {ways}",
        ways=(Finding("way-dearer", way="inserting by BLK", row_ns=9300.0, ratio=_TWICE),),
    ),
    "binding-little": Phrase("less than {share:percent} when {ways}", share=0.1, ways=["querying by JSON"]),
    "way-dearer": Phrase(
        "{way} ({row_ns:duration} per row, {ratio:relative as long}, {ratio})",
        way="inserting by BLK",
        row_ns=9300.0,
        ratio=_TWICE,
    ),
    "ways-unclear": Phrase("cannot tell for {unclear:plural way}", unclear=3),
    "contention": Phrase(
        "Rows per second with {driver}, {most:processes} at once compared with {fewest:processes}: "
        "{parts:semicolons}.",
        driver="sqlite3",
        most=4,
        fewest=1,
        parts=(Finding("contention-same", ways=["querying by JSON"]),),
    ),
    "contention-fewer": Phrase(
        "fewer when {ways}",
        ways=(Finding("way-changed", way="inserting by 1b1", ratio=Ratio(0.4, 0.3, 0.5, 5)),),
    ),
    "contention-more": Phrase(
        "more when {ways}", ways=(Finding("way-changed", way="inserting by JSON", ratio=_TWICE),)
    ),
    "contention-same": Phrase("about equal when {ways}", ways=["querying by JSON"]),
    "way-changed": Phrase("{way} ({ratio:estimate}, {ratio})", way="inserting by JSON", ratio=_TWICE),
    "ways-more": Phrase("{count} more", count=2),
    "transaction": Phrase(
        "Put writes into one transaction. Compared with a commit per row: {made}.", made=_MADE
    ),
    "transaction-unclear": Phrase("Cannot tell whether one transaction is faster than a commit per row."),
    "wal": Phrase(
        "WAL compared with DELETE, with a commit per row: {alone}.[ In one transaction: {within}.]",
        alone=_MADE,
        within=_MADE,
    ),
    "made": Phrase(
        "[{faster}]{both?, and |}[cannot tell for {unclear}]",
        faster=(Finding("made-faster", doing="inserting", ratio=_TWICE),),
        both=True,
        unclear=("allocating",),
    ),
    "made-faster": Phrase("{doing} {ratio:compared as fast}", doing="inserting", ratio=_TWICE),
    "method-limit": Phrase(
        "LIMIT when {doing} {rows} rows by {method} ({drivers}): {reason}.[ {instead}]",
        doing="querying",
        rows=100_000,
        method="BLK",
        drivers=("sqlite3",),
        reason="too many SQL variables",
        instead=Finding("method-instead", method="JSON", rows=100_000, rate=400_000.0),
    ),
    "method-instead": Phrase(
        "{method} handled {rows} rows, at {rate:rounded} per second.",
        method="JSON",
        rows=100_000,
        rate=400_000.0,
    ),
    "row-values": Phrase(
        "Use VALUES, not ROW: comparing pairs as row values took {took}. Some versions of SQLite scan the "
        "whole table for them; check with EXPLAIN QUERY PLAN.",
        took=(Finding("took-as-long", ratio=_TWICE, driver="sqlite3"),),
    ),
    "took-as-long": Phrase("{ratio:compared as long} with {driver}", ratio=_TWICE, driver="sqlite3"),
}
