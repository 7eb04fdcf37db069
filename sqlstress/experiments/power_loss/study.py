"""Power cuts: a run is recorded, cut at many points, and every image of the disk that is left is checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sqlstress.engine.failure import as_failure
from sqlstress.errors import Interrupted
from sqlstress.experiments.power_loss.examine import examine
from sqlstress.experiments.power_loss.images import Image, images
from sqlstress.experiments.power_loss.load import Load
from sqlstress.experiments.power_loss.proof import Finding, History, worst
from sqlstress.experiments.power_loss.result import GOOD, PowerCuts, PowerLoss
from sqlstress.report.case import Case, Settings
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.disk.device import Device
from sqlstress.targets.sqlite.disk.operations import Operation, Sync, SyncFolder
from sqlstress.targets.sqlite.drivers import Connection, load_vfs

CONTROL_IMAGES = 1000
"""So many show all kinds of failures of the control, whatever the seed."""
TOLD_EVERY = 100
"""Images after which it is told how far we are."""

Tell = Callable[[PowerLoss], None]
Check = Callable[[], None]
"""Raises Interrupted when we are to stop."""


def control(case: Case) -> Case:
    """Return a configuration like this one that must fail: what could undo a transaction is in memory."""
    return replace(case, settings=Settings(journal_mode="memory", synchronous="full"), buckets=1)


@dataclass(frozen=True, slots=True)
class Recording:
    """A run: what it asked of the disk, and what was acknowledged meanwhile."""

    log: Sequence[Operation]
    histories: Sequence[History]
    effective: dict[str, str]


def record(case: Case, folder: Path, device: Device) -> Recording:
    """Carry out the transactions of a case on new files in a folder. Raises UsageError without apsw."""
    files.remove(case, folder)
    with load_vfs("recording").Recorder(device) as recorder:
        load = Load(case, folder, recorder)
        load.run()
        return Recording(recorder.log, load.histories, load.effective)


class PowerStudy:
    """Cuts the power of a control, and then of each case."""

    def __init__(
        self, loss: PowerLoss, cases: Sequence[Case], folder: Path, check: Check, tell: Tell, *, keep: bool
    ) -> None:
        """`loss` says what is to be done, and has what was found."""
        self.loss = loss
        self._cases, self._folder, self._keep = cases, folder, keep
        self._check, self._tell = check, tell
        self._device = Device(loss.spoils, loss.told_powersafe)
        self._begun = time.perf_counter()

    def run(self) -> bool:
        """Try everything; return whether it was interrupted. Raises SqlstressError if nothing could be."""
        try:
            self._cut(control(self._cases[0]), max(self.loss.images, CONTROL_IMAGES), self._take_control)
            for case in self._cases:
                self._cut(case, self.loss.images, self._take)
        except Interrupted:
            return True
        except Exception as problem:
            if not self.loss.configurations:
                raise as_failure(problem, self._cases[0].driver) from problem
            self.loss = replace(self.loss, error=str(as_failure(problem, self._cases[0].driver)))
        return False

    def _take_control(self, found: PowerCuts) -> None:
        self.loss = replace(self.loss, control=found)

    def _take(self, found: PowerCuts) -> None:
        before = [cuts for cuts in self.loss.configurations if cuts.case != found.case]
        self.loss = replace(self.loss, configurations=(*before, found))

    def _cut(self, case: Case, count: int, take: Callable[[PowerCuts], None]) -> None:
        """Record a run and check so many images of it; `take` is given what has been found by then."""
        recording = record(case, self._folder, self._device)
        if not self._keep:
            files.remove(case, self._folder)
        found = _recorded(case, recording)
        with load_vfs("image").ImageVfs(self._device) as vfs:
            for image in images(recording.log, count, self._device, f"{case.seed}:images"):
                self._check()
                vfs.load(image.files)
                found = _added(found, image, judge(vfs.connect, recording.histories, image.cut))
                if found.images % TOLD_EVERY == 0 or found.images == count:
                    take(found)
                    self.loss = replace(self.loss, seconds=time.perf_counter() - self._begun)
                    self._tell(self.loss)


def judge(connect: Callable[[str], Connection], histories: Sequence[History], cut: int) -> Finding:
    """Return what is to be said of an image; `connect` opens a file of it by its name."""
    return worst(history.judge(examine(partial(connect, history.name)), cut) for history in histories)


def _recorded(case: Case, recording: Recording) -> PowerCuts:
    return PowerCuts(
        case,
        transactions=sum(len(history.spans) for history in recording.histories),
        operations=len(recording.log),
        syncs=sum(isinstance(operation, Sync | SyncFolder) for operation in recording.log),
        effective=recording.effective,
    )


def _added(found: PowerCuts, image: Image, finding: Finding) -> PowerCuts:
    """Return what was found, with one more image."""
    kind, examples = finding.kind, found.counterexamples
    if kind != GOOD and not getattr(found, kind):
        examples = (*examples, f"{kind}: {image}: {finding.text}")
    return replace(
        found,
        images=found.images + 1,
        counterexamples=examples,
        most_lost=max(found.most_lost, finding.lost),
        **{kind: getattr(found, kind) + 1},
    )
