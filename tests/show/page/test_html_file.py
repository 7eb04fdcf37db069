"""Tests of the page as a text: its contents, and that no text of a report becomes markup."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import sqlstress.show.page as page_room
from sqlstress.report import read
from sqlstress.show.page.html_file import SCRIPTS, report_html, script
from tests.ab_report import ab_report, around
from tests.example_keys import keys_report
from tests.example_report import example_report, failed_report
from tests.published import FOLDER as PUBLISHED
from tests.published import REPORTS
from tests.show.hostile import HUGE, hostile_report
from tests.show.variants import beside_report, classic_report, with_case

FOLDER_OF_REPORTS = PUBLISHED.parent
FOLDER = Path(page_room.__file__).parent
TAGS = frozenset([
    "html", "head", "meta", "link", "title", "style", "body", "main", "article", "header", "section", "h1",
    "h2", "h3", "p", "div", "strong", "span", "ul", "li", "code", "pre", "figure", "figcaption",
    "select", "option", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd",
    "button", "script",
])  # fmt: skip
ATTRIBUTES = frozenset([
    "lang", "charset", "http-equiv", "content", "name", "rel", "href", "class", "tabindex", "scope",
    "data-plot", "data-names", "title", "value", "selected", "aria-label", "type", "id", "hidden",
])  # fmt: skip


class Reader(HTMLParser):
    """Parses a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str | None]] = {}
        self.scripts: list[str] = []
        self._inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value)
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data


def plots(page: str) -> list[list[dict[str, Any]]]:
    """Return the plots in the data of the script."""
    found: list[list[dict[str, Any]]] = json.loads(Reader(page).scripts[0], parse_constant=pytest.fail)
    return found


def hashed(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def test_only_our_script_may_run() -> None:
    page = report_html(example_report())
    data, *scripts = Reader(page).scripts
    assert scripts == [script()]
    (policy,) = (value for value in Reader(page).attributes["content"] if value and "script-src" in value)
    allowed = re.search(r"script-src ([^;]*);", policy)
    assert allowed
    assert allowed[1].split() == [f"'{hashed(script)}'" for script in scripts]
    assert "default-src 'none'" in policy
    assert isinstance(json.loads(data), list)


def test_plot_has_the_tps_of_the_report() -> None:
    report = example_report()
    (throughput,) = plots(report_html(report))[0]
    measured = [trace for trace in throughput["data"] if "lines+markers" in trace["mode"]]
    rates = [run.median_tps() for run in report.runs]
    assert [value for trace in measured for value in trace["y"]] == rates
    assert [trace["name"] for trace in measured] == ["1 bucket", "20 buckets"]
    ideals = [trace["y"] for trace in throughput["data"] if trace["mode"] == "lines"]
    assert ideals == [[(rates[place] or 0) * count for count in (1, 2, 4, 8)] for place in (0, 4)]


def test_figure_of_an_unknown_number_of_processes_is_not_plotted() -> None:
    report = example_report()
    first = replace(report.runs[0], case=replace(report.runs[0].case, concurrency=0))
    page = report_html(replace(report, runs=(first, *report.runs[1:])))
    assert "TPS" in page and report_html(replace(report, runs=(first,)))


def test_histogram_has_every_operation_and_shares_are_speeds() -> None:
    report = example_report()
    drawn = plots(report_html(report))
    assert len(drawn[3]) == len(report.runs)
    assert all(sum(trace["y"]) == pytest.approx(100) for view in drawn[3] for trace in view["data"])
    shares = [value for trace in drawn[1][0]["data"] for value in trace["y"]]
    trials = [run.trials[0] for run in report.runs]
    assert shares == pytest.approx(
        [
            worker.transactions * len(trial.workers) / trial.transactions
            for trial in trials
            for worker in trial.workers
        ]
    )
    run = next(run for run in report.runs if run.case.concurrency == 2)
    workers = tuple(
        replace(worker, transactions=1000, seconds=seconds)
        for worker, seconds in zip(run.trials[0].workers, (1.0, 4.0), strict=True)
    )
    trial = replace(run.trials[0], workers=workers, transactions=2000)
    (view,) = plots(report_html(replace(report, runs=(replace(run, trials=(trial,)),))))[0]
    assert [value for trace in view["data"] for value in trace["y"]] == [1.6, 0.4]


def test_sizes_of_the_wals_are_the_recorded_ones() -> None:
    report = beside_report()
    (view,) = plots(report_html(report))[-1]
    for run, trace in zip(report.runs, view["data"], strict=True):
        series = next(values for values in run.trials[0].series if values.name == "WAL size")
        assert trace["y"] == [value / 1e6 for value in series.values]


def test_pairs_of_an_ab_test_have_slices_and_interval_of_each_look() -> None:
    ratios = around(0.97, 30, 0.1)
    report = ab_report([ratios])
    (view,) = plots(report_html(report))[0]
    pairs, estimate = view["data"]
    assert pairs["y"] == pytest.approx(ratios)
    assert report.ab
    (look,), bars = report.ab.looks, estimate["error_y"]
    assert estimate["y"] == [look.ratio]
    ends = look.ratio - bars["arrayminus"][0], look.ratio + bars["array"][0]
    assert (look.worst, look.bound) == pytest.approx(ends)
    # A test that was judged by its estimate is drawn with its interval of 95%.
    old = replace(report, ab=replace(report.ab, looks=(replace(look, worst=None),)))
    (view,) = plots(report_html(old))[0]
    assert look.low is not None
    assert view["data"][1]["error_y"]["arrayminus"] == pytest.approx([look.ratio - look.low])


def test_ratios_of_any_range_have_readable_ticks() -> None:
    def axis(ratio: float) -> dict[str, Any]:
        (view,) = plots(report_html(ab_report([around(ratio, 10)])))[0]
        found: dict[str, Any] = view["layout"]["yaxis"]
        return found

    near = axis(1.02)["tickvals"]
    assert 1.0 in near and near[0] <= 0.9 and near[-1] >= 1.02 and len(near) < 12
    assert {round(other - previous, 3) for previous, other in pairwise(near)} == {0.02}
    assert axis(7.0)["tickvals"] == pytest.approx([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50])
    assert "tickvals" not in axis(1e5)


@pytest.mark.parametrize(("ratio", "kind", "value"), [(0.5, "failed", "FAIL"), (1.5, "ok", "pass")])
def test_verdict_of_an_ab_test_is_at_the_top_and_above_the_plot(ratio: float, kind: str, value: str) -> None:
    before = "no drop of more than 10%. " * (value == "pass")
    faster = "faster" if value == "pass" else "slower"
    page = report_html(ab_report([around(ratio, 10)]))
    tile = page.index(f'<div class="tile {kind}"><strong>{value}</strong><span>B is {faster}: TPS ')
    assert (
        tile
        < page.index(f'<p class="verdict">{value.upper()}: {before}B is {faster}: TPS')
        < page.index("<figure")
    )


@pytest.mark.parametrize("path", sorted(FOLDER_OF_REPORTS.glob("*.json")), ids=lambda path: path.stem)
def test_page_is_small_enough_for_mail_and_frames_have_few_lines(path: Path) -> None:
    page = report_html(read(path))
    assert len(page.encode()) < 500_000
    for view in (view for plot in plots(page) for view in plot):
        if all(trace["type"] == "scatter" and trace["mode"] == "lines" for trace in view["data"]):
            assert len({trace["name"] for trace in view["data"]}) <= 4 or "multiples" in view["layout"]


def headings(page: str) -> tuple[str, list[str]]:
    """Return the title of a page, and its headings of the first order."""
    (title,) = re.findall(r"<title>(.*?)</title>", page)
    return title, re.findall(r"<h1>(.*?)</h1>", page)


def test_title_of_several_reports_is_their_comparison() -> None:
    report = read(FOLDER_OF_REPORTS / "linux-1-and-20-files.json")
    ours = (report, replace(report, runs=tuple(run for run in report.runs if run.case.buckets == 20)))
    title, (common, a, b) = headings(report_html(*ours))
    assert title == common and title.startswith("B showed ")
    assert a.startswith("Report A: ") and b.startswith("Report B: ")
    assert all(": Highest: " in heading for heading in (a, b))
    page = report_html(classic_report(), classic_report())
    assert page.index("Ratios are relative to A") < page.index("<figure") < page.index("<h1>Report A: ")
    assert page.count("<article>") == 2
    apart = report_html(example_report(), keys_report())
    assert "Ratios are relative to A" not in apart and "<h1>Report 2: " in apart


def folded(page: str) -> list[str]:
    """Return the summaries of the folded tables of a page."""
    return re.findall(r"<details><summary>(.*?) <span", page)


def test_long_tables_are_folded_and_named_by_their_columns() -> None:
    page = report_html(REPORTS["000-methods"])
    (cells,) = folded(page)
    assert cells.startswith("Table: ")
    assert "<table>" not in re.sub(r"<details>.*?</details>", "", page, flags=re.S)
    open_ones = report_html(read(FOLDER_OF_REPORTS / "linux-1-and-20-files.json"))
    assert "<details>" not in open_ones and "<table>" in open_ones
    report = example_report()
    many = [
        replace(run, case=replace(run.case, buckets=run.case.buckets + more))
        for more in range(0, 200, 20)
        for run in report.runs
    ]
    (told,) = folded(report_html(replace(report, runs=tuple(many))))
    assert told.startswith("Table: TPS total, ")


def test_lines_that_are_too_many_for_one_frame_get_a_frame_each() -> None:
    views = plots(report_html(read(FOLDER_OF_REPORTS / "linux-cycles.json")))[0]
    assert views[0]["layout"]["multiples"]
    few = plots(report_html(example_report()))[4][0]
    assert len(few["data"]) == 4 and "multiples" not in few["layout"]


def test_last_tenth_of_a_second_has_the_width_of_the_others() -> None:
    (trace, *_) = plots(report_html(example_report()))[4][0]["data"]
    bins = example_report().runs[0].trials[0].workers[0].bins
    assert len(trace["x"]) == len(trace["y"]) == len(bins) + 1
    assert trace["x"][-1] == pytest.approx(0.1 * len(bins)) and trace["y"][-1] == trace["y"][-2]


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour like "#rrggbb", according to WCAG 2."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_text_has_contrast_to_its_background(scheme: int) -> None:
    text = (FOLDER / "page.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"(--[\w-]+): (#\w{6});", text.split("color-scheme: dark")[scheme]))
    pairs = [(ink, paper) for ink in ("ink", "muted", "good", "bad", "warn") for paper in ("paper", "card")]
    pairs += [("ink", "warn-paper"), ("bad", "bad-paper")]
    for ink, paper in pairs:
        dim, bright = sorted(luminance(colours[f"--{name}"]) for name in (ink, paper))
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, (ink, paper)


def test_page_has_the_command_and_its_seed() -> None:
    (line,) = re.findall(r"<pre[^>]*><code>(.*)</code></pre>", report_html(example_report()))
    words = ["sqlstress", "--concurrency", "1,2,4,8", "--buckets", "1,20", "--seed", "7"]
    assert line == " ".join(f"<span>{word}</span>" for word in words)
    unseeded = ab_report([around(1.0, 10)])
    assert "add <code>--seed</code> 7 to get the same keys" in report_html(unseeded)


def test_wrong_data_is_the_first_thing_that_is_seen() -> None:
    page = report_html(failed_report())
    title, _ = headings(page)
    assert title.startswith("FAILED at ") and page.index("FAILED</strong>") < page.index("<section>")
    assert "worker 2&#x27;s write number 318" in page


def test_published_report_is_not_called_measured() -> None:
    top = report_html(REPORTS["004-cycles"]).partition("<section>")[0]
    assert "<strong>4</strong><span>cases published</span>" in top and "measured</span>" not in top


def plots_of_comparison(name: str, *others: str) -> list[list[dict[str, Any]]]:
    """Return the plots of a published report together with our real reports."""
    ours = [read(FOLDER_OF_REPORTS / f"{other}.json") for other in others]
    page = report_html(REPORTS[name], *ours)
    count = page.partition("<article>")[0].count("<figure")
    return plots(page)[:count]


def test_cases_of_keys_have_rates_and_ratios_within_their_report() -> None:
    ((rates, relative),) = plots_of_comparison("002-keys", "linux-keys")
    published, ours = rates["data"]
    assert (published["name"], ours["name"]) == ("A published", "B Linux")
    place = ours["y"].index("no-key, ulid")
    assert published["x"][place] == 20_000 and ours["x"][place] == pytest.approx(37_462, rel=1e-4)
    assert relative["data"][0]["x"][place] == pytest.approx(20_000 / 10_204, rel=1e-4)
    assert [trace["x"][0] for trace in relative["data"]] == [1, 1]


def test_relative_figures_come_first_if_rates_are_not_comparable() -> None:
    barred = report_html(REPORTS["002-keys"], read(FOLDER_OF_REPORTS / "linux-keys.json"))
    assert '<option value="1" selected' in barred.partition("<article>")[0]
    same = report_html(keys_report(), keys_report())
    assert '<option value="0" selected' in same.partition("<article>")[0]


def test_page_with_wrong_data_names_its_rates_and_the_interruption() -> None:
    report = with_case(failed_report(), repeat=2)
    page, runs = report_html(report), report.runs
    assert "transactions per second, the highest median where the data is right: " in page
    assert f"<strong>{len(runs)} of {2 * len(runs)}</strong><span>trials made</span>" in page
    assert "Throughput is plotted only for cases whose data is right." in page
    assert "data is right" not in report_html(example_report())


def test_warning_precedes_the_plots_and_plots_precede_the_table() -> None:
    page = report_html(REPORTS["002-keys"], read(FOLDER_OF_REPORTS / "linux-keys.json"))
    barred = page.index('<p class="warning">NOT COMPARABLE with A: B.')
    assert barred < page.index("Do not compare their speed") < page.index("<figure") < page.index("A rows/s")


def test_methods_are_compared_at_their_largest_common_scale() -> None:
    (views,) = plots_of_comparison("000-methods", "linux-methods")
    inserting = views[0]
    assert len(views) == 6 and len(set(inserting["data"][0]["y"])) == len(inserting["data"][0]["y"])
    place = inserting["data"][0]["y"].index("JSON, peewee, 10,000")
    assert inserting["data"][0]["x"][place] == pytest.approx(365_874.2)
    assert all(None not in trace["x"] for view in views for trace in view["data"])


def test_totals_of_cycles_are_drawn_for_all_reports() -> None:
    (totals,) = plots_of_comparison("004-cycles", "linux-cycles", "linux-cycles-normal")
    assert [trace["name"] for trace in totals[0]["data"]] == ["A published", "B Linux", "C Linux"]


def test_hostile_texts_become_no_markup_and_stay_short() -> None:
    page = report_html(hostile_report(), hostile_report())
    check_markup(page)
    assert len(page) < 1_000_000 < 8 * len(HUGE)
    traces = [trace for plot in plots(page) for view in plot for trace in view["data"]]
    assert not any("%{" in str(trace.get("name")) for trace in traces)


def check_markup(page: str) -> None:
    """Check that a page has only our scripts, elements and attributes."""
    reader = Reader(page)
    assert len(reader.scripts) == 2
    json.loads(reader.scripts[0], parse_constant=pytest.fail)
    assert reader.tags <= TAGS
    assert set(reader.attributes) <= ATTRIBUTES
    assert reader.attributes["href"] == {"data:,"}


def test_page_is_written_without_sqlite_and_with_all_script_files() -> None:
    assert sorted(SCRIPTS) == sorted(path.name for path in FOLDER.glob("*.js"))
    code = (
        "import sys, sqlstress.cli.reports, sqlstress.cli.outputs, sqlstress.show.page.html_file as page\n"
        "assert not any(name in sys.modules for name in ('sqlite3', 'apsw', 'sqlstress.engine'))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
