"""Hand-made results of workers."""

from typing import Any

from sqlstress.engine.loop import FOREVER_NS, Totals, Window
from sqlstress.engine.pool import WorkerExit
from sqlstress.engine.protocols import Findings
from sqlstress.engine.worker import Done
from sqlstress.statistics.histogram import bin_of
from sqlstress.statistics.units import NS_PER_S

OPENS_NS = 10 * NS_PER_S
WINDOW = Window(OPENS_NS - NS_PER_S, OPENS_NS, OPENS_NS + 2 * NS_PER_S)
FIXED = Window(OPENS_NS, OPENS_NS, FOREVER_NS)


def done(worker: int, gets: int = 0, replaces: int = 0, **fields: Any) -> WorkerExit:
    """Return the result of a worker with these numbers of gets (2 µs each) and replaces (50 µs each)."""
    counts = {"get": gets, "replace": replaces}
    latencies = {"get": 2_000, "replace": 50_000}
    effective = fields.pop("effective", {})
    totals = Totals(
        first_ns=fields.pop("first_ns", WINDOW.starts_ns),
        last_ns=fields.pop("last_ns", WINDOW.closes_ns),
        operations={kind: count for kind, count in counts.items() if count},
        rows=gets + replaces,
        buckets={kind: {bin_of(latencies[kind]): count} for kind, count in counts.items() if count},
        largest_ns={kind: latencies[kind] for kind, count in counts.items() if count},
        **fields,
    )
    return WorkerExit(worker, Done(totals, Findings(effective=effective)))


def dead(worker: int, reason: str = "was killed by SIGKILL") -> WorkerExit:
    """Return the exit of a worker that sent no result."""
    return WorkerExit(worker, reason=reason)
