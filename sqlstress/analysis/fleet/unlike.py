"""In what hosts differ, as facts: what most of them are, and which are otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median_low

from sqlstress.analysis.comparison.differences import FLAT
from sqlstress.analysis.fleet.host import FACTS, Host
from sqlstress.statistics.units import format_ms


@dataclass(frozen=True, slots=True)
class Spread:
    """A subject in which hosts differ."""

    subject: str
    values: tuple[tuple[str, tuple[Host, ...]], ...]
    """What it is, and on which hosts, the most frequent first."""
    hosts: int
    """How many hosts there are."""

    @property
    def usual(self) -> str | None:
        """What it is on more than half of the hosts; None where nothing is."""
        value, own = self.values[0]
        return value if 2 * len(own) > self.hosts else None


def spreads(hosts: Sequence[Host]) -> tuple[Spread, ...]:
    """Return the subjects in which hosts differ, as far as they are known."""
    return tuple(one for subject in FACTS if len((one := _spread(subject, hosts)).values) > 1)


def _spread(subject: str, hosts: Sequence[Host]) -> Spread:
    known = [(host, value) for host in hosts if (value := host.fact(subject))]
    counts = Counter(value for _, value in known)
    own = [(value, tuple(host for host, told in known if told == value)) for value, _ in counts.most_common()]
    return Spread(subject, tuple(own), len(hosts))


def usual_sync(hosts: Sequence[Host]) -> Host | None:
    """Return the host whose sync's cost is in the middle; None where fewer than three are known."""
    known = {host.sync_ns[0]: host for host in hosts if host.sync_ns}
    costs = [host.sync_ns[0] for host in hosts if host.sync_ns]
    return known[median_low(costs)] if len(costs) > 2 else None


def sync_differs(host: Host, other: Host) -> bool:
    """Say whether a sync costs two hosts more or less by a factor that one host does not show by itself.

    Each has it measured when it began and when it ended: all of one must lie beyond all of the other.
    """
    if not host.sync_ns or not other.sync_ns:
        return False
    return min(host.sync_ns) > FLAT * max(other.sync_ns) or FLAT * max(host.sync_ns) < min(other.sync_ns)


def unlike(host: Host, hosts: Sequence[Host], found: Sequence[Spread]) -> Iterator[str]:
    """Yield in what a host differs from most: "file system: xfs, of most ext4"."""
    middle = usual_sync(hosts)
    if middle and middle is not host and sync_differs(host, middle):
        own, usual = format_ms(host.sync_ns[0]), format_ms(middle.sync_ns[0])
        yield f"what a sync costs: {own} ms, of the median host {usual}"
    for spread in found:
        value = host.fact(spread.subject)
        if spread.usual is not None and value and value != spread.usual:
            yield f"{spread.subject}: {value}, of most {spread.usual}"
