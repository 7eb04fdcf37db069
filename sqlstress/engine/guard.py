"""Whether somebody else had a hand in a trial's data, so that its figures are not those of its case."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstress.engine.pool import Ended
from sqlstress.experiment import face_of
from sqlstress.report import Check, Verdict
from sqlstress.system.pulse import Pulse
from sqlstress.targets.place import MEANWHILE, Disturbance, Place


class Guard:
    """The data of a trial as it was when it had been prepared."""

    def __init__(self, place: Place, pulse: Pulse, *, redefines: bool = False) -> None:
        """`redefines`: the workers may change what is defined, so that nobody else can be told from them."""
        self._place, self._pulse, self._redefines = place, pulse, redefines
        self._before = place.snapshot(pulse)

    def disturbance(self, ended: Sequence[Ended]) -> Disturbance | None:
        """Say what somebody else did by now; None when nothing is to be seen of it.

        No process of ours may be connected any more.
        """
        if self._before and (broken := self._before.exchanged()):
            return Disturbance(f"{broken} {MEANWHILE}", "failed")
        told = [one.done.findings for one in ended if one.done]
        for findings in told:
            if findings.broken_seal:
                return Disturbance(f"{findings.broken_seal} {MEANWHILE}")
        changes_alone = face_of(self._place.case).connects and not self._redefines
        if changes_alone and self._before and (changed := self._before.changed(self._pulse)):
            return changed
        for findings in told if face_of(self._place.case).sets else ():
            for name, asked, answer in self._place.differences(findings.effective):
                return Disturbance(f"{name} was {asked} and became {answer} {MEANWHILE}")
        return None


def unread(disturbance: Disturbance) -> Verdict | None:
    """Return the verdict where a disturbance has left nothing to read; None where the proof can be made."""
    if disturbance.unread is None:
        return None
    if disturbance.unread == "failed":
        return Verdict((Check("database files", "failed", 0, 1, (disturbance.text,)),))
    return Verdict((Check("database files", disturbance.unread, note=disturbance.text),))
