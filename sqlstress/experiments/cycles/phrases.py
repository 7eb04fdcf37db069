"""The sentences of what is found of cycles, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase
from sqlstress.statistics.compare import Ratio

_FAST = Finding("settings-took", settings=("wal-tx",), total_ns=2e9, in_all=True, closing_ns=3e6)

PHRASES = {
    "timeout": Phrase(
        "TIMEOUT at {where}[ after {limit_ns:duration}]: {reason}.",
        where="delete",
        limit_ns=6e10,
        reason="2 of 5 cycles were done",
    ),
    "took-least": Phrase(
        "Least time: {least}; most: {most}, {times:times} as long.",
        least=_FAST,
        most=Finding("settings-took", settings=("delete",), total_ns=2e10),
        times=10.0,
    ),
    "fastest": Phrase(
        "Fastest: {fastest}[; slowest: {slowest}].",
        fastest=_FAST,
        slowest=Finding("settings-took", settings=("delete",), total_ns=2e10, ratio=Ratio(10, 9, 11, 5)),
    ),
    "settings-took": Phrase(
        "{settings}, {about?about |}{total_ns:duration}{in_all? in all|}[, plus {closing_ns:duration} for "
        "the closing checkpoint][, {ratio:compared as long}]{equal? (about equal)|}{unclear? (cannot tell "
        "which is fastest)|}",
        settings=("wal-tx", "wal-tx-off"),
        about=True,
        total_ns=2e9,
        in_all=True,
        closing_ns=None,
        ratio=None,
        equal=False,
        unclear=True,
    ),
    "beyond-the-sum": Phrase(
        "The total includes BEGIN and COMMIT, but the sum of the statements does not: {bounds}. Row by "
        "row, BEGIN and COMMIT are part of each statement, and the sum is the total.",
        bounds=(
            Finding(
                "bounds-took", where="wal-tx", bounds_ns=1e8, total_ns=2e9, share=0.05, one=True, commits=None
            ),
        ),
    ),
    "bounds-took": Phrase(
        "{bounds_ns:duration} of {total_ns:duration} ({share:percent}; {one?one COMMIT|}"
        "[{commits:rounded} COMMITs]) in {where}",
        where="wal-tx",
        bounds_ns=1e8,
        total_ns=2e9,
        share=0.05,
        one=False,
        commits=200.0,
    ),
    "checkpoints-off": Phrase(
        "Without checkpoints ({where}): {off_ns:duration}; with them ({other}): {on_ns:duration}[, "
        "{ratio:compared as long}]{unclear? (cannot tell which is faster)|}.[ No effect expected: the WAL "
        "never reached {frames} frames.]",
        where="wal-off",
        off_ns=2e9,
        other="wal",
        on_ns=2.2e9,
        ratio=None,
        unclear=True,
        frames=1000,
    ),
    "checkpoint": Phrase(
        "{where}: with {commits:plural commit} per cycle[ of each of {together} processes in step], one "
        "frame each, the checkpoint at {frames} frames was due in cycle {due}. {seen:capital}. The "
        "slowest cycle except the first is {spike}[ of process {process}] ({spike_ns:duration}; median "
        "{median_ns:duration}): {is_it?the checkpoint|no checkpoint}[ (cycle {first} was slower than "
        "{slower:percent} of the cycles)].",
        where="wal",
        commits=21,
        together=None,
        frames=1000,
        due=48,
        seen=Finding("checkpoint-seen", there=True, cycle_ns=4e6, early=False, later=(96, 143)),
        spike=70,
        process=None,
        spike_ns=8e6,
        median_ns=1e6,
        is_it=False,
        first=48,
        slower=0.95,
    ),
    "checkpoint-unseen": Phrase("none was seen"),
    "checkpoint-seen": Phrase(
        "it was seen {there?there|}[in cycle {cycle}][ of process {process}][ "
        "({cycle_ns:duration})]{early?: commits wrote more than one frame|}[, then in {later}][ and "
        "{more} later ones]",
        there=False,
        cycle=40,
        process=2,
        cycle_ns=4e6,
        early=False,
        later=(96,),
        more=5,
    ),
}
