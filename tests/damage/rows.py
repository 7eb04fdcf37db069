"""Changes of rows without the knowledge of their writers, and the names by which a counter-example must call
them.

`…_restore` gives a row an older value, `…_duplicate` stores it twice, `…_add` adds a row that no worker
wrote, `…_tear` undoes a part of a transaction. `…_words` returns the names of a row that a counter-example
may use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from sqlstress.engine.values import Values
from sqlstress.experiments.classics.proof import short_id
from sqlstress.experiments.classics.worker import ITEMS, MAKERS, PATH, PENDING, USERS, picked_by
from sqlstress.experiments.crash.worker import RECORDS, Entry, Records
from sqlstress.experiments.kv import acks
from sqlstress.experiments.kv.keys import encoder, number_of
from sqlstress.experiments.kv.worker import LARGEST_KEY
from tests.damage.trial import Change, Mutation, NothingToChange, Trial, changed

Cells = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a trial."""

    trial: Trial
    name: str
    key: str
    """Columns that identify a row."""
    value: str
    bucket: int = 0

    def rows(self, name: Callable[[Any, Any], str]) -> list[Row]:
        """Return its rows; `name` makes their names from key (a tuple if there are several columns) and
        value.
        """
        sql = f"SELECT {self.key}, {self.value} FROM {self.name} ORDER BY {self.key}"
        found = []
        for *key, value in self.trial.rows(sql, bucket=self.bucket):
            called = name(key[0] if len(key) == 1 else tuple(key), value)
            found.append(Row(self, tuple(key), value, called))
        return found

    def add(self, key: Cells, value: Any) -> None:
        """Insert a row; without a key the table chooses one."""
        columns = f"{self.key}, {self.value}" if key else self.value
        places = ", ".join("?" * (len(key) + 1))
        sql = f"INSERT INTO {self.name} ({columns}) VALUES ({places})"
        self.trial.execute(sql, *key, value, bucket=self.bucket)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    table: Table
    key: Cells
    value: Any
    name: str
    """Name by which a counter-example must call it."""

    def drop(self) -> None:
        self._execute(f"DELETE FROM {self.table.name}")

    def set(self, value: Any) -> None:
        self._execute(f"UPDATE {self.table.name} SET {self.table.value} = ?", value)

    def _execute(self, what: str, *params: object) -> None:
        where = f"({self.table.key}) = ({', '.join('?' * len(self.key))})"
        self.table.trial.execute(f"{what} WHERE {where}", *params, *self.key, bucket=self.table.bucket)


Some = Callable[[Trial, Random], list[Row]]
"""Returns rows of a kind: of one process, or of one transaction, if that is drawn."""


def drop(some: Some) -> Mutation:
    return lambda trial, random: _dropped([random.choice(some(trial, random))])


def tear(some: Some) -> Mutation:
    """Return a mutation that undoes a part of rows that were inserted in one transaction."""
    return lambda trial, random: _dropped(_part_of(some(trial, random), random))


def _part_of(rows: list[Any], random: Random) -> list[Any]:
    """Return a random part of the rows, in their order."""
    return [rows[i] for i in sorted(random.sample(range(len(rows)), random.randrange(1, len(rows))))]


def _dropped(rows: list[Row]) -> Change:
    """Drop rows that are in the order of a verdict, which must name the first."""
    for row in rows:
        row.drop()
    return changed(f"{len(rows)} rows dropped", rows[0].name)


def swap(some: Some) -> Mutation:
    """Return a mutation that swaps the values of two rows."""

    def mutate(trial: Trial, random: Random) -> Change:
        one, other = _two_that_differ(some(trial, random), random)
        for row in (one, other):
            row.drop()  # first, because some values must be unique
        one.table.add(one.key, other.value)
        other.table.add(other.key, one.value)
        return changed("values swapped", one.name, other.name)

    return mutate


def give(some: Some) -> Mutation:
    """Return a mutation that stores a row's value in another row too."""

    def mutate(trial: Trial, random: Random) -> Change:
        one, other = _two_that_differ(some(trial, random), random)
        other.set(one.value)
        return changed("another row's value given", other.name)

    return mutate


def _two_that_differ(rows: list[Row], random: Random) -> list[Row]:
    rows = random.sample(rows, len(rows))
    others = [row for row in rows[1:] if row.value != rows[0].value]
    if not others:
        raise NothingToChange
    return [rows[0], others[0]]


# Key-value tables, in one file or several


def _values(trial: Trial) -> Values:
    return Values(trial.salt, trial.case.spec.value_size)


def _kv(trial: Trial, bucket: int) -> Table:
    return Table(trial, "kv", "key", "value", bucket)


def written_rows(trial: Trial, _: Random) -> list[Row]:
    rows = [
        row
        for bucket in range(trial.case.buckets)
        for row in _kv(trial, bucket).rows(lambda key, _: repr(key))
    ]
    return [row for row in rows if (stamp := _values(trial).read(row.value)) and stamp.worker]


def _number(row: Row) -> int:
    number = number_of(row.key[0], row.table.trial.case.spec.key_type)
    assert number is not None
    return number


def kv_restore(trial: Trial, random: Random) -> Change:
    """Restore a key's preloaded value, or an earlier value of another process."""
    rows = written_rows(trial, random)
    older = [(row, value) for row in rows for value in _older_of_others(trial, row)]
    if older and random.random() < 0.5:
        row, value = random.choice(older)
    else:
        row = random.choice(rows)
        value = _values(trial).maker(0)(_number(row))
    row.set(value)
    return changed("given an older value", row.name)


def _older_of_others(trial: Trial, row: Row) -> Iterator[Any]:
    """Yield other processes' last writes to a key that had ended before the latest write began."""
    case, number = trial.case, _number(row)
    workers = range(1, case.concurrency + 1)
    areas = {worker: acks.area_of(case, trial.shared[0], worker) for worker in workers}
    latest = max(area.begins[number] for area in areas.values())
    for worker, area in areas.items():
        if area.sequences[number] and area.ends[number] < latest:
            yield _values(trial).maker(worker)(area.sequences[number])


def kv_duplicate_elsewhere(trial: Trial, random: Random) -> Change:
    """Copy a row into another file, under its key."""
    row = random.choice(written_rows(trial, random))
    bucket = random.choice([number for number in range(trial.case.buckets) if number != row.table.bucket])
    _kv(trial, bucket).add(row.key, row.value)
    return changed("put into another file too", row.name)


def kv_add(trial: Trial, random: Random) -> Change:
    load = trial.case.spec
    key = encoder(load.key_type)(load.key_space + random.randrange(1000))
    return _kv_added(trial, random, key, random.randrange(trial.case.buckets))


def kv_add_unknown(trial: Trial, random: Random) -> Change:
    """Add a key that no worker drew, to the file to which it belongs."""
    key = LARGEST_KEY + 1 + random.randrange(1000)
    return _kv_added(trial, random, key, key % trial.case.buckets)


def _kv_added(trial: Trial, random: Random, key: Any, bucket: int) -> Change:
    """Add a key with a value that a worker could have written."""
    _kv(trial, bucket).add((key,), _values(trial).maker(1)(random.randrange(1, 1000)))
    return changed("added", repr(key))


def kv_tear(trial: Trial, random: Random) -> Change:
    """Give a part of a transaction's rows their preloaded values."""
    transactions: dict[tuple[int, int], list[Row]] = {}
    for row in written_rows(trial, random):
        stamp = _values(trial).read(row.value)
        assert stamp
        number = (stamp.sequence - 1) // trial.case.spec.batch
        transactions.setdefault((stamp.worker, number), []).append(row)
    several = [rows for rows in transactions.values() if len(rows) > 1]
    if not several:
        raise NothingToChange
    undone = _part_of(random.choice(several), random)
    for row in undone:
        row.set(_values(trial).maker(0)(_number(row)))
    return changed("undone", *(row.name for row in undone))


def kv_words(trial: Trial, table: str, row: Cells) -> list[str]:
    return [_counter(trial, row[0]) if table == "counter" else repr(row[0])]


# Counters, which workers read and write plus one


def _counter(trial: Trial, counter: int) -> str:
    return f"{trial.paths[0].name}:{counter}"


def counters(trial: Trial, _: Random) -> list[Row]:
    """Return the counters that have been updated."""
    rows = Table(trial, "counter", "id", "n").rows(lambda counter, _: _counter(trial, counter))
    return [row for row in rows if row.value]


def counter_restore(trial: Trial, random: Random) -> Change:
    row = random.choice(counters(trial, random))
    row.set(random.randrange(row.value))
    return changed("set back", row.name)


def counter_duplicate(trial: Trial, random: Random) -> Change:
    return _counter_added(trial, random, random.choice(counters(trial, random)).value)


def counter_add(trial: Trial, random: Random) -> Change:
    """Add a counter, or an update of a counter, that no worker wrote."""
    if random.random() < 0.5:
        return _counter_added(trial, random, random.randrange(2))
    row = random.choice(counters(trial, random))
    row.set(row.value + random.randrange(1, 10))
    return changed("set forth", row.name)


def _counter_added(trial: Trial, random: Random, n: int) -> Change:
    counter = acks.COUNTERS + random.randrange(100)
    Table(trial, "counter", "id", "n").add((counter,), n)
    return changed("added", _counter(trial, counter))


# Samples of the experiment with methods, and results of their pairs


def samples(trial: Trial, _: Random) -> list[Row]:
    """Return all samples, which one process inserted in one transaction."""
    return Table(trial, "sample", "id", "path").rows(lambda _, path: path)


def sample_duplicate(trial: Trial, random: Random) -> Change:
    return _sample_added(trial, f"{random.choice(samples(trial, random)).value}~")


def sample_add(trial: Trial, random: Random) -> Change:
    return _sample_added(trial, PATH.format(trial.case.spec.scale + random.randrange(1000)))


def _sample_added(trial: Trial, path: str) -> Change:
    Table(trial, "sample", "id", "path").add((), path)
    return changed("added", path)


def results(trial: Trial, _: Random) -> list[Row]:
    # The name has no closing bracket, because some verdicts add more of a pair after its numbers.
    return Table(trial, "result", "a_id, b_id", "val").rows(lambda pair, _: "({}, {}".format(*pair))


def result_duplicate(trial: Trial, random: Random) -> Change:
    row = random.choice(results(trial, random))
    a, b = row.key
    return _result_added(trial, a, b + random.randrange(100, 200), row.value)


def result_add(trial: Trial, random: Random) -> Change:
    """Add a result for samples that do not exist."""
    return _result_added(trial, random.randrange(1, 5), random.randrange(100, 200), PENDING)


def _result_added(trial: Trial, a: int, b: int, value: float) -> Change:
    Table(trial, "result", "a_id, b_id", "val").add((a, b), value)
    return changed("added", f"({a}, {b}")


def method_words(_: Trial, table: str, row: Cells) -> list[str]:
    return [str(row[1])] if table == "sample" else [f"({row[0]}, {row[1]}"]


# Picks of the experiment with keys


@dataclass(frozen=True, slots=True)
class Picks:
    """Picks of users, by the numbers of users and items, and their ids."""

    trial: Trial
    users: list[Any]
    items: list[Any]
    picked: dict[int, list[int]]

    @classmethod
    def of(cls, trial: Trial) -> Picks:
        users, items = ([identifier for (identifier,) in trial.rows(sql)] for sql in (USERS, ITEMS))
        return cls(trial, users, items, {user: picked_by(trial.case, user) for user in range(len(users))})

    def row(self, user: int, item: int) -> Row:
        table = Table(self.trial, "picks", "user, item", "item")
        name = f"user {user}'s pick of item {item}"
        return Row(table, (self.users[user], self.items[item]), self.items[item], name)

    def insert(self, user: int, item: int) -> None:
        """Insert a pick, with its own id if the table has one."""
        load, both = self.trial.case.spec, (self.users[user], self.items[item])
        if not load.own_id:
            Table(self.trial, "picks", "user", "item").add(both[:1], both[1])
            return
        if load.id_type == "int":
            ((id_,),) = self.trial.rows("SELECT max(id) + 1 FROM picks")
        else:
            id_ = MAKERS[load.id_type]()()
        Table(self.trial, "picks", "id, user", "item").add((id_, both[0]), both[1])


def picks_of_one(trial: Trial, random: Random) -> list[Row]:
    """Return the picks of a user, which were inserted in one transaction."""
    picks = Picks.of(trial)
    user = random.choice([*picks.picked])
    return [picks.row(user, item) for item in sorted(picks.picked[user])]


def pick_swap(trial: Trial, random: Random) -> Change:
    """Let two users swap two items of which each picked only one."""
    picks = Picks.of(trial)
    one, other = random.sample([*picks.picked], 2)
    ours, theirs = (set(picks.picked[user]) for user in (one, other))
    item, another = random.choice(sorted(ours - theirs)), random.choice(sorted(theirs - ours))
    rows = picks.row(one, item), picks.row(other, another)
    for row, new in zip(rows, (another, item), strict=True):
        row.set(picks.items[new])
    return changed("swapped", *(row.name for row in rows))


def pick_duplicate(trial: Trial, random: Random) -> Change:
    picks = Picks.of(trial)
    user = random.choice([*picks.picked])
    item = random.choice(picks.picked[user])
    picks.insert(user, item)
    return changed("duplicated", picks.row(user, item).name)


def pick_duplicate_elsewhere(trial: Trial, random: Random) -> Change:
    """Let another user pick the same item: no user can have picked an item twice."""
    picks = Picks.of(trial)
    item = random.choice(sorted({item for items in picks.picked.values() for item in items}))
    user = random.choice([user for user, items in picks.picked.items() if item not in items])
    return _pick_added(picks, user, item)


def pick_add(trial: Trial, random: Random) -> Change:
    """Add a pick that no worker acknowledged, of an existing user and an existing item."""
    picks = Picks.of(trial)
    user = random.choice([*picks.picked])
    others = [item for item in range(len(picks.items)) if item not in picks.picked[user]]
    return _pick_added(picks, user, random.choice(others))


def _pick_added(picks: Picks, user: int, item: int) -> Change:
    picks.insert(user, item)
    return changed("added", f"user {user}'s pick of item {item}")


def pick_words(trial: Trial, table: str, row: Cells) -> list[str]:
    if table != "picks":
        return [short_id(row[0]), str(row[1])]
    own_id, picks = trial.case.spec.own_id, Picks.of(trial)
    words, (user, item) = ([short_id(row[0])] if own_id else []), row[own_id : own_id + 2]
    if user in picks.users and item in picks.items:
        u, i = picks.users.index(user), picks.items.index(item)
        words.append(picks.row(u, i).name)
    return words


# Table of the experiment with cycles


def cycles(trial: Trial, _: Random) -> list[Row]:
    """Return the rows that remain from the last insertions."""
    return Table(trial, "t1", "id", "value").rows(lambda _, value: repr(value))


def cycle_restore(trial: Trial, random: Random) -> Change:
    """Restore an earlier value of a row: of another insertion, or of an earlier cycle."""
    row, last = random.choice(cycles(trial, random)), trial.case.spec.cycles
    if random.random() < 0.5:
        older = row.value.replace("insertion 2", "insertion 1")
    else:
        older = row.value.replace(f"cycle {last}", f"cycle {last - 1}")
    row.set(older)
    return changed("restored", repr(older), row.name)


def cycle_duplicate(trial: Trial, random: Random) -> Change:
    row = random.choice(cycles(trial, random))
    row.table.add((), row.value)
    return changed("duplicated", row.name)


def cycle_add(trial: Trial, random: Random) -> Change:
    """Add a row that reads as if a worker had inserted it."""
    rows = cycles(trial, random)
    row, there = random.choice(rows), {row.value for row in rows}
    more = f"{row.value}{random.randrange(10)}"
    more = f"{more}000" if more in there else more
    row.table.add((), more)
    return changed("added", repr(more))


def cycle_words(_: Trial, table: str, row: Cells) -> list[str]:
    return [repr(row[1])]


# The files of a crash test: the rows of records, and the log of transactions


class File:
    def __init__(self, trial: Trial, random: Random) -> None:
        self.trial, self.records = trial, Records(trial.case)
        self.bucket = random.randrange(trial.case.buckets)
        rows = trial.rows("SELECT writer, number, record FROM log ORDER BY id", bucket=self.bucket)
        if len(rows) < 2:
            raise NothingToChange
        self.log = [Entry(*row) for row in rows]
        self.last = [*{entry.record: entry for entry in self.log}.values()]
        """The last transaction of each record that was written."""

    def rows(self, entry: Entry) -> list[Row]:
        """Return the rows of records that a transaction wrote."""
        table = Table(self.trial, "record", "key", "value", self.bucket)
        written_rows = self.records.rows(entry)
        return [Row(table, (key,), value, f"record {entry.record}") for key, value in written_rows]

    def before(self, entry: Entry) -> Entry:
        earlier = [logged for logged in self.log[: self.log.index(entry)] if logged.record == entry.record]
        return earlier[-1] if earlier else self.records.created(entry.record)

    def enter(self, entry: Entry) -> Change:
        Table(self.trial, "log", "writer, number", "record", self.bucket).add(entry[:2], entry.record)
        return changed("entered", _transaction(entry))


def _transaction(entry: Entry) -> str:
    return f"transaction {entry.number} of writer {entry.writer}"


def records(trial: Trial, random: Random) -> list[Row]:
    file = File(trial, random)
    return [row for entry in file.last for row in file.rows(entry)]


def crash_drop(trial: Trial, random: Random) -> Change:
    """Drop an acknowledged transaction from the log, or a row that a transaction wrote."""
    if random.random() < 0.5:
        return _dropped([random.choice(records(trial, random))])
    file, (told,) = File(trial, random), trial.shared
    entry = random.choice([logged for logged in file.log if logged.number <= told[logged.writer].least])
    table = Table(trial, "log", "writer, number", "record", file.bucket)
    return _dropped([Row(table, entry[:2], entry.record, _transaction(entry))])


def crash_restore(trial: Trial, random: Random) -> Change:
    return _records_restored(trial, random, 1)


def crash_tear(trial: Trial, random: Random) -> Change:
    """Undo a part of a transaction, of several rows if there is one."""
    return _records_restored(trial, random, random.randrange(1, trial.case.spec.batch))


def _records_restored(trial: Trial, random: Random, count: int) -> Change:
    file = File(trial, random)
    rows = random.sample(file.rows(file.before(random.choice(file.last))), count)
    for row in rows:
        row.set(row.value)
    return changed(f"{count} rows restored", rows[0].name)


def crash_duplicate(trial: Trial, random: Random) -> Change:
    file = File(trial, random)
    return file.enter(random.choice(file.log))


def crash_add(trial: Trial, random: Random) -> Change:
    """Add a transaction that was never begun to the log, or a row that belongs to no record."""
    file, (told,) = File(trial, random), trial.shared
    if random.random() < 0.5:
        writer = random.choice([*told])
        number = told[writer].most + random.randrange(1, 9)
        return file.enter(Entry(writer, number, random.choice(file.log).record))
    key = RECORDS * trial.case.spec.batch + random.randrange(100)
    row = file.rows(random.choice(file.log))[0]
    row.table.add((key,), row.value)
    return changed("row added", f"key {key}")


def crash_words(trial: Trial, table: str, row: Cells) -> list[str]:
    if table == "record":
        buckets = range(trial.case.buckets) if isinstance(row[0], int) else ()
        return [*(f"record {row[0] % RECORDS + RECORDS * at}" for at in buckets), f"key {row[0]!r:.40}"]
    _, writer, number, record = row
    transaction = f"transaction {number!r:.40} of writer {writer!r:.40}"
    return [transaction, f"writer {writer!r:.40}", f"record {record}"]


# A round of a hunt: the last transaction that wrote each row of a writer


def parts(trial: Trial, _: Random) -> list[Row]:
    """Return the rows that were written in the trial."""
    table = Table(trial, "part", "id", "n")
    return [row for row in table.rows(lambda key, _: f"row {key}") if row.value]


def part_restore(trial: Trial, random: Random) -> Change:
    return _older([random.choice(parts(trial, random))])


def part_tear(trial: Trial, random: Random) -> Change:
    """Undo a part of a transaction's rows."""
    by_transaction: dict[tuple[int, int], list[Row]] = {}
    for row in parts(trial, random):
        writer = row.key[0] // trial.case.spec.keys
        by_transaction.setdefault((writer, row.value), []).append(row)
    several = [rows for rows in by_transaction.values() if len(rows) > 1]
    if not several:
        raise NothingToChange
    return _older(_part_of(random.choice(several), random))


def _older(rows: list[Row]) -> Change:
    for row in rows:
        row.set(row.value - 1)
    return changed("as it was before", *(row.name for row in rows))


def part_add(trial: Trial, random: Random) -> Change:
    key = trial.case.spec.writers * trial.case.spec.keys + random.randrange(10)
    Table(trial, "part", "id", "n").add((key,), 1)
    return changed("added", f"row {key}")


def hunt_words(_: Trial, table: str, row: Cells) -> list[str]:
    if table == "writer":
        return [f"writer {row[0] + 1}"] if isinstance(row[0], int) else []  # damage may have changed its type
    return [f"row {row[0]}"] if table == "part" else ["accounts"]
