"""What a worker checks of the answer to its query, when the time has been taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sqlstress.engine.protocols import Findings
from sqlstress.experiments.methods.tables import Pair, value
from sqlstress.targets.sqlite.drivers import Row

EXAMPLES = 3


def check_answer(found: Iterable[Row], wanted: Sequence[Pair], seed: int, findings: Findings) -> None:
    """Note what is wrong with an answer: every pair is wanted once, with the value that was stored."""
    findings.reads_checked += len(wanted)
    for text in objections(found, wanted, seed):
        findings.bad_reads += 1
        if len(findings.bad_read_examples) < EXAMPLES:
            findings.bad_read_examples.append(text)


def objections(found: Iterable[Row], wanted: Sequence[Pair], seed: int) -> Iterator[str]:
    """Yield what is wrong with an answer, a sentence for each row."""
    expected = Counter((a, b, value(a, b, seed)) for a, b in wanted)
    answered = Counter(found)
    for row in expected - answered:
        yield f"the answer lacks {_named(row)}"
    for row in answered - expected:
        yield f"the answer has {_named(row)}, which was not asked for or is there too often"


def _named(row: Row) -> str:
    return f"the result {row!r:.60}"
