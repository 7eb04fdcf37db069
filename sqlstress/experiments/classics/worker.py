"""Steps (timed SQL statements) of workers, on tables of samples (files), results for sample pairs, or picks.

`sqlstress methods` writes or queries samples (files of a dataset) and results (a number for each pair of
samples). `sqlstress keys` inserts picks (rows that link a user with an item). `sqlstress cycles` inserts
rows, deletes all and inserts rows again. After a trial, the parent process computes the steps again from the
case (option values), to know which rows must be in the database. Users, items and samples are numbered from
0, workers from 1.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlstress.engine.ordered import OrderedSource, OrderedStep
from sqlstress.engine.protocols import DONE, FAILED, LIMIT, TIMEOUT, Chunk, Findings, Stamps
from sqlstress.errors import EnvironmentFailure
from sqlstress.experiments.classics import BEGIN_AND_COMMIT, STATEMENTS
from sqlstress.statistics.units import NS_PER_MS, NS_PER_S, format_duration
from sqlstress.targets.sqlite.drivers import Connection, Row

if TYPE_CHECKING:
    from pathlib import Path

    from sqlstress.experiments.classics.spec import Cycling, Method, Picks
    from sqlstress.report.case import Case
    from sqlstress.targets.dry import DryPlace
    from sqlstress.targets.sqlite.connections import SqliteClient
    from sqlstress.targets.sqlite.place import SqlitePlace
    from sqlstress.targets.sqlite.walindex import OpenIndex, WalIndex
    from sqlstress.targets.views import Operation

BEGIN, DELETE, QUERY, COMMIT, CHECKPOINT = "begin", "delete", "query", "commit", "checkpoint"
"""Kinds of steps that insert no rows. A step of another kind, such as "allocate", inserts `Step.rows`."""
INSERT, PICKS = "insert", "picks"
"""Kinds of steps that insert rows: an INSERT in `sqlstress cycles`; a user's rows in `sqlstress keys`."""


class Step(NamedTuple):
    """Statements that a worker runs and times together. Steps from BEGIN to COMMIT are one transaction."""

    kind: str
    rows: Sequence[Any] = ()
    """Rows to insert. In a query: tuples with the ids of two samples, for which the result is queried."""
    removed: int = 0
    """Number of rows that a DELETE removes."""


def committed(steps: Iterable[Step]) -> list[Any]:
    """Return the rows that `steps` insert into an empty table and commit, in order of insertion."""
    rows: list[Any] = []
    before: list[Any] | None = None  # Rows at BEGIN. They remain if no COMMIT follows.
    for kind, inserted, _ in steps:
        if kind == BEGIN:
            before = rows.copy()
        elif kind == COMMIT:
            before = None
        elif kind == DELETE:
            rows.clear()
        elif kind != QUERY:
            rows += inserted
    return rows if before is None else before


def possible_tables(steps: Iterable[Step], done: int, died: bool) -> list[list[Any]]:
    """Return lists of the rows that a worker may have committed, if SQLite acknowledged `done` of its steps.

    There is one list. If the worker `died`, there is a second list, which includes the rows of the next step:
    SQLite may have committed it before the worker knew.
    """
    remaining = iter(steps)
    acknowledged = [*islice(remaining, done)]
    return [committed([*acknowledged, *islice(remaining, more)]) for more in range(1 + died)]


class StepSource(OrderedSource):
    """Source of a worker's steps for the loop that times them. The source ends at the limit --timeout."""

    def __init__(
        self, case: Case, place: SqlitePlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        self.case, self.worker, self.salt = case, worker, salt
        client = place.client(worker) if place.stores else None
        self._calls = self.calls(client)
        self.kinds = tuple(self._calls)
        super().__init__(shared[0], worker, client, iter(()))
        self._groups = self.groups()
        self._until_ns: float | None = None

    @staticmethod
    def steps_of(case: Case, worker: int, salt: int) -> Iterator[Step]:
        """Yield a worker's steps. `worker` is its number. The number `salt` makes a trial's values unique."""
        raise NotImplementedError

    def calls(self, client: SqliteClient | None) -> dict[str, Operation]:
        """Return a function to run each kind of step. `client` is None with --driver dry (no SQL)."""
        raise NotImplementedError

    def params(self, step: Step) -> Any:
        """Return the argument of the function that runs a step (see `calls`). By default: `Step.rows`."""
        return step.rows

    def groups(self) -> Iterator[Iterable[Step]]:
        """Yield groups of steps, such as those of a cycle. A group is requested when the previous has run."""
        yield self.steps_of(self.case, self.worker, self.salt)

    def timeout_note(self) -> str:
        return f"took longer than {format_duration(self.case.spec.timeout_s)}"

    def next_chunk(self, size: int) -> Chunk | None:
        timeout_s = getattr(self.case.spec, "timeout_s", None)
        if timeout_s is not None and self.seen.outcome == DONE:
            now = time.perf_counter_ns()
            # The time limit starts when the worker takes its first steps.
            self._until_ns = self._until_ns or now + timeout_s * NS_PER_S
            if now >= self._until_ns:
                self.seen.outcome, self.seen.note = TIMEOUT, self.timeout_note()
                return None
        chunk = super().next_chunk(size)
        if chunk is None and (group := next(self._groups, None)) is not None:
            self._steps = map(self._operation, group)
            chunk = super().next_chunk(size)
        return chunk

    def _operation(self, step: Step) -> OrderedStep:
        rows = len(step.rows) + step.removed
        return OrderedStep(self.kinds.index(step.kind), self._calls[step.kind], self.params(step), rows)


# Methods.


METHODS_TABLES = (
    'CREATE TABLE "sample" ("id" INTEGER NOT NULL PRIMARY KEY, "path" TEXT NOT NULL)',
    'CREATE UNIQUE INDEX "sample_path" ON "sample" ("path")',
    'CREATE TABLE "result" ("a_id" INTEGER NOT NULL, "b_id" INTEGER NOT NULL, "val" REAL NOT NULL, '
    'PRIMARY KEY ("a_id", "b_id"), FOREIGN KEY ("a_id") REFERENCES "sample" ("id"), '
    'FOREIGN KEY ("b_id") REFERENCES "sample" ("id"), CHECK (a_id < b_id))',
    'CREATE INDEX "result_a_id" ON "result" ("a_id")',
    'CREATE INDEX "result_b_id" ON "result" ("b_id")',
)
"""SQL that creates the tables sample and result, as Peewee does for the models in orm.py."""

PATH = "/dataset/{:06}.mat"
"""Format of the path of a sample (a file of a dataset). Sample number 7 is "/dataset/000007.mat"."""
PENDING = -1.0
"""Number in a result that is not computed yet. The phase "allocate" inserts only such results."""

Pair = tuple[int, int]


def value(a: int, b: int, seed: int) -> float:
    """Return the number that is the result for the samples with ids `a` and `b`. Checks compute it again."""
    return (a * 31 + b * 17 + seed) % 997 / 8.0


def pairs(samples: int) -> Iterator[Pair]:
    """Yield all pairs of sample ids from 1 to `samples`: (1, 2), (1, 3), (2, 3) for 3 samples."""
    return ((a, b) for a in range(1, samples) for b in range(a + 1, samples + 1))


def queried_sets(case: Case) -> tuple[Sequence[int], Sequence[int]]:
    """Return two random lists of sample ids: for [5, 2] and [4], the pairs (4, 5) and (2, 4) are queried."""
    method: Method = case.spec
    lower, higher = method.sets
    drawn = Random(f"{case.seed}:{method.scale}").sample(range(1, method.samples + 1), lower + higher)
    return drawn[:lower], drawn[lower:]


def queried_pairs(case: Case) -> list[Pair]:
    """Return tuples (lower id, higher id) of samples whose results are queried, in random order."""
    first, second = queried_sets(case)
    found = [(min(a, b), max(a, b)) for a in first for b in second]
    Random(f"{case.seed}:{case.spec.scale}:1").shuffle(found)
    return found


STATEMENTS_PER_STEP = 64
"""Number of statements that are timed together if each has one row (method 1b1) and does not commit."""


def rows_of(case: Case) -> list[Row]:
    """Return the rows that a case writes or, if it queries results, the two sample ids of each result."""
    method: Method = case.spec
    if method.phase == QUERY:
        return queried_pairs(case)
    if method.phase == "insert":
        return [(PATH.format(number),) for number in range(method.scale)]
    return [(a, b, PENDING) for a, b in pairs(method.scale)]


class MethodsSource(StepSource):
    """Steps of a case of `sqlstress methods`. They end if a statement exceeds a limit of SQLite or Python.

    The measured time includes making JSON or SQL, and fetching the rows that queries return. It includes
    neither opening the database nor making the rows to write.
    """

    _answer: list[Any]

    @staticmethod
    def steps_of(case: Case, worker: int, salt: int) -> Iterator[Step]:
        """Yield a case's steps. A step is one statement, except for the method 1b1 (one row per statement).

        In 1b1, a step has STATEMENTS_PER_STEP statements. If each statement commits, however, a step has only
        one, so that the check of the database knows which rows a worker had committed when it died.
        """
        method: Method = case.spec
        rows = rows_of(case)
        row_by_row = 1 if method.phase != QUERY and not method.transaction else STATEMENTS_PER_STEP
        size = {"1b1": row_by_row, "BLK/n": method.chunk}.get(method.name, max(1, len(rows)))
        if method.transaction:
            yield Step(BEGIN)
        for start in range(0, len(rows), size):
            yield Step(method.phase, rows[start : start + size])
        if method.transaction:
            yield Step(COMMIT)

    def calls(self, client: Any) -> dict[str, Operation]:
        connection, method = client.connect(0), self.case.spec
        operations: Callable[..., dict[str, Operation]] = sql_operations
        if self.case.driver == "peewee":
            from sqlstress.experiments.classics.orm import orm_operations as operations
        self._answer = []
        return {
            method.phase: operations(self.case, connection)[method.name],
            BEGIN: lambda _: connection.rows("BEGIN"),
            COMMIT: lambda _: connection.rows("COMMIT"),
        }

    def give_up(self, chunk: Chunk, index: int, error: Exception) -> None:
        # Only a statement with all rows of a case can exceed a limit of SQLite. So no later step has rows.
        text = refusal(error)
        if text is None:
            raise error
        self.seen.outcome, self.seen.note = LIMIT, text
        self._ledger.settle(index)
        chunk.kinds[index] = FAILED

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        if self.seen.outcome == LIMIT:
            return
        super().settle(chunk, done, results, stamps)
        if self.case.spec.phase == QUERY:
            self._answer += chain.from_iterable(results)

    def findings(self) -> Findings:
        if self.case.spec.phase == QUERY and self.case.verify != "none" and self.seen.outcome == DONE:
            wanted = rows_of(self.case)
            # Peewee returns objects of the class Result. Other drivers return tuples.
            found = (row if isinstance(row, tuple) else (row.a_id, row.b_id, row.val) for row in self._answer)
            wrong = [*objections(found, wanted, self.case.seed)]
            self.seen.reads_checked, self.seen.bad_reads = len(wanted), len(wrong)
            self.seen.bad_read_examples = wrong[:EXAMPLES]
        return super().findings()


EXAMPLES = 3
"""Maximum number of examples of wrong query results in a report: missing rows and superfluous rows."""


def objections(found: Iterable[Row], wanted: Sequence[Pair], seed: int) -> Iterator[str]:
    """Yield a text for each missing or superfluous row in `found`, the rows that queries returned.

    `wanted` has tuples (a, b) of sample ids. Each must be found once, with the result that `value` returns.
    """
    expected = Counter((a, b, value(a, b, seed)) for a, b in wanted)
    answered = Counter(found)
    for row in expected - answered:
        yield f"the answer lacks the result {row!r:.60}"
    for row in answered - expected:
        yield f"the answer has the result {row!r:.60}, which was not asked for or is there too often"


# SQL of `sqlstress methods`. For statements with one, n or all rows, Peewee generates equal SQL.


FIELDS = {"insert": ("path",), "allocate": ("a", "b", "val"), "query": ("a", "b")}
"""Names of the values of a row, by phase (kind of work): keys in JSON, and fields of Peewee's models."""
_INSERT = {
    "insert": 'INSERT INTO "sample" ("path")',
    "allocate": 'INSERT INTO "result" ("a_id", "b_id", "val")',
}
_SELECT = 'SELECT "t1"."a_id", "t1"."b_id", "t1"."val" FROM "result" AS "t1"'
_PAIR = '(("t1"."a_id" = ?) AND ("t1"."b_id" = ?))'

ALLOCATE_SPC = (
    f"INSERT INTO result SELECT s1.id, s2.id, {PENDING:.0f} FROM sample AS s1 JOIN sample AS s2 "
    "ON s1.id < s2.id"
)
"""SQL of the method SPC in the phase "allocate": a join makes the rows, one for each pair of samples."""

QUERY_SPC = (
    "WITH pair AS (SELECT DISTINCT "
    "CASE WHEN s1.value < s2.value THEN s1.value ELSE s2.value END AS aid, "
    "CASE WHEN s1.value < s2.value THEN s2.value ELSE s1.value END AS bid "
    "FROM json_each(?) AS s1, json_each(?) AS s2) "
    "SELECT aid, bid, r.val FROM pair JOIN result AS r ON r.a_id = pair.aid AND r.b_id = pair.bid"
)
"""SQL of the method SPC in the phase "query": a join of two JSON lists of sample ids makes the pairs."""


def json_statement(phase: str) -> str:
    """Return SQL that writes the rows, or queries the pairs, of a JSON list, which is its SQL parameter."""
    # The operator ->> is not used: SQLite lacks it before 3.38, and it is no faster than json_extract.
    values = [f"json_extract(j.value, '$.{name}')" for name in FIELDS[phase]]
    if phase != QUERY:
        return f"{_INSERT[phase]} SELECT {', '.join(values)} FROM json_each(?) AS j"
    return (
        "SELECT r.a_id, r.b_id, r.val FROM result AS r JOIN json_each(?) AS j "
        "WHERE r.a_id = ({}) AND r.b_id = ({})".format(*values)
    )


def bulk_statement(phase: str, count: int) -> str:
    """Return SQL that writes `count` rows or queries `count` pairs. Each value is an SQL parameter."""
    if phase == QUERY:
        return f"{_SELECT} WHERE {'(' * (count - 1)}{_PAIR}{f' OR {_PAIR})' * (count - 1)}"
    row = f"({', '.join('?' * len(FIELDS[phase]))})"
    return f"{_INSERT[phase]} VALUES {', '.join([row] * count)}"


def record(phase: str, row: Row) -> dict[str, Any]:
    """Convert a row, or a pair of sample ids to query, to a dictionary: (1, 2) to {"a": 1, "b": 2}."""
    return dict(zip(FIELDS[phase], row, strict=True))


def sql_operations(
    case: Case, connection: Connection, run: Callable[[str, Row], list[Row]] | None = None
) -> dict[str, Operation]:
    """Return functions that write or query rows, by method, such as "1b1" (one row per statement).

    `run` runs a statement with SQL parameters and returns rows. By default, it is `connection.rows`.
    """
    from json import dumps

    phase, run = case.spec.phase, run or connection.rows

    def one_by_one(rows: Sequence[Row]) -> object:
        return deque(map(write, rows), 0) if write else [*chain.from_iterable(map(get, rows))]

    def in_bulk(rows: Sequence[Row]) -> object:
        return run(bulk_statement(phase, len(rows)), tuple(chain.from_iterable(rows)))

    def from_json(rows: Sequence[Row]) -> object:
        return run(json_statement(phase), (dumps([record(phase, row) for row in rows]),))

    def inside(_: object) -> object:
        return run(QUERY_SPC, sets) if sets else run(ALLOCATE_SPC, ())

    single = bulk_statement(phase, 1)
    write = connection.writer(single) if phase != QUERY else None
    get = partial(run, single)
    sets = tuple(map(dumps, queried_sets(case))) if phase == QUERY else ()
    return {"1b1": one_by_one, "BLK": in_bulk, "BLK/n": in_bulk, "JSON": from_json, "SPC": inside}


_REFUSALS = (
    "parser stack overflow",
    "Expression tree is too large",
    "too many SQL variables",
    "too many terms",
    "string or blob too big",
    "Recursion limit",
)
"""Phrases in messages of errors due to a limit of SQLite. Result codes do not identify such errors."""


def refusal(error: Exception) -> str | None:
    """Return the message of an error if a limit of SQLite or Python was exceeded; None for other errors."""
    if isinstance(error, RecursionError):
        return "Python's recursion limit, which Peewee met while it nested the conditions"
    text = str(error)
    return text if any(phrase in text for phrase in _REFUSALS) else None


# Keys.


USERS = "SELECT id FROM users ORDER BY rowid"
ITEMS = "SELECT id FROM items ORDER BY rowid"


class KeysSource(StepSource):
    """Transactions of `sqlstress keys`. Each inserts the picks of a user: rows that link user and item."""

    _users: Sequence[Any]
    _items: Sequence[Any]

    @staticmethod
    def steps_of(case: Case, worker: int, salt: int) -> Iterator[Step]:
        """Yield a step for each user of a worker. Its rows are tuples (user's number, item's number)."""
        for user in users_of(case, worker):
            yield Step(PICKS, [(user, item) for item in picked_by(case, user)])

    def calls(self, client: SqliteClient | None) -> dict[str, Operation]:
        picks: Picks = self.case.spec
        if client is None:  # With the driver dry, rows are made, but no SQL runs.
            self._users, self._items = range(picks.users), range(picks.items)
            rows = row_maker(picks)
            return {PICKS: lambda picked: deque(rows(picked), 0)}
        connection = client.connect(0)
        self._users, self._items = ([row[0] for row in connection.rows(sql)] for sql in (USERS, ITEMS))
        return {PICKS: client.retried(insertion(picks, connection), connection.rollback)}

    def params(self, step: Step) -> list[Row]:
        """Convert each row, such as (3, 7), to a tuple: an integer id, the id of user 3, the id of item 7."""
        return [
            (number, self._users[user], self._items[item])
            for number, (user, item) in numbered_picks(self.case.spec, step)
        ]


def row_maker(picks: Picks) -> Callable[[Sequence[Row]], Iterable[Row]]:
    """Return a function that converts tuples (integer id, user's id, item's id) to rows of the table picks.

    The options in `picks` define whether the row has no own id, the integer id, or a new id such as a UUID.
    """
    if not picks.own_id:
        return lambda picked: (row[1:] for row in picked)
    if picks.id_type == "int":
        return iter
    make = MAKERS[picks.id_type]()
    return lambda picked: ((make(), user, item) for _, user, item in picked)


def insertion(picks: Picks, connection: Connection) -> Operation:
    """Return a function that inserts rows for tuples (integer id, user's id, item's id) in a transaction."""
    start, end = connection.writer(f"BEGIN {picks.begin}"), connection.writer("COMMIT")
    insert, rows = insert_statement(picks), row_maker(picks)

    def insert_all(picked: Sequence[Row]) -> None:
        start(())
        connection.run_many(insert, rows(picked))
        end(())

    return insert_all


def insert_statement(picks: Picks) -> str:
    columns, places = ("id, user, item", "?, ?, ?") if picks.own_id else ("user, item", "?, ?")
    return f"INSERT INTO picks ({columns}) VALUES ({places})"


# The picks (rows that link a user with an item) depend on the seed, and not on the schema or the type of
# ids. So all schemas and types get the same picks. The check of the database can compute them.


def users_of(case: Case, worker: int) -> range:
    """Return the numbers of the users whose picks a worker inserts: 0, 4, 8, ... for worker 1 of 4."""
    return range(worker - 1, case.spec.users, case.concurrency)


def picked_by(case: Case, user: int) -> list[int]:
    """Return the numbers of the items that a user picks, in the order in which picks are inserted."""
    picks: Picks = case.spec
    random = Random(f"{case.seed}:picks:{user}")
    count = random.randint(2 * picks.picks - picks.most_picks, picks.most_picks)
    return random.sample(range(picks.items), count)


def numbered_picks(picks: Picks, step: Step) -> Iterable[tuple[int, Row]]:
    """Return a tuple (integer id, (user's number, item's number)) for each row of a step.

    Each user has a separate range of ids, so that workers in several processes need no common counter.
    """
    user = step.rows[0][0]
    return enumerate(step.rows, user * picks.most_picks + 1)


# Functions that make ids of 16 bytes with libraries, as an application would. Libraries are imported when
# they are needed, because an import delays the start of a worker.


Make = Callable[[], bytes]
SIZE = 16
"""Size of an id other than an integer, in bytes."""
ASCENDING = "uuid7"
"""Type of ids that ascend within each worker. ULIDs do not, because they are random within a millisecond."""


def uuid4_maker() -> Make:
    """Return a function that makes UUIDs of version 4: 122 random bits (RFC 9562, section 5.4)."""
    from uuid import uuid4

    return lambda: uuid4().bytes


def ulid_maker() -> Make:
    """Return a function that makes ULIDs: the time in milliseconds, then 80 random bits."""
    from ulid import PureRandomPolicy, ULIDGenerator

    generate = ULIDGenerator(policy=PureRandomPolicy()).generate
    return lambda: generate().bytes


def uuid7_maker(
    clock: Callable[[], int] = time.time_ns, randomness: Callable[[int], bytes] = os.urandom
) -> Make:
    """Return a function that makes UUIDs of version 7, as Python's uuid7 does (from 3.14 on).

    A UUID has the time in milliseconds (48 bits), a counter (42 bits), 32 random bits, and 6 bits for version
    and variant. The first UUID of a millisecond has a random counter in the lower half of the range. Each
    later UUID has a counter that is greater by 1 (RFC 9562, sections 5.7 and 6.2, method 1). If the clock
    goes back, the latest time is used again.
    """
    latest = counter = 0

    def make() -> bytes:
        nonlocal latest, counter
        now = max(latest, clock() // NS_PER_MS)  # The system clock may go back.
        drawn, tail = divmod(int.from_bytes(randomness(10)), 1 << 32)
        counter = counter + 1 if now == latest else drawn >> 7
        latest = now
        high, low = divmod(counter, 1 << 30)
        return (now << 80 | 7 << 76 | high << 64 | 2 << 62 | low << 32 | tail).to_bytes(SIZE)

    return make


MAKERS: dict[str, Callable[[], Make]] = {"uuid4": uuid4_maker, "ulid": ulid_maker, "uuid7": uuid7_maker}
"""Functions by type of id. Each returns a function that makes an id. `numbered_picks` makes integers."""


# Cycles.


CYCLES_TABLE = "CREATE TABLE t1 (id INTEGER PRIMARY KEY, value TEXT NOT NULL)"
"""SQL for the table of `sqlstress cycles`, without AUTOINCREMENT, which would also write sqlite_sequence."""
CYCLES_SQL = {
    BEGIN: "BEGIN IMMEDIATE",
    INSERT: "INSERT INTO t1 (value) VALUES (?)",
    DELETE: "DELETE FROM t1",
    COMMIT: "COMMIT",
}
"""SQL by kind of step. A step of the kind CHECKPOINT calls a function (see `CyclesSource.calls`)."""


def cycle_steps(cycling: Cycling, cycle: int, salt: int) -> Iterator[Step]:
    """Yield the statements of cycle number `cycle` (from 1): insert rows, delete all, insert rows again."""
    prefix = f"salt {salt} cycle {cycle}"  # The salt, a number, makes the values of a trial unique.
    left_over = cycling.rows if cycle > 1 else 0
    in_transaction = cycling.transaction == "run"
    if in_transaction and cycle == 1:
        yield Step(BEGIN)
    for insertion in (1, 2):
        if insertion == 2:
            yield Step(DELETE, removed=cycling.rows + left_over)
        for row in range(1, cycling.rows + 1):
            yield Step(INSERT, ((f"{prefix} insertion {insertion} row {row}",),))
    if in_transaction and cycle == cycling.cycles:
        yield Step(COMMIT)


class CyclesSource(StepSource):
    """Steps of cycles: insert rows, delete all, insert again. The WAL's state is read after each cycle."""

    def __init__(
        self, case: Case, place: SqlitePlace | DryPlace, worker: int, salt: int, shared: tuple[Any, ...]
    ) -> None:
        super().__init__(case, place, worker, salt, shared)
        has_wal = case.settings.journal_mode == "wal"
        self._wal_states = WalStates(place.paths[0]) if place.stores and has_wal else None
        self._sums: Counter[str] = Counter()  # Total ns of the current cycle, by kind of statement.
        self._statements: list[int] = []
        self._bounds: list[int] = []

    @staticmethod
    def steps_of(case: Case, worker: int, salt: int) -> Iterator[Step]:
        for cycle in range(1, case.spec.cycles + 1):
            yield from cycle_steps(case.spec, cycle, salt)

    def groups(self) -> Iterator[Iterable[Step]]:
        """Yield the steps of each cycle. In journal mode WAL, a checkpoint follows the last cycle."""
        for cycle in range(1, self.case.spec.cycles + 1):
            yield cycle_steps(self.case.spec, cycle, self.salt)
            self._statements.append(self._sums[INSERT] + self._sums[DELETE])
            self._bounds.append(self._sums[BEGIN] + self._sums[COMMIT])
            self._sums.clear()
            if self._wal_states:
                self._wal_states.read()
        if self._wal_states:
            yield [Step(CHECKPOINT)]

    def calls(self, client: SqliteClient | None) -> dict[str, Operation]:
        if client is None:
            return dict.fromkeys((*CYCLES_SQL, CHECKPOINT), lambda _: None)
        connection = client.connect(0)

        def checkpoint(_: object) -> None:
            # Run it explicitly: closing the connection would also run a checkpoint, but would not report that
            # a lock prevented the checkpoint.
            ((busy, *_),) = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")
            if busy:
                raise EnvironmentFailure(
                    "the final checkpoint timed out waiting for a lock. Close other programs that read the "
                    "database."
                )

        return {**{kind: connection.writer(sql) for kind, sql in CYCLES_SQL.items()}, CHECKPOINT: checkpoint}

    def params(self, step: Step) -> Any:
        return step.rows[0] if step.rows else ()

    def timeout_note(self) -> str:
        return f"{len(self._statements)} of {self.case.spec.cycles} cycles were done"

    def settle(self, chunk: Chunk, done: int, results: list[Any], stamps: Stamps) -> None:
        super().settle(chunk, done, results, stamps)
        for kind, begin, end in zip(chunk.kinds[:done], *stamps, strict=True):
            self._sums[self.kinds[kind]] += end - begin

    def findings(self) -> Findings:
        figures = ((STATEMENTS, self._statements), (BEGIN_AND_COMMIT, self._bounds))
        self.seen.series = [(name, "ns", values) for name, values in figures if any(values)]
        if self._wal_states:
            self.seen.series += wal_series(self._wal_states.states)
        return super().findings()

    def close(self) -> None:
        if self._wal_states and os.name == "nt":
            self._wal_states.close()
        super().close()
        if self._wal_states:
            self._wal_states.close()


class WalStates:
    """States of the WAL after each cycle, from the file -shm (wal-index), until a reading fails."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._index: OpenIndex | None = None
        self.states: list[WalIndex] = []
        self._failed = False

    def read(self) -> None:
        from sqlstress.targets.sqlite.walindex import OpenIndex

        state = None
        with suppress(OSError, ValueError):
            self._index = self._index or OpenIndex(self._database)
            state = self._index.read()
        self._failed |= state is None
        if state and not self._failed:
            self.states.append(state)

    def close(self) -> None:
        """Close the file -shm. Call this before the connections are closed on Windows, after it elsewhere.

        On Windows, SQLite cannot delete an open file. On POSIX, closing the file drops this process's locks.
        """
        if self._index:
            self._index.close()


def wal_series(states: Sequence[WalIndex]) -> list[tuple[str, str, list[int]]]:
    """Return three tuples (name, unit, values by cycle): the WAL's frames, checkpointed frames and restarts.

    Here, salt is a random number in the WAL's header. A new salt means that a writer restarted the WAL.
    """
    from sqlstress.statistics.series import CHECKPOINTED_FRAMES, WAL_FRAMES, WAL_RESTARTS

    salt, restarts = None, [0]
    for state in states:
        is_restarted = state.frames > 0 and salt not in (None, state.salt)
        restarts.append(restarts[-1] + is_restarted)
        salt = state.salt if state.frames else salt  # A WAL without frames has its former salt: ignore it.
    found = [
        (WAL_FRAMES, "frames", [state.frames for state in states]),
        (CHECKPOINTED_FRAMES, "frames", [state.checkpointed for state in states]),
        (WAL_RESTARTS, "restarts", restarts[1:]),
    ]
    return found if states else []


SOURCES: dict[str, type[StepSource]] = {"methods": MethodsSource, "keys": KeysSource, "cycles": CyclesSource}
