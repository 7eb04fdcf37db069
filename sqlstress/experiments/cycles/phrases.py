"""The sentences of what is found of cycles, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "timeout": Phrase("TIMEOUT at {where}[ after {limit_ns:duration}]: {reason}."),
    "took-least": Phrase("Least time: {least}; most: {most}, {times:times} as long."),
    "fastest": Phrase("Fastest: {fastest}[; slowest: {slowest}]."),
    "settings-took": Phrase(
        "{settings}, {about?about |}{total_ns:duration}{in_all? in all|}[, plus {closing_ns:duration} for "
        "the closing checkpoint][, {ratio:compared as long}]{equal? (about equal)|}{unclear? (cannot tell "
        "which is fastest)|}"
    ),
    "beyond-the-sum": Phrase(
        "The total includes BEGIN and COMMIT, but the sum of the statements does not: {bounds}. Row by "
        "row, BEGIN and COMMIT are part of each statement, and the sum is the total."
    ),
    "bounds-took": Phrase(
        "{bounds_ns:duration} of {total_ns:duration} ({share:percent}; {one?one COMMIT|}"
        "[{commits:rounded} COMMITs]) in {where}"
    ),
    "checkpoints-off": Phrase(
        "Without checkpoints ({where}): {off_ns:duration}; with them ({other}): {on_ns:duration}[, "
        "{ratio:compared as long}]{unclear? (cannot tell which is faster)|}.[ No effect expected: the WAL "
        "never reached {frames:plural frame}.]"
    ),
    "checkpoint": Phrase(
        "{where}: the checkpoint at {frames:plural frame} was due in cycle {due} ({commits:plural commit} "
        "per cycle[ of each of {together} processes in step], one frame each). {seen:capital}. The slowest "
        "cycle except the first is {spike}[ of process {process}] ({spike_ns:duration}; median "
        "{median_ns:duration}): {is_it?the checkpoint|not a checkpoint}.[ Cycle {first} was slower than "
        "{slower:percent} of the cycles.]"
    ),
    "checkpoint-unseen": Phrase("none was seen"),
    "checkpoint-seen": Phrase(
        "it was seen {there?there|}[in cycle {cycle}][ of process {process}][ "
        "({cycle_ns:duration})]{early?: commits wrote more than one frame|}[, then in {later}][ and "
        "{more} later ones]"
    ),
}
