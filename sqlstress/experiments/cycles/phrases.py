"""The sentences of what is found of cycles, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import sampled
from sqlstress.statistics.compare import Ratio

_FAST = Finding("settings-took", settings=("wal-tx",), total_ns=2e9, in_all=True, closing_ns=3e6)
_SLOW = Finding("settings-took", settings=("delete",), total_ns=2e10)

PHRASES = sampled(
    {
        "timeout": "TIMEOUT at {where}[ after {limit_ns:duration}]: {reason}.",
        "took-least": "Least time: {least}; most: {most}, {times:times} as long.",
        "fastest": "Fastest: {fastest}[; slowest: {slowest}].",
        "settings-took": "{settings}, {about?about |}{total_ns:duration}{in_all? in all|}[, plus "
        "{closing_ns:duration} for the closing checkpoint][, {ratio:compared as long}]{equal? (about equal)|}"
        "{unclear? (cannot tell which is fastest)|}",
        "beyond-the-sum": "The total includes BEGIN and COMMIT, but the sum of the statements does not: "
        "{bounds}. Row by row, BEGIN and COMMIT are part of each statement, and the sum is the total.",
        "bounds-took": "{bounds_ns:duration} of {total_ns:duration} ({share:percent}; {one?one COMMIT|}"
        "[{commits:rounded} COMMITs]) in {where}",
        "checkpoints-off": "Without checkpoints ({where}): {off_ns:duration}; with them ({other}): "
        "{on_ns:duration}[, {ratio:compared as long}]{unclear? (cannot tell which is faster)|}.[ No effect "
        "expected: the WAL never reached {frames} frames.]",
        "checkpoint": "{where}: with {commits:plural commit} per cycle[ of each of {together} processes in "
        "step], one frame each, the checkpoint at {frames} frames was due in cycle {due}. {seen:capital}. "
        "The slowest cycle except the first is {spike}[ of process {process}] ({spike_ns:duration}; median "
        "{median_ns:duration}): {is_it?the checkpoint|no checkpoint}[ (cycle {first} was slower than "
        "{slower:percent} of the cycles)].",
        "checkpoint-unseen": "none was seen",
        "checkpoint-seen": "it was seen {there?there|}[in cycle {cycle}][ of process {process}][ "
        "({cycle_ns:duration})]{early?: commits wrote more than one frame|}[, then in {later}][ and {more} "
        "later ones]",
    },
    where="wal-tx",
    other="wal",
    limit_ns=6e10,
    reason="2 of 5 cycles were done",
    least=_FAST,
    most=_SLOW,
    times=10.0,
    fastest=_FAST,
    slowest=_SLOW,
    settings=("wal-tx", "wal-tx-off"),
    about=True,
    total_ns=2e9,
    closing_ns=3e6,
    in_all=True,
    ratio=Ratio(10, 9, 11, 5),
    unclear=True,
    bounds=(Finding("bounds-took", where="wal-tx", bounds_ns=1e8, total_ns=2e9, share=0.05, one=True),),
    bounds_ns=1e8,
    share=0.05,
    one=False,
    commits=21,
    off_ns=2e9,
    on_ns=2.2e9,
    frames=1000,
    together=2,
    due=48,
    seen=Finding("checkpoint-seen", there=True, cycle_ns=4e6, later=(96, 143)),
    spike=70,
    spike_ns=8e6,
    median_ns=1e6,
    process=1,
    is_it=False,
    first=48,
    slower=0.95,
    there=False,
    cycle=40,
    cycle_ns=4e6,
    early=False,
    later=(96,),
    more=5,
)
