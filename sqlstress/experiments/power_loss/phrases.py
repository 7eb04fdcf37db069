"""The sentences of what is found of power cuts, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.analysis.finding import Finding
from sqlstress.show.phrases import Phrase

PHRASES = {
    "power-unproved": Phrase("Nothing is proved: no image was checked."),
    "power-control-good": Phrase(
        "FAILED: nothing is proved of any configuration. {control} is known to fail, but none of its "
        "{images:plural image} was {missing}, so the test could miss faults elsewhere too.",
        control="MEMORY with FULL",
        images=2000,
        missing=("torn",),
    ),
    "power-control-failed": Phrase(
        "Control: {name}, which must fail, failed in {failed} of {images:plural image}, so the test finds "
        "lost, torn and corrupt images.",
        name="MEMORY with FULL",
        failed=1300,
        images=2000,
    ),
    "power-worse": Phrase(
        "FAILED: worse than SQLite documents. {worse:semicolons}.",
        worse=(
            Finding(
                "images-met", name="WAL with FULL", images=2000, found=(Finding("images-torn", count=3),)
            ),
        ),
    ),
    "images-met": Phrase(
        "[{name}: ]of {images:plural image}, {found}",
        name="WAL with FULL",
        images=2000,
        found=(Finding("images-lost", count=40), Finding("images-torn", count=3)),
    ),
    "images-lost": Phrase("{count} lost acknowledged transactions", count=40),
    "images-torn": Phrase("{count} held torn transactions", count=3),
    "images-corrupt": Phrase("{count} were corrupt", count=2),
    "power-no-worse": Phrase(
        "No configuration did worse than SQLite documents. {control}",
        control=Finding("power-control-failed", name="MEMORY with FULL", failed=1300, images=2000),
    ),
    "power-kept": Phrase(
        "Nothing was lost: all {images:plural image} of the disk held every acknowledged transaction, "
        "whole, in sound files.[ SQLite's documentation allows more: {allowed}.] {control}",
        images=2000,
        allowed="a power failure can lose what was committed since the last checkpoint",
        control=Finding("power-control-failed", name="MEMORY with FULL", failed=1300, images=2000),
    ),
    "power-documented": Phrase(
        "As SQLite documents: {met}. [{why}: ]{told}. {spoils?To keep every commit on such a disk, open "
        "with psow=0 (--psow off).|}[To keep every commit, use {cure}.] {control}",
        met=Finding("images-met", name=None, images=2000, found=(Finding("images-lost", count=40),)),
        why="With WAL and NORMAL only checkpoints sync",
        told="a power failure can lose what was committed since the last checkpoint",
        spoils=False,
        cure="FULL",
        control=Finding("power-control-failed", name="MEMORY with FULL", failed=1300, images=2000),
    ),
    "power-safe": Phrase(
        "Use {name}: it lost nothing, with the fewest syncs.[ As safe here: {others}.]",
        name="WAL with FULL",
        others=("DELETE with EXTRA",),
    ),
    "power-losing": Phrase(
        "If losing the latest commits is acceptable, these tear none: {told:semicolons}.",
        told=(Finding("power-risk", name="WAL with NORMAL", told="a power failure can lose commits"),),
    ),
    "power-risk": Phrase("{name} ({told})", name="WAL with NORMAL", told="a power failure can lose commits"),
    "power-breaking": Phrase(
        "The {one?other one|}[{count} others] can tear or corrupt a file: do not use {one?it|them} for "
        "data that must survive a power cut.",
        one=False,
        count=4,
    ),
}
