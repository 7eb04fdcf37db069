"""The sentences of a hunt, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "hunt-what": Phrase(
        "Hunt[ of {work}] with {library}, driver {driver}; rounds of {round:seconds}, "
        "{pauses?processes pause at random calls inside SQLite|without pauses}; seed {seed:plain}."
    ),
    "hunt-tried": Phrase("Tried {rounds:plural round} in {took_ns:duration}: {done:commas}."),
    "hunt-done": Phrase("{count} {what}s"),
    "hunt-calls": Phrase("{count:plural call} of {kind}"),
    "hunt-found": Phrase("FAILED after {took_ns:duration}: {library} {what}."),
    "hunt-lost": Phrase("lost acknowledged commits"),
    "hunt-stale": Phrase("returned data older than a commit acknowledged before the read"),
    "hunt-torn": Phrase("returned an inconsistent snapshot"),
    "hunt-check-failed": Phrase("failed the check {name}"),
    "hunt-damaged": Phrase("damaged the database file"),
    "hunt-work-failed": Phrase("FAILED after {took_ns:duration}: {checks}."),
    "hunt-again": Phrase(
        "Repeated, this round failed {failed} of {tries:plural time}[; the smallest round {smallest}]."
    ),
    "hunt-again-smallest": Phrase("(below) failed {failed} of {tries:plural time}"),
    "hunt-once": Phrase(
        "Repeated {tries:plural time}, this round did not fail again. The report keeps what was found."
    ),
    "hunt-smallest": Phrase("Smallest round that still fails: {load}."),
    "hunt-round": Phrase("The round that failed: {load}."),
    "hunt-load": Phrase(
        "{writers:plural writer}[, {readers:plural reader}][, {holders:plural long reader}][, "
        "{checkpointers:plural checkpointer} ({modes:commas})]; journal {journal}[, wal_autocheckpoint "
        "{autocheckpoint}][; pauses: {pauses:commas}][ (at {points:commas})]"
    ),
    "hunt-work": Phrase("{processes:processes}[; pauses: {pauses:commas}][ (at {points:commas})]"),
    "hunt-pause": Phrase("each {role} at 1 of {one_in} calls"),
    "hunt-command": Phrase("Repeat it: {command}"),
    "hunt-wal-reset": Phrase(
        "Probable cause: the WAL-reset bug of SQLite 3.7.0 to 3.51.2. When a checkpoint and a commit "
        "coincide, the checkpoint can skip frames of the new WAL and lose commits. Use 3.51.3 or later, "
        "3.50.7 or 3.44.6: https://www.sqlite.org/wal.html"
    ),
    "hunt-wal-reset-too": Phrase(
        "This SQLite also has the WAL-reset bug, which loses commits. Repeat with SQLite 3.51.3 or later "
        "to rule it out: https://www.sqlite.org/wal.html"
    ),
    "hunt-nothing": Phrase(
        "Nothing found. This does not prove that there is nothing to find: hunt longer (--max-time 10m) "
        "or again."
    ),
    "hunt-unchecked": Phrase(
        "No check was given, so nothing that only you know of your data was verified. Add a check to find "
        "lost updates."
    ),
    "hunt-no-round": Phrase("No round finished."),
}
