"""The sentences of what is found of methods, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase, sampled
from sqlstress.statistics.compare import Ratio

_TWICE = Ratio(2.0, 1.9, 2.1, 5)
_LEAD = Finding("methods-lead", methods=("BLK", "JSON"), about=True, rate=9500.0, equal=True)
_MADE = Finding("made", faster=(Finding("made-faster", doing="inserting", ratio=_TWICE),))
_WAYS = ["querying by JSON"]

PHRASES = sampled(
    {
        "methods-highest": Phrase(
            "Highest with {driver}: {phases:semicolons}.",
            phases=(Finding("method-highest", doing="inserting", method="JSON", rate=400_000.0),),
        ),
        "method-highest": "{doing} by {method} ({rate:rounded} rows/s)",
        "methods-fastest": Phrase(
            "Fastest with {driver}: {phases:semicolons}.",
            phases=(Finding("phase-fastest", doing="inserting", fastest=_LEAD),),
        ),
        "phase-fastest": "{doing} by {fastest}[, or without SPC by {others}]",
        "methods-lead": "{methods} ({about?about |}{rate:rounded} rows/s[, {beside}]{equal?; about equal|}"
        "{unclear?; cannot tell which is fastest|})",
        "method-beside": "{ratio:relative as fast as} {base}, {ratio}",
        "method-beside-unclear": "cannot tell whether faster than {base}",
        "binding": "Cost of Peewee over sqlite3, on which it runs: {parts:semicolons}.",
        "binding-most": Phrase(
            "most when {ways}",
            ways=(Finding("way-dearer", way="inserting by BLK", row_ns=9300.0, ratio=_TWICE),),
        ),
        "binding-little": "less than {share:percent} when {ways}",
        "way-dearer": "{way} ({row_ns:duration} per row, {ratio:relative as long}, {ratio})",
        "ways-unclear": "cannot tell for {unclear:plural way}",
        "contention": "Rows per second with {driver}, {most:processes} at once compared with "
        "{fewest:processes}: {parts:semicolons}.",
        "contention-fewer": "fewer when {ways}",
        "contention-more": "more when {ways}",
        "contention-same": "about equal when {ways}",
        "way-changed": "{way} ({ratio:estimate}, {ratio})",
        "ways-more": "{count} more",
        "transaction": "Put writes into one transaction. Compared with a commit per row: {made}.",
        "transaction-unclear": "Cannot tell whether one transaction is faster than a commit per row.",
        "wal": "WAL compared with DELETE, with a commit per row: {alone}.[ In one transaction: {within}.]",
        "made": Phrase(
            "[{faster}]{both?, and |}[cannot tell for {unclear}]",
            faster=_MADE.facts["faster"],
            unclear=("allocating",),
        ),
        "made-faster": "{doing} {ratio:compared as fast}",
        "method-limit": "LIMIT when {doing} {rows} rows by {method} ({drivers}): {reason}.[ {instead}]",
        "method-instead": "{method} handled {rows} rows, at {rate:rounded} per second.",
        "row-values": "Use VALUES, not ROW: comparing pairs as row values took {took}. Some versions of "
        "SQLite scan the whole table for them; check with EXPLAIN QUERY PLAN.",
        "took-as-long": "{ratio:compared as long} with {driver}",
    },
    driver="sqlite3",
    drivers=("sqlite3",),
    doing="inserting",
    method="JSON",
    methods=("BLK", "JSON"),
    rows=100_000,
    rate=400_000.0,
    ratio=_TWICE,
    base="1b1",
    fastest=_LEAD,
    others=_LEAD,
    about=True,
    beside=Finding("method-beside", ratio=_TWICE, base="1b1"),
    unclear=3,
    ways=_WAYS,
    way="inserting by JSON",
    row_ns=9300.0,
    parts=(Finding("binding-little", share=0.1, ways=_WAYS),),
    most=4,
    fewest=1,
    made=_MADE,
    alone=_MADE,
    within=_MADE,
    both=True,
    reason="too many SQL variables",
    instead=Finding("method-instead", method="JSON", rows=100_000, rate=400_000.0),
    took=(Finding("took-as-long", ratio=_TWICE, driver="sqlite3"),),
)
