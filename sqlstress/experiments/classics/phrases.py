"""The sentences of the findings of the classic experiments, as templates."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "methods-fastest": Phrase("{single?Highest|Fastest} with {driver}: {phases:semicolons}."),
    "phase-fastest": Phrase("{doing} by {fastest}[, or without SPC by {others}]"),
    "methods-lead": Phrase(
        "{methods} ({about?about |}{rate:rounded} rows/s[, {ratio:relative as fast as} {base}, {ratio}]"
        "{equal?; about equal|}{which?; cannot tell which is fastest|})"
    ),
    "transaction": Phrase(
        "Put writes into one transaction. Compared with a commit per row: [{faster}]{both?, and |}"
        "[cannot tell for {unclear}]."
    ),
    "wal": Phrase("WAL compared with DELETE, {how}: [{faster}]{both?, and |}[cannot tell for {unclear}]."),
    "made-faster": Phrase("{doing} {ratio:compared as fast}"),
    "row-values": Phrase(
        "Use VALUES, not ROW: comparing pairs as row values took {took}. Some versions of SQLite scan the "
        "whole table for them; check with EXPLAIN QUERY PLAN."
    ),
    "took-as-long": Phrase("{ratio:compared as long} with {driver}"),
    "method-limit": Phrase(
        "LIMIT when {doing} {rows:plural row} by {method} ({drivers}): {reason}.[ {instead} handled "
        "{done:plural row}, at {rate:rounded} per second.]"
    ),
    "binding": Phrase("Peewee costs most over sqlite3, on which it runs, when {ways}."),
    "way-dearer": Phrase("{way} ({row_ns:duration} per row, {ratio:relative as long}, {ratio})"),
    "contention": Phrase(
        "{most:processes} at once wrote or read {how} rows per second than {fewest:processes} with {driver} "
        "when {ways}."
    ),
    "way-changed": Phrase("{way} ({ratio:estimate}, {ratio})"),
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
    "timeout": Phrase("TIMEOUT at {where}[ after {limit_ns:duration}]: {reason}."),
    "took-least": Phrase("Least time: {least}; most: {most}, {times:times} as long."),
    "fastest": Phrase("Fastest: {fastest}[; slowest: {slowest}]."),
    "settings-took": Phrase(
        "{settings}, {about?about |}{total_ns:duration}{in_all? in all|}[, plus {closing_ns:duration} for "
        "the closing checkpoint][, {ratio:compared as long}]{equal? (about equal)|}{unclear? (cannot tell "
        "which is fastest)|}"
    ),
    "beyond-the-sum": Phrase(
        "The total includes BEGIN and COMMIT, but the sum of the statements does not: {bounds}. Row by "
        "row, BEGIN and COMMIT are part of each statement, and the sum is the total."
    ),
    "bounds-took": Phrase(
        "{bounds_ns:duration} of {total_ns:duration} ({share:percent}; {one?one COMMIT|}"
        "[{commits:rounded} COMMITs]) in {where}"
    ),
    "checkpoints-off": Phrase(
        "Without checkpoints ({where}): {off_ns:duration}; with them ({other}): {on_ns:duration}[, "
        "{ratio:compared as long}]{unclear? (cannot tell which is faster)|}.[ No effect expected: the WAL "
        "never reached {frames:plural frame}.]"
    ),
    "checkpoint": Phrase(
        "{where}: the checkpoint at {frames:plural frame} was due in cycle {due} ({commits:plural commit} "
        "per cycle[ of each of {together} processes in step], one frame each). {seen:capital}. The slowest "
        "cycle except the first is {spike}[ of process {process}] ({spike_ns:duration}; median "
        "{median_ns:duration}): {is_it?the checkpoint|not a checkpoint}.[ Cycle {first} was slower than "
        "{slower:percent} of the cycles.]"
    ),
    "checkpoint-unseen": Phrase("none was seen"),
    "checkpoint-seen": Phrase(
        "it was seen {there?there|}[in cycle {cycle}][ of process {process}][ "
        "({cycle_ns:duration})]{early?: commits wrote more than one frame|}[, then in {later}][ and "
        "{more} later ones]"
    ),
}
