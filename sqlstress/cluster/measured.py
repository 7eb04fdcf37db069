"""A fleet that is measured: connected, carried through, and what came of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from sqlstress.analysis.fleet import LeftOut
from sqlstress.cluster.address import Cluster
from sqlstress.cluster.asked import Asked
from sqlstress.cluster.common_rounds import CommonRounds
from sqlstress.cluster.connection import connected
from sqlstress.cluster.job import SILENT_S
from sqlstress.cluster.rounds import JOIN_S, Rounds, Tell
from sqlstress.errors import EnvironmentFailure, Interrupted
from sqlstress.system.interrupt import StopSignals


@dataclass(frozen=True, slots=True)
class MeasuredFleet:
    """What came of it, beside the reports in the folder."""

    left_out: tuple[LeftOut, ...]
    """Hosts without a report, and why."""
    remarks: tuple[str, ...]
    """What else is to be known, a sentence each."""


def measure_fleet(cluster: Cluster, asked: Asked, tell: Tell) -> MeasuredFleet:
    """Measure a plan on every host of a cluster; each report is saved as soon as it is there.

    Raises EnvironmentFailure when there is no scheduler, or no report of any host; Interrupted when we are
    told to stop: then nothing is left running on any host.
    """
    with connected(cluster) as connection, StopSignals() as signals:
        is_new = asked.make_folder()
        rounds = (CommonRounds if asked.together else Rounds)(connection, asked, tell)
        try:
            rounds.go(signals.check)
        except Interrupted as stop:
            still = rounds.stop()
            raise Interrupted(f"{stop}; {rounds.kept()}{_still(still)}.") from stop
        finally:
            rounds.forget()
            if is_new and not rounds.saved:
                with suppress(OSError):
                    asked.folder.rmdir()
    if not rounds.saved:
        raise EnvironmentFailure(_nothing(cluster, rounds))
    return MeasuredFleet(tuple(rounds.left_out), tuple(rounds.remarks))


def _still(names: list[str]) -> str:
    if not names:
        return "; nothing runs on any host"
    return f"; {', '.join(names[:5])} did not answer: what runs there ends by itself within {SILENT_S:.0f} s"


def _nothing(cluster: Cluster, rounds: Rounds) -> str:
    if not rounds.left_out:
        return (
            f"no host has joined the scheduler at {cluster.address} within {JOIN_S:.0f} s: start dask worker "
            "there."
        )
    first, more = rounds.left_out[0], len(rounds.left_out) - 1
    others = f" (and {more:,} more hosts)" if more else ""
    return f"no host has sent a report: {first.name}: {first.why.removesuffix('.')}{others}."
