"""What power cuts say, in sentences: the verdict, what to use, and counter-examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.finding import PROVED, UNPROVED, WRONG, Finding
from sqlstress.analysis.wording import listing, plural, rounded, whole
from sqlstress.experiments.power_loss.result import CORRUPT, GOOD, KINDS, LOST, TORN, PowerCuts, PowerLoss

_ALLOWED = {
    "wal": {"normal": LOST, "full": GOOD, "extra": GOOD},
    "delete": {"full": LOST, "extra": GOOD},
    "truncate": {"full": GOOD, "extra": GOOD},
    "persist": {"full": GOOD, "extra": GOOD},
}
"""The worst that SQLite lets a power cut do, by journal mode and level; whatever is not here may corrupt.

Source: https://www.sqlite.org/pragma.html#pragma_synchronous
"""
_CURES = {
    ("wal", "normal"): "NORMAL syncs no commit: use FULL.",
    ("delete", "full"): "FULL leaves the journal's deletion unsynced, and a journal that is back undoes its "
    "transaction: use EXTRA.",
}


def allowed(loss: PowerLoss, cuts: PowerCuts) -> str:
    """Return the worst kind of image that SQLite lets a power cut leave of a configuration."""
    settings = cuts.case.settings
    if loss.spoils and loss.told_powersafe and settings.journal_mode == "wal":
        return CORRUPT  # it was told what isn't so
    return _ALLOWED.get(settings.journal_mode, {}).get(settings.synchronous or "", CORRUPT)


def power_verdict(loss: PowerLoss) -> Finding:
    """Return in a few sentences what was found."""
    if loss.control is None or loss.checked == 0:
        return Finding(UNPROVED, "Nothing is proved: no image was checked.")
    if not loss.is_proved:
        return Finding(WRONG, f"FAILED: {_unproved(loss.control)}")
    return _of_matrix(loss) if loss.matrix else _of_one(loss, loss.configurations[0])


def _unproved(control: PowerCuts) -> str:
    counts = zip((LOST, TORN, CORRUPT), (control.lost, control.torn, control.corrupt), strict=True)
    missing = listing([kind for kind, count in counts if not count])
    return (
        f"{name(control)} is known to fail, and of its {plural(control.images, 'image')} none was {missing}: "
        "what finds nothing here would find nothing elsewhere, so nothing is proved of any configuration."
    )


def _of_one(loss: PowerLoss, cuts: PowerCuts) -> Finding:
    if cuts.worst == GOOD:
        return Finding(
            PROVED,
            f"Nothing was lost: all of {plural(cuts.images, 'image')} of the disk held every acknowledged "
            f"transaction, whole, in sound files. {_control(loss)}",
        )
    counts = ((cuts.lost, "lost acknowledged transactions"), (cuts.torn, "held torn ones"))
    found = [f"{whole(count)} {what}" for count, what in (*counts, (cuts.corrupt, "were corrupt")) if count]
    cure = _CURES.get((cuts.case.settings.journal_mode, cuts.case.settings.synchronous or ""), "")
    cure = cure if cuts.worst == allowed(loss, cuts) else ""
    return Finding(
        WRONG, f"FAILED: of {plural(cuts.images, 'image')} {listing(found)}{_most(cuts)}. {cure}".rstrip()
    )


def _most(cuts: PowerCuts) -> str:
    return f" ({whole(cuts.most_lost)} in an image at most)" if cuts.most_lost else ""


def _control(loss: PowerLoss) -> str:
    assert loss.control
    failed = loss.control.images - loss.control.good
    return (
        f"{name(loss.control)}, which must fail, did so in {whole(failed)} of "
        f"{plural(loss.control.images, 'image')}: lost, torn and corrupt ones are found where there are any."
    )


def _of_matrix(loss: PowerLoss) -> Finding:
    if worse := [cuts for cuts in loss.configurations if _breaks(loss, cuts)]:
        names = listing([f"{name(cuts)} ({cuts.worst})" for cuts in worse])
        return Finding(WRONG, f"FAILED: worse than SQLite lets a power cut be: {names}.")
    return Finding(PROVED, f"No configuration did worse than SQLite lets it. {_control(loss)}")


def _is_worse(one: str, other: str) -> bool:
    return KINDS.index(one) > KINDS.index(other)


def advice(loss: PowerLoss) -> Iterator[Finding]:
    """Yield what to use, of several configurations that were tried."""
    if not loss.matrix or not loss.is_proved:
        return
    safe, losing, breaking = (_able(loss, *kinds) for kinds in ((GOOD,), (LOST,), (TORN, CORRUPT)))
    if least := safest(loss):
        others = listing([name(cuts) for cuts in safe if cuts is not least])
        yield Finding(
            "power-safe",
            f"Use {name(least)}: nothing was lost, and of what lost nothing it syncs least, "
            f"{rounded(syncs_each(least), 2)} times a transaction here."
            + (f" As safe here: {others}." if others else ""),
        )
    if losing:
        most = max(cuts.most_lost for cuts in losing)
        yield Finding(
            "power-losing",
            f"{listing(list(map(name, losing)))} lost acknowledged transactions, {whole(most)} at once at "
            "most, and tore none: use them where the latest may be lost.",
        )
    if breaking:
        broken = sum(cuts.worst in (TORN, CORRUPT) for cuts in breaking)
        others = "other one" if len(breaking) == 1 else f"{whole(len(breaking))} others"
        yield Finding(
            "power-breaking",
            f"The {others} can tear or corrupt a file, and {whole(broken)} did: not for what must be there "
            "after a power cut.",
        )


def safest(loss: PowerLoss) -> PowerCuts | None:
    """Return the configuration that syncs least of those of a proved matrix that lost nothing."""
    safe = _able(loss, GOOD) if loss.matrix and loss.is_proved else ()
    return min(safe, key=syncs_each, default=None)


def _able(loss: PowerLoss, *kinds: str) -> Sequence[PowerCuts]:
    """Return the configurations of which such an image is the worst that was met, or that is known of."""
    return [
        cuts
        for cuts in loss.configurations
        if max(cuts.worst, allowed(loss, cuts), key=KINDS.index) in kinds and cuts.images
    ]


def syncs_each(cuts: PowerCuts) -> float:
    """Return the syncs of a run for each of its transactions, checkpoints and all."""
    return cuts.syncs / max(1, cuts.transactions)


def power_findings(loss: PowerLoss) -> Iterator[Finding]:
    """Yield what must be known beside the verdict."""
    yield from advice(loss)
    for cuts in loss.configurations:
        for text in cuts.counterexamples[-1:] if not loss.matrix or _breaks(loss, cuts) else ():
            yield Finding("counterexamples", f"{name(cuts)}: {text}.")
    if loss.error:
        yield Finding("ended-early", f"Ended early: {loss.error.removesuffix('.')}.")


def _breaks(loss: PowerLoss, cuts: PowerCuts) -> bool:
    return _is_worse(cuts.worst, allowed(loss, cuts))


def power_progress(loss: PowerLoss) -> str:
    """Return how far a test of power cuts has come."""
    images = loss.images * loss.planned
    return f"{whole(loss.checked)} of {plural(images, 'image')}"


def name(cuts: PowerCuts) -> str:
    """Return what tells a configuration from others: "WAL with FULL"."""
    settings = cuts.case.settings
    return f"{settings.journal_mode.upper()} with {(settings.synchronous or 'default').upper()}"
