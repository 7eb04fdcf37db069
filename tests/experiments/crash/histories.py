"""Databases written by hand: the files after some transactions, and the writers' acknowledgements."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from sqlstress.experiments.crash.proof import AcknowledgedRecords, Contents, check_acknowledged, check_whole
from sqlstress.experiments.crash.spec import Transactions
from sqlstress.experiments.crash.worker import RECORDS, Entry, Records
from sqlstress.report import Check
from sqlstress.report.case import Case

BUCKETS = 2
CASE = Case(workload="crash", buckets=BUCKETS, seed=7, spec=Transactions(batch=3, value_size=16))
FEW = (0, 1, 2, RECORDS, RECORDS + 1)
"""Records that transactions write: so few that several transactions write the same record."""


@dataclass
class History:
    """Transactions in the order of their commits."""

    records: Records = field(default_factory=lambda: Records(CASE))
    told: dict[int, AcknowledgedRecords] = field(default_factory=dict)
    logs: list[list[Entry]] = field(default_factory=lambda: [[] for _ in range(BUCKETS)])
    rows: list[dict[Any, Any]] = field(default_factory=lambda: [{} for _ in range(BUCKETS)])

    def __post_init__(self) -> None:
        for record in range(self.records.count):
            self.put(self.records.created(record))

    def put(self, entry: Entry) -> None:
        """Write the rows of a transaction into the files."""
        self.rows[entry.record // RECORDS].update(self.records.rows(entry))

    def commit(self, writer: int, record: int, acknowledged: bool = True) -> Entry:
        """Run a writer's next transaction."""
        before = self.told.get(writer, AcknowledgedRecords(0, 0))
        entry = Entry(writer, before.most + 1, record)
        self.told[writer] = AcknowledgedRecords(before.least + acknowledged, before.most + 1)
        self.logs[record // RECORDS].append(entry)
        self.put(entry)
        return entry

    def checks(self) -> list[Check]:
        """Return both checks of the history."""
        files = [Contents(log, rows) for log, rows in zip(self.logs, self.rows, strict=True)]
        return [check_acknowledged(self.told, files), check_whole(self.records, files)]

    def problems(self) -> list[str]:
        """Return the counter-examples of both checks."""
        return [text for check in self.checks() for text in check.counterexamples]


writes = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(FEW)), min_size=1, max_size=20)
"""(writer, record) of each transaction."""


def history_of(written: Sequence[tuple[int, int]]) -> History:
    """Return a history with all transactions acknowledged."""
    history = History()
    for writer, record in written:
        history.commit(writer, record)
    return history
