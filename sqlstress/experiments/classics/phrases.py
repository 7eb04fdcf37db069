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
    "binding": Phrase("sqlite3 was faster than Peewee, which runs on it: {ways}."),
    "contention": Phrase(
        "Rows per second with {driver}, {most:processes} at once compared with {fewest:processes}: {how} "
        "when {ways}."
    ),
    "way-changed": Phrase("{way} ({ratio:estimate} as fast, {ratio})"),
    "made-inside": Phrase(
        "Ids generated inside SQLite, by a Python function: [{times:times} as long][{ratio:compared as long}]"
        "[cannot tell whether slower ({unsure} times as long)]."
    ),
    "id-type": Phrase(
        "{schema}: [use int if one database assigns all ids ({int_cost}). ]{has_int?Otherwise use|use} "
        "{stays?uuid4 (no other type saves time or space)|}[{chosen}]{dated?, which contains its creation "
        "time|}[ ({cost})].[ Cannot tell whether {unclear:or} is faster.]"
    ),
    "type-cost": Phrase(
        "[{ratio} of uuid4's time]{equal?about equal to uuid4's time|}{unclear?cannot tell whether faster "
        "than uuid4|}[; {file:two} of its file size]"
    ),
    "type-least": Phrase(
        "{schema}: {quickest} took the least time ({seconds:rounded} s)[ and [{smallest} ]the least space "
        "({file:two} of uuid4's)]."
    ),
    "schema": Phrase(
        "With {type}, {single?least time|fastest}: {quickest} ({several?about |}{seconds:rounded} s{equal?; "
        "about equal|}{unclear?; cannot tell which is fastest|})[; smallest: {smallest} ({about?about |}"
        "{megabytes:rounded} MB)]. {unique}"
    ),
    "unique": Phrase(
        "Only {schemas} prevent{one?s|} duplicate picks{unmeasured?: measure them with --schema|}[; size: "
        "{costs} the smallest file]."
    ),
    "schema-costs": Phrase("{schema} {times:times}"),
    "timeout": Phrase("TIMEOUT at {where}[ after {limit_ns:duration}]: {reason}."),
    "fastest": Phrase("{single?Least time|Fastest}: {fastest}[; {single?most|slowest}: {slowest}]."),
    "settings-took": Phrase(
        "{settings}, {about?about |}{total_ns:duration}[, plus {closing_ns:duration} for the closing "
        "checkpoint][, {times:times} as long][, {ratio:compared as long}]{equal? (about equal)|}"
        "{unclear? (cannot tell which is fastest)|}"
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
        "per cycle[ of each of {together} processes in step], one frame each). {unseen?None was seen|}"
        "[{seen:capital}]. The slowest cycle except the first is {spike}[ of process {process}] "
        "({spike_ns:duration}; median {median_ns:duration}): {is_it?the checkpoint|not a checkpoint}.[ "
        "Cycle {first} was slower than {slower:percent} of the cycles.]"
    ),
    "checkpoint-seen": Phrase(
        "it was seen {there?there|}[in cycle {cycle}][ of process {process}][ "
        "({cycle_ns:duration})]{early?: commits wrote more than one frame|}[, then in {later}][ and "
        "{more} later ones]"
    ),
}
