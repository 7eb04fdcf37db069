"""A worker's half: one operation, which is a whole method on what the worker owns.

Timed is what an application would wait for: making the rows, the JSON or the statement, running it,
fetching the answer. Opening the database and drawing what is queried come before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqlstress.engine.ordered import OrderedSource, Step
from sqlstress.engine.protocols import FAILED, LIMIT, TIMEOUT, Chunk, Findings, Stamps
from sqlstress.experiments.methods.binding import Binding, Course, LimitReached, TimedOut, refusal
from sqlstress.experiments.methods.tables import Pair, own, value
from sqlstress.statistics.units import format_duration
from sqlstress.targets.sqlite.drivers import Row, codes

if TYPE_CHECKING:
    from sqlstress.report.case import Case
    from sqlstress.targets.sqlite.place import SqlitePlace


ARROW_SINCE = (3, 38)
"""The version of SQLite that brought the operator ->>."""


class MethodsSource(OrderedSource):
    """Does one cell's work once."""

    def __init__(
        self, case: Case, place: SqlitePlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        assert case.spec
        self.case, self.method = case, case.spec
        self.kinds = (self.method.phase,)
        words, told = shared
        self._client = place.client(worker)
        self._own = own(case, self.method, worker)
        self._connection = self._client.connect(0)
        own_word = memoryview(told).cast("B").cast("q")[worker - 1 : worker]
        self._course = Course(self._connection, self.method.timeout_s, own_word)
        self._binding = self._bind()
        self._unfit = False
        super().__init__(words, worker, self._client, self._operation())

    def _bind(self) -> Binding:
        variables = self._connection.limit(codes.LIMIT_VARIABLE_NUMBER)
        version = str(self._connection.rows("SELECT sqlite_version()")[0][0])
        common = (self.method, self._own, self._course, variables, has_arrow(version))
        # Only what is used is imported: a worker's start is part of what users wait for.
        if self.case.driver == "peewee":
            from sqlstress.experiments.methods.orm import Orm

            return Orm(self._connection, *common)
        from sqlstress.experiments.methods.binding import Bare

        return Bare(self._connection, *common)

    def _operation(self) -> Iterator[Step]:
        if self._own.rows:
            operation = self._binding.operation()
            self._course.begin()
            yield Step(0, lambda _: operation(), None, self._own.rows)

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        self._course.end()
        self._ledger.settled(0)
        self.seen.outcome, self.seen.note = self._judged(error)
        chunk.kinds[index] = FAILED

    def _judged(self, error: Exception) -> tuple[str, str]:
        """Return how the operation ended, and a line about it; raises what is neither time-out nor limit."""
        was_busy = self._client.was_busy(error)
        if isinstance(error, TimedOut) or self._was_interrupted(error):
            return TIMEOUT, f"given up after {format_duration(self.method.timeout_s)}"
        if was_busy:
            waited = format_duration(self.case.settings.busy_timeout_ms / 1000)
            return TIMEOUT, f"a lock was not to be had within {waited}"
        text = refusal(error)
        if text is None:
            raise error
        self._unfit = not isinstance(error, LimitReached)
        return LIMIT, text

    def _was_interrupted(self, error: BaseException | None) -> bool:
        """Return whether an error is an interrupt or came after one: Peewee then fails to roll back."""
        if error is None:
            return False
        # An interrupt that meets SQLite as it sets json_each up is told as this.
        unset = self._course.late and "vtable constructor failed" in str(error)
        interrupted = unset or self._client.result_code(error) == codes.INTERRUPT
        return interrupted or self._was_interrupted(error.__context__)

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        self._course.end()
        if chunk.kinds[0] == FAILED:
            return
        super().settle(chunk, done, results, stamps)
        if self.method.phase == "query" and self.case.verify != "none":
            rows = [self._binding.row(found) for found in results[0] if found is not None]
            check_answer(rows, self._own.pairs, self.case.seed, self.seen)

    def findings(self) -> Findings:
        if self._unfit:
            self.seen.note += f"; {self._binding.most_pairs():,} pairs at most"
        self.seen.effective = self._client.effective()
        return self.seen

    def close(self) -> None:
        self._client.close()


def has_arrow(version: str) -> bool:
    """Return whether a version of SQLite has the operator ->>."""
    return tuple(map(int, version.split(".")[:2])) >= ARROW_SINCE


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
