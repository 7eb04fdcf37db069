"""How a fleet is shown: who the hosts are, in what they differ, the spread of each case, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlstress.analysis.fleet import Figure as Reached
from sqlstress.analysis.fleet import Fleet, Host, Joint, Row, Table, conclude, differing_facts
from sqlstress.analysis.joint_load import clocks_told, known_within
from sqlstress.analysis.wording import percent, plural, whole
from sqlstress.experiment import face_of
from sqlstress.show import blocks
from sqlstress.show.blocks import (
    DETAIL,
    NAME,
    Block,
    Bullets,
    Column,
    Figure,
    Lines,
    Paragraph,
    clean,
    count_cell,
    layout_column,
    ms_cell,
    shortened,
    table_of,
    whole_cell,
)
from sqlstress.show.phrases import phrase

# What is shown of hosts that loaded one server together: totals, which are marked as such.


_WHAT_IT_IS = (
    "TOTAL: the sum over hosts whose windows opened at one agreed instant of the server's clock, the median "
    "of its trials. The windows' error is what they may not have in common, with the error of the clocks; "
    "how trials differ is not in it. Each host has tables of its own on the server: hosts share its "
    "processors, its log and its disk, and no row."
)


def joint_blocks(fleet: Fleet) -> Iterator[Block]:
    """Yield the totals of each common measurement; nothing where every host loaded alone."""
    every = fleet.joint()
    for meeting in dict.fromkeys(one.meeting for one in every):
        own = [one for one in every if one.meeting == meeting]
        yield Lines((f"Together, on {shortened(own[0].server, 60)}: totals of all hosts. {own[0].work}.",))
        yield _table(own)
        yield Lines((*_left_out(own), *clocks_told(fleet, meeting)))
    if every:
        yield blocks.Paragraph(_WHAT_IT_IS)


def _table(rows: list[Joint]) -> blocks.Table:
    unit = face_of(rows[0].case).rate_counts
    figures: tuple[Figure[Joint], ...] = (
        Figure(layout_column(row.case for row in rows), lambda row: whole_cell(row.case.buckets)),
        Figure(
            Column("processes of each host", ("processes", "each"), role=NAME),
            lambda row: whole_cell(row.case.concurrency),
        ),
        Figure(
            Column("due per s, each host", ("due per s", "each"), role=NAME),
            lambda row: count_cell(row.case.rate) if row.case.rate else None,
        ),
        Figure(Column("hosts", ("", "hosts"), "left"), lambda row: f"{row.hosts} of {len(row.asked)}"),
        Figure(Column("trials", ("", "trials"), role=DETAIL), lambda row: whole_cell(len(row.totals))),
        Figure(Column(f"TOTAL, {unit} a second", ("TOTAL", "per s")), _total),
        Figure(Column("lowest", ("", "lowest"), role=DETAIL), lambda row: _end(row, row.lowest)),
        Figure(Column("highest", ("", "highest"), role=DETAIL), lambda row: _end(row, row.highest)),
        Figure(Column("windows' error", ("windows'", "error")), _off),
        Figure(
            Column("common window s", ("common", "window s")),
            lambda row: f"{row.typical.common_s:.4f}" if row.typical else None,
        ),
        Figure(
            Column("clocks within", ("clocks", "within")),
            lambda row: known_within(row.typical) if row.typical else None,
        ),
    )
    return table_of(rows, figures, leaving=("trials", "lowest", "highest"))


def _total(row: Joint) -> str | None:
    return count_cell(row.typical.rate) if row.typical else None


def _end(row: Joint, rate: float) -> str | None:
    """Return the lowest or the highest total; nothing where there is one trial only."""
    return count_cell(rate) if len(row.totals) > 1 else None


def _off(row: Joint) -> str | None:
    return f"±{percent(row.typical.off_share)}" if row.typical else None


def _left_out(rows: list[Joint]) -> Iterator[str]:
    """Yield who is in no total, each reason once."""
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        for name, why in row.without.items():
            found[name, why] = found.get((name, why), 0) + 1
    for (name, why), cases in found.items():
        where = "" if cases == len(rows) else f" of {plural(cases, 'case')}"
        yield f"Not in the total{where}: {clean(name) or '?'}: {shortened(why, 200)}."


LONGEST_NAME = 20
LEGEND = (
    "best, median and worst: hosts' own figures, each the median of its trials, never pooled; the median "
    "host of an even number is the lower of the two in the middle"
)
NEVER = "Figures of different hosts are never pooled."


@dataclass(frozen=True, slots=True)
class Spread:
    """What is shown of one table."""

    table: Table
    before: Lines
    figures: blocks.Table


def fleet_blocks(fleet: Fleet) -> Iterator[Block]:
    """Yield everything that a fleet shows."""
    yield from fleet_heading(fleet)
    yield from joint_blocks(fleet)
    for spread in fleet_spreads(fleet):
        yield spread.before
        yield spread.figures
    yield from fleet_findings(fleet)


def fleet_heading(fleet: Fleet) -> Iterator[Block]:
    """Yield which hosts they are, and in what they differ."""
    pooled = "They loaded one server together: what is a total is called so." if fleet.joint() else NEVER
    yield Paragraph(
        f"A fleet of {plural(len(fleet.hosts), 'host')}, each by the name of its report. {pooled}"
    )
    yield _hosts(fleet)
    notes = tuple(_notes(fleet))
    if notes:
        yield Lines(notes)
    facts = tuple(differing_facts(fleet))
    if facts:
        yield Paragraph("In what the hosts differ:")
        yield Bullets(facts)


def fleet_spreads(fleet: Fleet) -> Iterator[Spread]:
    """Yield what is shown of each table."""
    for table in fleet.tables:
        yield Spread(table, Lines(tuple(_heading(table))), _cases(table))


def fleet_findings(fleet: Fleet) -> Iterator[Block]:
    """Yield what the columns mean, and the sentences."""
    if fleet.tables:
        yield Paragraph(f"{LEGEND}.")
    elif len(fleet.hosts) > 1:
        yield Paragraph("The hosts have no case in common.")
    else:
        yield Paragraph("One host alone is compared with nothing: sqlstress report shows its figures.")
    found = tuple(phrase(finding) for finding in conclude(fleet))
    if found:
        yield Bullets(found)


def _hosts(fleet: Fleet) -> blocks.Table:
    told = fleet.told()
    reached = {one.host.digest: one for one in told[0].figures()} if told else {}
    apart = {one.host.digest for one in told[0].apart} if told else set()
    unit = face_of(told[0].case).rate_counts if told else ""

    def rate(host: Host) -> str | None:
        one = reached.get(host.digest)
        return None if one is None else f"{count_cell(one.rate)}{' *' * (host.digest in apart)}"

    figures: tuple[Figure[Host], ...] = (
        Figure(Column("host", ("", "host"), "left", NAME), lambda host: _ending(host.name)),
        Figure(Column("system", ("", "system"), "left"), lambda host: _short(host.fact("system"), 8)),
        Figure(Column("cores", ("", "cores")), lambda host: whole_cell(host.cores) if host.cores else None),
        Figure(
            Column("file system", ("file", "system"), "left"),
            lambda host: _short(host.fact("file system"), 8),
        ),
        Figure(Column("SQLite", ("", "SQLite"), "left"), lambda host: _short(host.fact("SQLite"), 9)),
        Figure(Column("sync call", ("sync", "call"), "left"), lambda host: _short(host.sync_call, 12)),
        Figure(
            Column("sync p50 ms", ("sync", "p50 ms")),
            lambda host: ms_cell(host.sync_ns[0]) if host.sync_ns else None,
        ),
        Figure(Column(f"{unit} a second", (unit[:12], "per s")), rate),
    )
    return table_of(fleet.hosts, figures, leaving=("sync call", "file system"))


def _short(words: str, longest: int) -> str | None:
    return shortened(words, longest) or None


def _ending(name: str) -> str:
    cleaned = clean(name) or "?"
    return cleaned if len(cleaned) <= LONGEST_NAME else f"..{cleaned[2 - LONGEST_NAME :]}"


def _notes(fleet: Fleet) -> Iterator[str]:
    told = fleet.told()
    if told:
        yield f"The last column: {told[0].place}."
        if told[0].apart:
            yield "*: it can't be compared with the others, as is said below."
    for host in fleet.hosts:
        if len(clean(host.name)) > LONGEST_NAME:
            yield f"{_ending(host.name)}: {clean(host.name)}."
    for host in fleet.hosts:
        if host.published is not None:
            whose = f"neither measured nor verified by sqlstress: {host.published}"
            yield f"{clean(host.name)}: published, {whose}."
    yield from fleet.remarks
    for name, other in fleet.twice:
        yield f"{clean(name)} says the same as {clean(other)}: counted once."
    for one in fleet.left_out:
        yield f"Left out: {clean(one.name)}: {one.why.removesuffix('.')}."
    if alone := fleet.alone():
        yield f"Not shown: {plural(alone, 'case')} that only one host has."
    yield from _warnings(fleet.hosts)


def _warnings(hosts: Sequence[Host]) -> Iterator[str]:
    """Yield the serious warnings, each once, and on how many hosts."""
    found: dict[str, list[Host]] = {}
    for host in hosts:
        for text in dict.fromkeys(host.warnings):
            found.setdefault(text, []).append(host)
    for text, own in found.items():
        where = f"all {whole(len(own))} hosts" if len(own) == len(hosts) else plural(len(own), "host")
        if len(own) <= 3 and (len(own) < len(hosts) or len(own) == 1):
            where = ", ".join(shortened(host.name, 40) for host in own)
        yield f"Warning ({where}): {text}"


def _heading(table: Table) -> Iterator[str]:
    row = table.rows[0]
    yield f"{row.work}."
    durability = next((dict(one.terms).get("durability") for one in table.rows if one.comparable), None)
    if durability:
        yield f"Compared with each other: hosts with {durability}."
    without = [one for each in table.rows for one in each.without]
    if without:
        yield (
            f"Without a figure: {plural(len(without), 'case')} on "
            f"{plural(len({one.host.digest for one in without}), 'host')}."
        )


def _cases(table: Table) -> blocks.Table:
    sweeps = face_of(table.rows[0].case).behaviour.sweeps
    units = face_of(table.rows[0].case).rate_counts
    names: tuple[Figure[Row], ...] = (
        (
            Figure(layout_column(row.case for row in table.rows), lambda row: whole_cell(row.case.buckets)),
            Figure(
                Column("processes", ("proc-", "esses"), role=NAME),
                lambda row: whole_cell(row.case.concurrency),
            ),
            Figure(
                Column("due per s", ("due", "per s"), role=NAME),
                lambda row: count_cell(row.case.rate) if row.case.rate else None,
            ),
        )
        if sweeps
        else (Figure(Column("case", ("", "case"), "left", NAME), lambda row: shortened(row.case.label, 30)),)
    )
    figures: tuple[Figure[Row], ...] = (
        *names,
        Figure(Column("hosts", ("", "hosts")), lambda row: whole_cell(len(row.comparable))),
        Figure(
            Column("not comparable", ("not com-", "parable")),
            lambda row: whole_cell(len(row.apart)) if row.apart else None,
        ),
        Figure(Column(f"best, {units} a second", ("best", "per s")), lambda row: _rate(row, "best")),
        Figure(Column("best host", ("best", "host"), "left"), lambda row: _host(row, "best")),
        Figure(Column("median", ("median", "per s")), lambda row: _rate(row, "median")),
        Figure(Column("worst", ("worst", "per s")), lambda row: _rate(row, "worst")),
        Figure(Column("worst host", ("worst", "host"), "left"), lambda row: _host(row, "worst")),
    )
    return table_of(table.rows, figures, leaving=("best host",))


def _at(row: Row, which: str) -> Reached | None:
    return getattr(row, which) if row.comparable else None


def _rate(row: Row, which: str) -> str | None:
    found = _at(row, which)
    return count_cell(found.rate) if found else None


def _host(row: Row, which: str) -> str | None:
    found = _at(row, which)
    return shortened(found.host.name, 14) if found else None
