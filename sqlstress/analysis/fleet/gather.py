"""Gathering: hosts become a fleet, each report counted once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlstress.analysis.comparison.estimates import ALPHA
from sqlstress.analysis.fleet.host import Host
from sqlstress.analysis.fleet.joint import Joint, joint_loads
from sqlstress.analysis.fleet.tables import Row, Table, tables


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A host, or a file, of which there is no figure."""

    name: str
    why: str
    """In a clause, without a full stop."""
    is_failure: bool = True
    """Whether something went wrong; else it is no report of what a fleet shows."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Hosts, and what they have in common."""

    hosts: tuple[Host, ...]
    """In the order of their names; each one once."""
    tables: tuple[Table, ...]
    """What two of them or more were asked."""
    twice: tuple[tuple[str, str], ...]
    """Reports that another one repeats: the name that was left out, and the one that is shown."""
    left_out: tuple[LeftOut, ...]
    """What there is no figure of, and why."""
    remarks: tuple[str, ...] = ()
    """What else is to be known of how the reports came here, a sentence each."""

    @property
    def alpha(self) -> float:
        """How often an interval misses its ratio: so seldom that all sentences hold together.

        Best, median and worst are chosen by their figures, so every pair of hosts counts.
        """
        return ALPHA / max(1, sum(row.pairs for row in self.told()))

    def told(self) -> tuple[Row, ...]:
        """Return the rows of which sentences are made."""
        return tuple(row for table in self.tables for row in table.told())

    def joint(self) -> tuple[Joint, ...]:
        """Return what hosts measured together."""
        return joint_loads(self.hosts)

    def alone(self) -> int:
        """Return how many cases only one host has."""
        shared = {row.case for table in self.tables for row in table.rows}
        return len({one.case for host in self.hosts for one in host.cases} - shared)


def gathered(hosts: Iterable[Host], left_out: Iterable[LeftOut] = (), remarks: Iterable[str] = ()) -> Fleet:
    """Return the fleet of hosts; of reports that say the same the first one stands."""
    first: dict[str, Host] = {}
    twice = []
    for host in hosts:
        if host.digest in first:
            twice.append((host.name, first[host.digest].name))
        else:
            first[host.digest] = host
    own = tuple(first.values())
    return Fleet(own, tables(own), tuple(twice), tuple(left_out), tuple(remarks))
