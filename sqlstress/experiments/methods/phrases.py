"""The sentences of what is found of methods, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "methods-highest": Phrase("Highest with {driver}: {phases:semicolons}."),
    "method-highest": Phrase("{doing} by {method} ({rate:rounded} rows/s)"),
    "methods-fastest": Phrase("Fastest with {driver}: {phases:semicolons}."),
    "phase-fastest": Phrase("{doing} by {fastest}[, or without SPC by {others}]"),
    "methods-lead": Phrase(
        "{methods} ({about?about |}{rate:rounded} rows/s[, {beside}]{equal?; about equal|}{unclear?; "
        "cannot tell which is fastest|})"
    ),
    "method-beside": Phrase("{ratio:relative as fast as} {base}, {ratio}"),
    "method-beside-unclear": Phrase("cannot tell whether faster than {base}"),
    "binding": Phrase("Cost of Peewee over sqlite3, on which it runs: {parts:semicolons}."),
    "binding-most": Phrase("most when {ways}"),
    "binding-little": Phrase("less than {share:percent} when {ways}"),
    "way-dearer": Phrase("{way} ({row_ns:duration} per row, {ratio:relative as long}, {ratio})"),
    "ways-unclear": Phrase("cannot tell for {unclear:plural way}"),
    "contention": Phrase(
        "Rows per second with {driver}, {most:processes} at once compared with {fewest:processes}: "
        "{parts:semicolons}."
    ),
    "contention-fewer": Phrase("fewer when {ways}"),
    "contention-more": Phrase("more when {ways}"),
    "contention-same": Phrase("about equal when {ways}"),
    "way-changed": Phrase("{way} ({ratio:estimate}, {ratio})"),
    "ways-more": Phrase("{count} more"),
    "transaction": Phrase("Put writes into one transaction. Compared with a commit per row: {made}."),
    "transaction-unclear": Phrase("Cannot tell whether one transaction is faster than a commit per row."),
    "wal": Phrase(
        "WAL compared with DELETE, with a commit per row: {alone}.[ In one transaction: {within}.]"
    ),
    "made": Phrase("[{faster}]{both?, and |}[cannot tell for {unclear}]"),
    "made-faster": Phrase("{doing} {ratio:compared as fast}"),
    "method-limit": Phrase(
        "LIMIT when {doing} {rows:plural row} by {method} ({drivers}): {reason}.[ {instead}]"
    ),
    "method-instead": Phrase("{method} handled {rows:plural row}, at {rate:rounded} per second."),
    "row-values": Phrase(
        "Use VALUES, not ROW: comparing pairs as row values took {took}. Some versions of SQLite scan the "
        "whole table for them; check with EXPLAIN QUERY PLAN."
    ),
    "took-as-long": Phrase("{ratio:compared as long} with {driver}"),
}
