"""How power cuts are shown: what was tried, a row for each configuration, and what to use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from sqlstress.analysis.durability import describe_waits
from sqlstress.analysis.finding import PROVED, UNPROVED, WRONG, Conclusion, Finding, Part, ended_early
from sqlstress.analysis.group import Group
from sqlstress.analysis.wording import buckets, plural, rounded, whole
from sqlstress.experiments.power_loss.experiment import PowerCuts, PowerLoss
from sqlstress.report import Report, Run
from sqlstress.report.power_failure import CORRUPT, GOOD, KINDS, LOST, TORN, Risk, risk
from sqlstress.show import heading
from sqlstress.show.blocks import DETAIL, NAME, Block, Bullets, Column, Legend, Lines, Table, Verdict
from sqlstress.show.phrases import phrase
from sqlstress.show.shown import ResultShown, Tile, came_of

_SPOILED = Risk(
    CORRUPT,
    "a power failure can take acknowledged transactions with the sector that was being written",
    "SQLite assumes that a write leaves adjacent bytes alone (psow=1), but this disk does not",
)


def risk_of(loss: PowerLoss, cuts: PowerCuts) -> Risk:
    """Return what SQLite's documentation lets a power cut do to a configuration, as it was read back."""
    settings, effective = cuts.case.settings, cuts.effective
    journal_mode = effective.get("journal_mode", settings.journal_mode)
    synchronous = effective.get("synchronous", settings.synchronous or "")
    if loss.spoils and loss.told_powersafe and journal_mode == "wal" and synchronous != "off":
        return _SPOILED
    return risk(journal_mode, synchronous)


def power_verdict(loss: PowerLoss) -> Conclusion:
    """Return what was found."""
    control = loss.control
    if control is None or loss.checked == 0:
        return Conclusion(UNPROVED, Finding("power-unproved"))
    if not loss.is_proved:
        counts = {LOST: control.lost, TORN: control.torn, CORRUPT: control.corrupt}
        missing = tuple(kind for kind, count in counts.items() if not count)
        good = Finding("power-control-good", control=name(control), images=control.images, missing=missing)
        return Conclusion(WRONG, good)
    if worse := tuple(_met(cuts, name(cuts)) for cuts in loss.configurations if _breaks(loss, cuts)):
        return Conclusion(WRONG, Finding("power-worse", worse=worse))
    failed = control.images - control.good
    proof = Finding("power-control-failed", name=name(control), failed=failed, images=control.images)
    if loss.matrix:
        return Conclusion(PROVED, Finding("power-no-worse", control=proof))
    cuts = loss.configurations[0]
    documented = risk_of(loss, cuts)
    if cuts.worst == GOOD:
        kept = Finding("power-kept", images=cuts.images, allowed=documented.told, control=proof)
        return Conclusion(PROVED, kept)
    spoils = documented is _SPOILED
    finding = Finding(
        "power-documented",
        met=_met(cuts),
        why=documented.why,
        told=documented.told,
        spoils=spoils,
        cure=None if spoils else documented.cure.upper() or "WAL with FULL",
        control=proof,
    )
    return Conclusion(PROVED, finding)


def _met(cuts: PowerCuts, of: str | None = None) -> Finding:
    """Return what was wrong with the images of a configuration; of which it is, if there are several."""
    counts = {"images-lost": cuts.lost, "images-torn": cuts.torn, "images-corrupt": cuts.corrupt}
    met = tuple(Finding(code, count=count) for code, count in counts.items() if count)
    return Finding("images-met", name=of, images=cuts.images, found=met)


def _breaks(loss: PowerLoss, cuts: PowerCuts) -> bool:
    """Say whether a configuration did worse than it may."""
    return KINDS.index(cuts.worst) > KINDS.index(risk_of(loss, cuts).worst)


def advice(loss: PowerLoss) -> Iterator[Finding]:
    """Yield what to use, of several configurations that were tried."""
    if not loss.matrix or not loss.is_proved:
        return
    safe, losing, breaking = (_able(loss, *kinds) for kinds in ((GOOD,), (LOST,), (TORN, CORRUPT)))
    if least := safest(loss):
        others = tuple(name(cuts) for cuts in safe if cuts is not least)
        yield Finding("power-safe", name=name(least), others=others)
    risks = [(name(cuts), told) for cuts in losing if (told := risk_of(loss, cuts).told)]
    if risks:
        findings = tuple(Finding("power-risk", name=which, told=told) for which, told in risks)
        yield Finding("power-losing", told=findings)
    if breaking:
        one = len(breaking) == 1
        yield Finding("power-breaking", one=one, count=None if one else len(breaking))


def safest(loss: PowerLoss) -> PowerCuts | None:
    """Return the configuration that syncs least of those of a proved matrix that lost nothing."""
    safe = _able(loss, GOOD) if loss.matrix and loss.is_proved else ()
    return min(safe, key=syncs_each, default=None)


def _able(loss: PowerLoss, *kinds: str) -> Sequence[PowerCuts]:
    """Return the configurations of which such an image is the worst that was met, or that is known of."""
    return [
        cuts
        for cuts in loss.configurations
        if max(cuts.worst, risk_of(loss, cuts).worst, key=KINDS.index) in kinds and cuts.images
    ]


def syncs_each(cuts: PowerCuts) -> float:
    """Return the syncs of a run for each of its transactions, checkpoints and all."""
    return cuts.syncs / max(1, cuts.transactions)


def power_findings(loss: PowerLoss) -> Iterator[Finding]:
    """Yield what must be known beside the verdict."""
    yield from advice(loss)
    for cuts in loss.configurations:
        for text in cuts.counterexamples[-1:] if not loss.matrix or _breaks(loss, cuts) else ():
            yield Finding("counterexamples", name=name(cuts), examples=(text,))
    yield from ended_early(loss.error)


def name(cuts: PowerCuts) -> str:
    """Return what tells a configuration from others: "WAL with FULL"."""
    return " with ".join(_levels(cuts))


def _levels(cuts: PowerCuts) -> tuple[str, str]:
    settings = cuts.case.settings
    return settings.journal_mode.upper(), (settings.synchronous or "default").upper()


class PowerLossShown(ResultShown[PowerLoss]):
    """Power cuts, in one configuration or more."""

    def part(self, result: PowerLoss) -> Part:
        return Part("power cuts", power_verdict(result), result.seconds, result.error, "crash")

    def result_blocks(self, report: Report, result: PowerLoss) -> Iterator[Block]:
        if result.configurations:
            cuts = result.configurations[0]
            group = Group(cuts.case, (Run(cuts.case),))
            about = [heading.describe(_what(result, cuts), group, report)]
            if cuts.effective and not result.matrix:
                about.append(describe_waits(cuts.effective, report.environment.sync))
            yield Lines(tuple(about))
            table = Table(COLUMNS, tuple(map(_row, result.configurations)), leaving=LEAVING)
            yield table
            yield Legend(table, partial(_legend, result))
        yield Verdict(phrase(power_verdict(result).finding))
        if told := tuple(phrase(finding) for finding in power_findings(result)):
            yield Bullets(told)

    def tiles(self, result: PowerLoss) -> Iterator[Tile]:
        value, what, kind = came_of(power_verdict(result), "nothing lost", "power cuts")
        documented = kind == "ok" and any(cuts.worst != GOOD for cuts in result.configurations)
        yield ("as documented", "effect of power cuts", "") if documented else (value, what, kind)
        if least := safest(result):
            yield name(least), "lost nothing, with the fewest syncs", ""
        yield whole(result.checked), "images of the disk", ""

    def progress(self, result: PowerLoss) -> str:
        return f"{whole(result.checked)} of {plural(result.images * result.planned, 'image')}"


COLUMNS = (
    Column("journal mode", align="left", role=NAME),
    Column("synchronous", ("synchro-", "nous"), "left", NAME),
    Column("syncs/transaction", ("syncs/", "trans."), role=DETAIL),
    Column("images", role=DETAIL),
    *map(Column, ("good", "lost", "torn", "corrupt", "most lost")),
)
LEAVING = ("syncs/transaction", "good", "most lost")
_MEANINGS = {
    "good": "good: every acknowledged transaction is there and whole",
    "lost": "lost: the files are in an earlier state",
    "most lost": "most lost: the most acknowledged transactions missing in one image",
    "torn": "torn: the files are in a state that never existed",
    "corrupt": "corrupt: SQLite or integrity_check reports errors",
    "syncs/transaction": "syncs/transaction: of files and folders, including those of checkpoints",
}
"""Column → what it is."""
MODEL = (
    "The counts come from this model: what a real power cut takes depends on when your load checkpoints and "
    "your system writes back."
)


def _legend(result: PowerLoss, table: Table) -> Iterator[str]:
    yield f"{'; '.join(table.explained(_MEANINGS))}. {MODEL} It took {rounded(result.seconds)} s"


def _what(loss: PowerLoss, cuts: PowerCuts) -> str:
    case = cuts.case
    sector = "may hold anything" if loss.spoils else "holds either old or new data"
    told = "" if loss.told_powersafe else ", as SQLite assumes (psow=0)"
    return (
        f"Power cuts. {plural(cuts.transactions, 'transaction')} on {buckets(case.buckets)}, "
        f"{plural(case.concurrency, 'connection')} each; a sector written at the cut {sector}{told}"
    )


def _row(cuts: PowerCuts) -> tuple[str, ...]:
    counts = (cuts.images, cuts.good, cuts.lost, cuts.torn, cuts.corrupt, cuts.most_lost)
    each = syncs_each(cuts)
    return (*_levels(cuts), f"{each:.1f}" if abs(each) < 100 else rounded(each, 2), *map(whole, counts))
