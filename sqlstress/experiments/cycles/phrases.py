"""The sentences of what is found of cycles, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase
from sqlstress.statistics.compare import Ratio

PHRASES = {
    "timeout": Phrase(
        "TIMEOUT at {where}[ after {limit_ns:duration}]: {reason}.",
        where="delete",
        limit_ns=6e10,
        reason="2 of 5 cycles were done",
    ),
    "took-least": Phrase(
        "Took least: {least}; most: {most}, {times:times} as much.",
        least=Finding("settings-took", settings=("wal-tx",), total_ns=2e9, in_all=True, closing_ns=3e6),
        most=Finding("settings-took", settings=("delete",), total_ns=2e10),
        times=10.0,
    ),
    "fastest": Phrase(
        "Fastest: {fastest}[; slowest: {slowest}].",
        fastest=Finding("settings-took", settings=("wal-tx",), total_ns=2e9, in_all=True, closing_ns=3e6),
        slowest=Finding("settings-took", settings=("delete",), total_ns=2e10, ratio=Ratio(10, 9, 11, 5)),
    ),
    "settings-took": Phrase(
        "{settings}, {about?about |}{total_ns:duration}{in_all? in all|}"
        "[, and {closing_ns:duration} for the closing checkpoint][, {ratio:compared as much}]"
        "{equal?, which are about equal|}{unclear?, which can't be told apart|}",
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
        "What the sum of the statements leaves out of the total is BEGIN and COMMIT: {bounds}. Row by row "
        "they are inside each statement, and the sum is the total.",
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
        "Without checkpoints ({where}): {off_ns:duration}, against {on_ns:duration} in {other}"
        "[, {ratio:compared as much}]{unclear?, which can't be told apart|}."
        "[ It could change nothing but the noise: the WAL never had the {frames} frames at which one is "
        "due.]",
        where="wal-off",
        off_ns=2e9,
        other="wal",
        on_ns=2.2e9,
        ratio=None,
        unclear=True,
        frames=1000,
    ),
    "checkpoint": Phrase(
        "{where}: with {commits:plural commit} a cycle[ of each of {together} processes in step], a frame "
        "each, the checkpoint at {frames} frames was due in cycle {due}, and {seen}. The spike, the slowest "
        "cycle but for the first, is cycle {spike}[ of process {process}] ({spike_ns:duration}; median "
        "{median_ns:duration}): {is_it?the checkpoint|no checkpoint}"
        "[ (cycle {first} was slower than {slower:percent} of the cycles)].",
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
        "it was seen {there?there|}[in cycle {cycle}][ of process {process}][ ({cycle_ns:duration})]"
        "{early?: commits wrote more than a frame|}[, then in {later}][ and {more} later ones]",
        there=False,
        cycle=40,
        process=2,
        cycle_ns=4e6,
        early=False,
        later=(96,),
        more=5,
    ),
}
