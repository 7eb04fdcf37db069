"""The sentences of what is found of power cuts, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase, sampled

_FOUND = (Finding("images-lost", count=40), Finding("images-torn", count=3))
_CAN_LOSE = "a power failure can lose what was committed since the last checkpoint"

PHRASES = sampled(
    {
        "power-unproved": "Nothing is proved: no image was checked.",
        "power-control-good": "FAILED: nothing is proved of any configuration. {control} is known to fail, "
        "but none of its {images:plural image} was {missing}, so the test could miss faults elsewhere too.",
        "power-control-failed": "Control: {name}, which must fail, failed in {failed} of {images:plural "
        "image}, so the test finds lost, torn and corrupt images.",
        "power-worse": "FAILED: worse than SQLite documents. {worse:semicolons}.",
        "images-met": "[{name}: ]of {images:plural image}, {found}",
        "images-lost": "{count} lost acknowledged transactions",
        "images-torn": "{count} held torn transactions",
        "images-corrupt": "{count} were corrupt",
        "power-no-worse": "No configuration did worse than SQLite documents. {control}",
        "power-kept": "Nothing was lost: all {images:plural image} of the disk held every acknowledged "
        "transaction, whole, in sound files.[ SQLite's documentation allows more: {allowed}.] {control}",
        "power-documented": "As SQLite documents: {met}. [{why}: ]{told}. {spoils?To keep every commit on "
        "such a disk, open with psow=0 (--psow off).|}[To keep every commit, use {cure}.] {control}",
        "power-safe": "Use {name}: it lost nothing, with the fewest syncs.[ As safe here: {others}.]",
        "power-losing": Phrase(
            "If losing the latest commits is acceptable, these tear none: {told:semicolons}.",
            told=(Finding("power-risk", name="WAL with NORMAL", told=_CAN_LOSE),),
        ),
        "power-risk": "{name} ({told})",
        "power-breaking": "The {one?other one|}[{count} others] can tear or corrupt a file: do not use "
        "{one?it|them} for data that must survive a power cut.",
    },
    name="WAL with FULL",
    control=Finding("power-control-failed", name="MEMORY with FULL", failed=1300, images=2000),
    failed=1300,
    images=2000,
    missing=("torn",),
    worse=(Finding("images-met", name="WAL with FULL", images=2000, found=_FOUND),),
    found=_FOUND,
    allowed=_CAN_LOSE,
    met=Finding("images-met", images=2000, found=_FOUND),
    why="With WAL and NORMAL only checkpoints sync",
    told=_CAN_LOSE,
    spoils=False,
    cure="FULL",
    others=("DELETE with EXTRA",),
    one=False,
)
