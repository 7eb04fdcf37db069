"""Images: what a power cut could leave of a recorded run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from sqlstress.targets.sqlite.disk.device import SECTORS, Device
from sqlstress.targets.sqlite.disk.fates import FATES
from sqlstress.targets.sqlite.disk.model import Disk, Effect
from sqlstress.targets.sqlite.disk.operations import Operation, Write


@dataclass(frozen=True, slots=True)
class Image:
    """The disk as it could be after a power cut."""

    files: dict[str, bytes]
    """What the files hold, by name."""
    cut: int
    """Operations that had been done."""
    sector: int
    """Bytes of a sector."""
    fate: str
    """What became of what was not durable, by its name in FATES."""
    kept: int
    """How many of the effects that were not durable became it."""
    unsynced: int
    """How many there were."""

    def __str__(self) -> str:
        what = f"{self.kept} of {self.unsynced} unsynced effects kept ({self.fate})"
        return f"cut after operation {self.cut}, sectors of {self.sector} bytes, {what}"


def images(log: Sequence[Operation], count: int, device: Device, seed: str) -> Iterator[Image]:
    """Yield so many images of a run, each cut anywhere in it; those of one cut differ from each other.

    The log is gone through once, or a few times where a cut leaves little to choose.
    """
    random = Random(seed)
    while count > 0:
        for image in _passing(log, -(-count // len(FATES)), device, random):
            yield image
            count -= 1
            if not count:
                return


def _passing(log: Sequence[Operation], cuts: int, device: Device, random: Random) -> Iterator[Image]:
    """Yield the images of so many cuts, in the order of the run."""
    disk, done = Disk(), 0
    for cut in sorted(random.randint(0, len(log)) for _ in range(cuts)):
        for operation in log[done:cut]:
            disk.apply(operation)
        done = cut
        yield from _of_one_cut(disk, cut, device, random)


def _of_one_cut(disk: Disk, cut: int, device: Device, random: Random) -> Iterator[Image]:
    sector = random.choice(SECTORS)
    effects = disk.unsynced(sector)
    seen = set()
    for name, fate in FATES.items():
        chosen = tuple(fate(len(effects), random))
        if chosen in seen:
            continue
        seen.add(chosen)
        kept = [effect for effect, is_kept in zip(effects, chosen, strict=True) if is_kept]
        filler = random.choice((bytes, random.randbytes))
        spoilt = _spoilt(effects, random) if device.spoils else []
        yield Image(disk.image([*kept, *spoilt], filler), cut, sector, name, len(kept), len(effects))


def _spoilt(effects: Sequence[Effect], random: Random) -> list[Effect]:
    """Return a sector that was just being written, with anything in it; none where nothing was written."""
    writes = [effect for effect in effects if isinstance(effect, Write)]
    return [replace(one, data=random.randbytes(len(one.data))) for one in random.sample(writes, bool(writes))]
