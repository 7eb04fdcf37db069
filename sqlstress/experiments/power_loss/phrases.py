"""The sentences of what is found of power cuts, as `show.phrases` has them."""

from __future__ import annotations

from sqlstress.show.phrases import Phrase

PHRASES = {
    "power-unproved": Phrase("Nothing is proved: no image was checked."),
    "power-control-good": Phrase(
        "FAILED: nothing is proved of any configuration. {control} is known to fail, but none of its "
        "{images:plural image} was {missing}, so the test could miss faults elsewhere too."
    ),
    "power-control-failed": Phrase(
        "Control: {name}, which must fail, failed in {failed} of {images:plural image}, so the test finds "
        "lost, torn and corrupt images."
    ),
    "power-worse": Phrase("FAILED: worse than SQLite documents. {worse:semicolons}."),
    "images-met": Phrase("[{name}: ]of {images:plural image}, {found}"),
    "images-lost": Phrase("{count} lost acknowledged transactions"),
    "images-torn": Phrase("{count} held torn transactions"),
    "images-corrupt": Phrase("{count} were corrupt"),
    "power-no-worse": Phrase("No configuration did worse than SQLite documents. {control}"),
    "power-kept": Phrase(
        "Nothing was lost: all {images:plural image} of the disk held every acknowledged transaction, "
        "whole, in sound files.[ SQLite's documentation allows more: {allowed}.] {control}"
    ),
    "power-documented": Phrase(
        "As SQLite documents: {met}. [{why}: ]{told}. {spoils?To keep every commit on such a disk, open "
        "with psow=0 (--psow off).|}[To keep every commit, use {cure}.] {control}"
    ),
    "power-safe": Phrase("Use {name}: it lost nothing, with the fewest syncs.[ As safe here: {others}.]"),
    "power-losing": Phrase(
        "If losing the latest commits is acceptable, these tear no transaction: {told:semicolons}."
    ),
    "power-risk": Phrase("{name} ({told})"),
    "power-breaking": Phrase(
        "The {one?other one|}[{count} others] can tear or corrupt a file: do not use {one?it|them} for "
        "data that must survive a power cut."
    ),
}
