"""The sentences of what histories show, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "anomaly": Phrase(
        "{name:capital} at {where}, {times:plural time} in {transactions:plural transaction}. "
        "The first: {steps:semicolons}. {witnesses:semicolons}.[ {advice}]"
    ),
    "anomaly-lost-write": Phrase("lost write"),
    "anomaly-stale-read": Phrase("stale read"),
    "anomaly-aborted-read": Phrase("aborted read (G1a)"),
    "anomaly-intermediate-read": Phrase("intermediate read (G1b)"),
    "anomaly-dirty-write": Phrase("dirty write (G0)"),
    "anomaly-circular-flow": Phrase("circular information flow (G1c)"),
    "anomaly-lost-update": Phrase("lost update (P4)"),
    "anomaly-read-skew": Phrase("read skew (G-single)"),
    "anomaly-write-skew": Phrase("write skew (G2-item)"),
    "anomaly-rw": Phrase("{first} read version {version} of {row}, and {second} wrote version {after}"),
    "anomaly-ww": Phrase("{first} wrote version {version} of {row}, and {second} wrote version {after}"),
    "anomaly-wr": Phrase("{second} read version {version} of {row}, which {first} wrote"),
    "anomaly-twice": Phrase("both {first} and {second} wrote version {version} of {row}"),
    "anomaly-stale": Phrase(
        "{first} read version {version} of {row}, although {second} had committed version {after} before it "
        "began"
    ),
    "anomaly-undone": Phrase("{second} read version {version} of {row}, which {first} rolled back"),
    "anomaly-overwrote": Phrase(
        "{first} read version {version} of {row}, {second} wrote version {after}, and {first} wrote version "
        "{last} over it"
    ),
    "anomaly-witness": Phrase("{name} is {run}"),
    "anomaly-prevented": Phrase("The isolation level {level} must prevent this."),
    "anomaly-allowed": Phrase("The isolation level {level} allows this; {by} prevents it."),
    "anomaly-outside": Phrase(
        "The script does not do this in one transaction, so no isolation level prevents it. Put all of it "
        "between BEGIN and COMMIT (SQLite: BEGIN IMMEDIATE)."
    ),
    "no-anomaly": Phrase(
        "The history has no anomaly: {transactions:plural transaction}, {accesses} reads and writes "
        "of {rows:plural row}. This does not prove that there is none; a longer --duration tries more."
    ),
}
