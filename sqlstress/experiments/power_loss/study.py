"""Power cuts: a run is recorded, cut at many points, and every image of the disk that is left is checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sqlstress.engine.session import Bench
from sqlstress.engine.study import Progress, Steps, kept_reason
from sqlstress.engine.trial import TrialRunner
from sqlstress.experiments.power_loss.experiment import Extra, PowerCuts, PowerLoss
from sqlstress.experiments.power_loss.images import (
    READ,
    Finding,
    History,
    Image,
    Remains,
    Row,
    images,
    run_load,
    worst,
)
from sqlstress.experiments.power_loss.show import name
from sqlstress.report import Report
from sqlstress.report.case import Case, Settings
from sqlstress.report.power_failure import GOOD
from sqlstress.targets.sqlite import files
from sqlstress.targets.sqlite.disk_model import Device, Operation, Sync, SyncFolder
from sqlstress.targets.sqlite.drivers import Connection, explain, load_driver, load_vfs

CONTROL_IMAGES = 1000
"""So many show all kinds of failures of the control, whatever the seed."""
TOLD_EVERY = 100
"""Images of a step."""


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
    with load_vfs().Recorder(device) as recorder:
        histories, effective = run_load(case, folder, recorder)
        return Recording(recorder.log, histories, effective)


def how_far(loss: PowerLoss) -> Progress:
    """Return how many images of the cases were checked, which one's the last was, and the time left."""
    total = loss.images * loss.planned
    left_s = loss.seconds / loss.checked * (total - loss.checked)
    label = f"image {loss.checked:,} of {total:,}"
    return Progress(label, loss.checked, total, name(loss.configurations[-1]), left_s)


class PowerStudy:
    """Cuts the power of a control, and then of each case; a step is so many images."""

    def __init__(self, cases: Sequence[Case], loss: PowerLoss) -> None:
        """`loss` says what is to be done, and has what was found. Raises UsageError without apsw."""
        load_vfs()
        self.cases, self.loss = cases, loss
        self._device = Device(loss.spoils, loss.told_powersafe)

    def report(self, blank: Report) -> Report:
        """Return what was found by now."""
        return replace(blank, results={"power-loss": self.loss})

    def steps(self, bench: Bench) -> Steps:
        """Try everything."""
        runner, begun = bench.runner, time.perf_counter()
        try:
            images_of_control = max(self.loss.images, CONTROL_IMAGES)
            for found in self._cut(runner, control(self.cases[0]), images_of_control):
                self.loss = replace(self.loss, control=found, seconds=time.perf_counter() - begun)
                yield
            for case in self.cases:
                before = self.loss.configurations
                for found in self._cut(runner, case, self.loss.images):
                    seconds = time.perf_counter() - begun
                    self.loss = replace(self.loss, configurations=(*before, found), seconds=seconds)
                    runner.observer.progress(how_far(self.loss))
                    yield
        except Exception as problem:
            nothing_yet = not self.loss.configurations
            error = kept_reason(problem, self.cases[0].driver, nothing_yet=nothing_yet)
            self.loss = replace(self.loss, error=error)

    def _cut(self, runner: TrialRunner, case: Case, count: int) -> Iterator[PowerCuts]:
        """Record a run and check so many images of it; yield what has been found, again and again."""
        recording = record(case, runner.folder, self._device)
        runner.discard(lambda: files.remove(case, runner.folder))
        found = PowerCuts(
            case,
            transactions=sum(len(history.spans) for history in recording.histories),
            operations=len(recording.log),
            syncs=sum(isinstance(operation, Sync | SyncFolder) for operation in recording.log),
            effective=recording.effective,
        )
        with load_vfs().ImageVfs(self._device) as vfs:
            for image in images(recording.log, count, self._device, f"{case.seed}:images"):
                runner.signals.check()
                vfs.load(image.files)
                found = _added(found, image, judge(vfs.connect, recording.histories, image.cut))
                if found.images % TOLD_EVERY == 0 or found.images == count:
                    yield found


def study_of(cases: Sequence[Case], extra: Extra) -> PowerStudy:
    """Return the study that options ask for. Raises UsageError without apsw."""
    spoils = extra.disk == "spoiling"
    return PowerStudy(cases, PowerLoss(extra.images, len(cases), extra.matrix, spoils, extra.psow))


def judge(connect: Callable[[str], Connection], histories: Sequence[History], cut: int) -> Finding:
    """Return what is to be said of an image; `connect` opens a file of it by its name."""
    return worst(history.judge(examine(partial(connect, history.name)), cut) for history in histories)


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


_COMPLAINTS = 2
_HAS_TABLE = "SELECT count(*) FROM sqlite_schema WHERE name = 'record'"


def examine(connect: Callable[[], Connection]) -> Remains:
    """Open a file, read all of it and check its structure."""
    driver, connection = load_driver("apsw"), None
    try:
        connection = connect()
        ((has_table,),) = connection.rows(_HAS_TABLE)
        contents = tuple(Row(*row) for row in connection.rows(READ)) if has_table else ()
        answers = [str(row[0]) for row in connection.rows(f"PRAGMA integrity_check({_COMPLAINTS})")]
    except Exception as error:
        if driver.result_code(error) is None:
            raise
        return Remains(None, (explain("apsw", error),))
    finally:
        if connection is not None:
            connection.close()
    return Remains(contents, () if answers == ["ok"] else tuple(answers))
