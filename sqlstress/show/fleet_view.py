"""How a fleet is shown: who the hosts are, in what they differ, the spread of each case, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlstress.analysis.fleet import Figure as Reached
from sqlstress.analysis.fleet import Fleet, conclude, differing_facts
from sqlstress.analysis.fleet import Row as CaseRow
from sqlstress.analysis.fleet import Table as CaseTable
from sqlstress.analysis.fleet_hosts import Host, Joint, describe_clocks
from sqlstress.analysis.wording import duration, percent
from sqlstress.experiment import case_label, experiment_of, rate_units_of
from sqlstress.show.blocks import (
    BUCKETS_COLUMN,
    DETAIL,
    NAME,
    Block,
    Bullets,
    Column,
    Figure,
    Lines,
    Note,
    Paragraph,
    Table,
    case_figures,
    clean,
    count_cell,
    ms_cell,
    name_end,
    shortened,
    table_of,
    whole_cell,
)
from sqlstress.show.phrases import phrase
from sqlstress.statistics.units import plural, whole

LONGEST_NAME = 20
NEVER = "Figures of different hosts are never pooled."


def fleet_blocks(fleet: Fleet) -> Iterator[Block]:
    """Yield everything that a fleet shows."""
    yield from fleet_heading(fleet)
    yield from joint_blocks(fleet)
    for table in fleet.tables:
        yield from case_blocks(table)
    yield from fleet_findings(fleet)


def fleet_heading(fleet: Fleet) -> Iterator[Block]:
    """Yield which hosts they are, and in what they differ."""
    pooled = (
        "They loaded one server together; only figures called TOTAL are sums." if fleet.joint() else NEVER
    )
    yield Paragraph(f"A fleet of {plural(len(fleet.hosts), 'host')}, each named after its report. {pooled}")
    yield _hosts(fleet)
    if notes := tuple(_notes(fleet)):
        yield Lines(notes)
    if facts := tuple(differing_facts(fleet)):
        yield Paragraph("The hosts differ in:")
        yield Bullets(facts)


def _hosts(fleet: Fleet) -> Table:
    told = fleet.main_rows()
    reached = {each.host.digest: each.rate for each in told[0].figures()} if told else {}
    apart = {each.host.digest for each in told[0].apart} if told else set()
    unit = rate_units_of(told[0].case) if told else ""

    def rate(host: Host) -> str | None:
        known = reached.get(host.digest)
        return None if known is None else f"{count_cell(known)}{' *' * (host.digest in apart)}"

    def short(words: str, longest: int) -> str | None:
        return shortened(words, longest) or None

    figures: tuple[Figure[Host], ...] = (
        Figure(Column("host", align="left", role=NAME), lambda host: _name(host.name)),
        Figure(Column("system", align="left"), lambda host: short(host.fact("system"), 8)),
        Figure(Column("cores"), lambda host: whole_cell(host.cores) if host.cores else None),
        Figure(Column("file system", align="left"), lambda host: short(host.fact("file system"), 8)),
        Figure(Column("SQLite", align="left"), lambda host: short(host.fact("SQLite"), 9)),
        Figure(Column("sync call", align="left"), lambda host: short(host.sync_call, 12)),
        Figure(
            Column("sync p50 ms", ("sync", "p50 ms")),
            lambda host: ms_cell(host.sync_ns[0]) if host.sync_ns else None,
        ),
        Figure(Column(f"{unit} per second", (unit[:12], "per s")), rate),
    )
    return table_of(fleet.hosts, figures, leaving=("sync call", "file system"))


def _name(name: str) -> str:
    return name_end(name, LONGEST_NAME) or "?"


def _notes(fleet: Fleet) -> Iterator[str]:
    if told := fleet.main_rows():
        yield f"Last column: {told[0].place}."
        if told[0].apart:
            yield "*: not comparable with the others (see below)."
    for host in fleet.hosts:
        if len(clean(host.name)) > LONGEST_NAME:
            yield f"{_name(host.name)}: {clean(host.name)}."
    for host in fleet.hosts:
        if host.published is not None:
            whose = f"not measured or verified by sqlstress: {host.published}"
            yield f"{clean(host.name)}: published, {whose}."
    yield from fleet.remarks
    for name, other in fleet.twice:
        yield f"{clean(name)} has the same content as {clean(other)}; it is counted once."
    for missing in fleet.left_out:
        yield f"Left out: {clean(missing.name)}: {missing.why.removesuffix('.')}."
    if alone := fleet.alone():
        yield f"Not shown: {plural(alone, 'case')} that only one host has."
    warned: dict[str, list[Host]] = {}
    for host in fleet.hosts:
        for text in dict.fromkeys(host.warnings):
            warned.setdefault(text, []).append(host)
    for text, hosts in warned.items():
        yield f"Warning ({_which(hosts, len(fleet.hosts))}): {text}"


def _which(hosts: Sequence[Host], every: int) -> str:
    """Return on which hosts a warning stands: by name, if they are few."""
    if len(hosts) <= 3 and (len(hosts) < every or len(hosts) == 1):
        return ", ".join(shortened(host.name, 40) for host in hosts)
    return f"all {whole(every)} hosts" if len(hosts) == every else plural(len(hosts), "host")


# What is shown of hosts that loaded one server together: totals, which are marked as such.


def joint_blocks(fleet: Fleet) -> Iterator[Block]:
    """Yield the totals of each common measurement; nothing where every host loaded alone."""
    every = fleet.joint()
    for meeting in dict.fromkeys(joint.meeting for joint in every):
        rows = [joint for joint in every if joint.meeting == meeting]
        server = shortened(rows[0].server, 60)
        yield Lines((f"Together, on {server}: totals of all hosts. {rows[0].work}.",))
        yield _totals(rows)
        yield Lines((*_not_in_total(rows), describe_clocks(fleet.hosts, meeting)))
    if every:
        yield Note(
            "TOTAL: the sum over hosts whose windows opened at one agreed instant of the server's clock, the "
            "median of its trials. The windows' error covers time that the windows may not have in common "
            "and clock error, but not the spread of trials. Each host has its own tables on the server: "
            "hosts share its processors, log and disk, but no row."
        )


def _totals(rows: list[Joint]) -> Table:
    unit = rate_units_of(rows[0].case)

    def end(row: Joint, rate: float) -> str | None:
        """Return the lowest or the highest total; nothing where there is one trial only."""
        return count_cell(rate) if len(row.totals) > 1 else None

    figures: tuple[Figure[Joint], ...] = (
        Figure(BUCKETS_COLUMN, lambda row: whole_cell(row.case.buckets)),
        Figure(
            Column("processes of each host", ("processes", "each"), role=NAME),
            lambda row: whole_cell(row.case.concurrency),
        ),
        Figure(
            Column("due per s, each host", ("due per s", "each"), role=NAME),
            lambda row: count_cell(row.case.rate) if row.case.rate else None,
        ),
        Figure(Column("hosts", align="left"), lambda row: f"{row.hosts} of {len(row.asked)}"),
        Figure(Column("trials", role=DETAIL), lambda row: whole_cell(len(row.totals))),
        Figure(
            Column(f"TOTAL, {unit} per second", ("TOTAL", "per s")),
            lambda row: count_cell(row.typical.rate) if row.typical else None,
        ),
        Figure(Column("lowest", role=DETAIL), lambda row: end(row, row.lowest)),
        Figure(Column("highest", role=DETAIL), lambda row: end(row, row.highest)),
        Figure(
            Column("windows' error"),
            lambda row: f"±{percent(row.typical.off_share)}" if row.typical else None,
        ),
        Figure(
            Column("common window s", ("common", "window s")),
            lambda row: f"{row.typical.common_s:.4f}" if row.typical else None,
        ),
        Figure(Column("clocks within"), lambda row: duration(row.typical.error_ns) if row.typical else None),
    )
    return table_of(rows, figures, leaving=("trials", "lowest", "highest"))


def _not_in_total(rows: list[Joint]) -> Iterator[str]:
    """Yield who is in no total, each reason once."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        for without in row.without.items():
            counts[without] = counts.get(without, 0) + 1
    for (name, why), cases in counts.items():
        where = "" if cases == len(rows) else f" of {plural(cases, 'case')}"
        yield f"Not in the total{where}: {clean(name) or '?'}: {shortened(why, 200)}."


# The cases: the best, the median and the worst host of each, and what that says.


def case_blocks(rows: CaseTable) -> tuple[Lines, Table]:
    """Return what is shown of cases that share a table."""
    units = rate_units_of(rows[0].case)
    said = [f"{rows[0].work}."]
    durability = next((dict(row.terms).get("durability") for row in rows if row.comparable), None)
    if durability:
        said.append(f"Compared: hosts with {durability}.")
    without = [figure for row in rows for figure in row.without]
    if without:
        hosts = plural(len({figure.host.digest for figure in without}), "host")
        said.append(f"Without a figure: {plural(len(without), 'case')} on {hosts}.")
    names: tuple[Figure[CaseRow], ...] = case_figures(lambda row: row.case)
    if not experiment_of(rows[0].case).sweeps:
        names = (
            Figure(Column("case", align="left", role=NAME), lambda row: shortened(case_label(row.case), 30)),
        )
    figures: tuple[Figure[CaseRow], ...] = (
        *names,
        Figure(Column("hosts"), lambda row: whole_cell(len(row.comparable))),
        Figure(
            Column("not comparable", ("not com-", "parable")),
            lambda row: whole_cell(len(row.apart)) if row.apart else None,
        ),
        Figure(Column(f"best, {units} per second", ("best", "per s")), _of("best", _rate)),
        Figure(Column("best host", align="left"), _of("best", _host)),
        Figure(Column("median", ("median", "per s")), _of("median", _rate)),
        Figure(Column("worst", ("worst", "per s")), _of("worst", _rate)),
        Figure(Column("worst host", align="left"), _of("worst", _host)),
    )
    return Lines(tuple(said)), table_of(rows, figures, leaving=("best host",))


def _of(which: str, cell: Callable[[Reached], str | None]) -> Callable[[CaseRow], str | None]:
    return lambda row: cell(getattr(row, which)) if row.comparable else None


def _rate(figure: Reached) -> str | None:
    return count_cell(figure.rate)


def _host(figure: Reached) -> str | None:
    return shortened(figure.host.name, 14)


def fleet_findings(fleet: Fleet) -> Iterator[Block]:
    """Yield what the columns mean, and the sentences."""
    if fleet.tables:
        yield Note(
            "best, median and worst: figures of single hosts, each the median of its trials, never pooled. "
            "With an even number of hosts, the median host is the lower of the two in the middle."
        )
    elif len(fleet.hosts) > 1:
        yield Paragraph("The hosts have no case in common.")
    else:
        yield Paragraph("There is only one host. Use sqlstress report to show its figures.")
    if found := tuple(map(phrase, conclude(fleet))):
        yield Bullets(found)
