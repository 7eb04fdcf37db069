"""A fleet as a page: the map of its hosts, the spread of each case, and the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstress.analysis.fleet import Figure, Fleet, Row, conclude
from sqlstress.analysis.wording import plural
from sqlstress.experiment import face_of
from sqlstress.show.blocks import Bullets, Paragraph
from sqlstress.show.fleet_view import fleet_findings, fleet_heading, fleet_spreads, joint_blocks
from sqlstress.show.page.document import Plots, page, tables_of
from sqlstress.show.page.markup import element, said, text
from sqlstress.show.phrases import phrase
from sqlstress.show.plots import WIDE_RANGE, Plain, Plot, View, axis, name
from sqlstress.show.views import title_of
from sqlstress.statistics.units import NS_PER_MS

MOST_VIEWS = 40
"""Cases that can be chosen in a plot; the tables have them all."""


def fleet_html(fleet: Fleet) -> str:
    """Return a fleet as a page."""
    plots = Plots()
    title = title_of(next((phrase(one) for one in conclude(fleet)), plural(len(fleet.hosts), "host")))
    return page(title, [*_sections(fleet, title, plots)], plots)


def _sections(fleet: Fleet, title: str, plots: Plots) -> Iterator[str]:
    first, hosts, *others = fleet_heading(fleet)
    rest = [*fleet_findings(fleet)]
    bullets = [block for block in rest if isinstance(block, Bullets)]
    legend = [block for block in rest if isinstance(block, Paragraph)]
    yield element(
        "section",
        element("h1", text(title)),
        said((first, *bullets)),
        plots.place(_plots(fleet)),
        *tables_of((hosts, *others)),
    )
    if joint := [*joint_blocks(fleet)]:
        yield element("section", *tables_of(joint))
    for spread in fleet_spreads(fleet):
        yield element("section", said((spread.before,)), *tables_of((spread.figures,)))
    yield element("section", *tables_of(legend))


def _plots(fleet: Fleet) -> Iterator[Plot]:
    told = fleet.told()
    rows = [
        *told,
        *(row for table in fleet.tables for row in table.rows if row not in told and row.comparable),
    ]
    views = [view for row in rows[:MOST_VIEWS] if (view := _map(row))]
    if views:
        yield Plot(
            "Map of the hosts",
            "A mark is a host: what a sync costs there (to the right: more), and what it reached.",
            tuple(views),
            wide=True,
        )
    spreads = [_spread(row) for row in rows[:MOST_VIEWS]]
    if spreads:
        yield Plot(
            "Host by host",
            "Each host's own figure, the highest first: the median of its trials.",
            tuple(spreads),
            wide=True,
        )


_KINDS = (("comparable", "--c1"), ("not comparable with the others", "--c2"))


def _map(row: Row) -> View | None:
    """Return the hosts by what a sync costs and what they reached; None where no cost is known.

    Nor is there one of hosts that loaded a server: its disk is not theirs.
    """
    if row.case.server:
        return None
    data = []
    for (label, shade), figures in zip(_KINDS, (row.comparable, row.apart), strict=True):
        known = [one for one in figures if one.host.sync_ns]
        if known:
            data.append(_marks(label, shade, known))
    if not data:
        return None
    unit = f"{face_of(row.case).rate_counts} a second"
    layout = {
        "xaxis": axis("a sync, p50, ms", type="log"),
        "yaxis": axis(unit, **_scale([one.rate for one in row.figures()])),
        "showlegend": bool(row.apart),
    }
    return View(name(row.place), data, layout)


def _scale(rates: Sequence[float]) -> Plain:
    """Return an axis from zero on, or by the logarithm where hosts differ much."""
    return {"type": "log"} if max(rates) > WIDE_RANGE * min(rates) else {"rangemode": "tozero"}


def _marks(label: str, shade: str, figures: list[Figure]) -> Plain:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label,
        "x": [one.host.sync_ns[0] / NS_PER_MS for one in figures],
        "y": [one.rate for one in figures],
        "text": [name(one.host.name) for one in figures],
        "marker": {"color": shade, "size": 10, "opacity": 0.75},
        "hovertemplate": "%{text}: sync %{x:.3g} ms, %{y:,.4g}/s",
    }


def _spread(row: Row) -> View:
    """Return the hosts by their rank: so the spread of any number of hosts can be seen."""
    unit = f"{face_of(row.case).rate_counts} a second"
    data: list[Plain] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "comparable",
            "x": list(range(1, len(row.comparable) + 1)),
            "y": [one.rate for one in row.comparable],
            "text": [name(one.host.name) for one in row.comparable],
            "marker": {"color": "--c1", "size": 8, "opacity": 0.75},
            "hovertemplate": "%{text}: %{y:,.4g}/s",
        }
    ]
    layout = {"xaxis": axis("rank", whole=True), "yaxis": axis(unit, rangemode="tozero"), "showlegend": False}
    return View(name(row.place), data, layout)
