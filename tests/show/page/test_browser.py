"""Tests of the page in a real Chromium: it draws, sends no requests, and runs no code of a report."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from sqlstress.report import Report, read
from sqlstress.show.page.html_file import report_html
from tests.ab_report import ab_report, around
from tests.browser import Page, find_chromium, running
from tests.cycles_report import cycles_report
from tests.example_report import example_report
from tests.show.hostile import hostile_report
from tests.show.variants import beside_report, classic_report, with_case

if TYPE_CHECKING:
    from playwright.sync_api import Browser

KEPT = Path(__file__).parents[3] / "reports"
CHROMIUM = find_chromium()
# All are for CI: starting a browser takes four seconds of CPU time, even for a small test.
pytestmark = [pytest.mark.thorough, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]

PLOTS = "document.querySelectorAll('[data-plot]').length"
PLOT = '[data-plot="{}"]'
DRAWN = (
    "[...document.querySelectorAll('.canvas')].filter(one => one.querySelector("
    "'svg.chart .line, svg.chart .mark, svg.chart .bar')).length"
)
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
INK = "getComputedStyle(document.querySelector('.canvas [data-x]')).fill"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for all tests of this file in one test process."""
    assert CHROMIUM
    with running(CHROMIUM) as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page without state of earlier pages."""
    opened = Page(browser)
    yield opened
    opened.close()


def saved(folder: Path, *reports: Report) -> Path:
    path = folder / "report.html"
    path.write_text(report_html(*reports), encoding="utf-8")
    return path


def title_of(path: Path) -> str:
    """Return the title that was written, as the browser normalizes it."""
    (title,) = re.findall("<title>(.*?)</title>", path.read_text(encoding="utf-8"))
    return unescape(title)


def check(page: Page, path: Path) -> None:
    """Check that a page has logged no errors and requested only itself."""
    assert page.errors == []
    assert page.requests == [path.resolve().as_uri()]


@pytest.mark.parametrize(
    ("make", "expected"), [pytest.param(example_report, 5, id="kv"), pytest.param(beside_report, 6, id="wal")]
)
def test_every_plot_is_drawn_with_no_error_and_no_request(
    page: Page, tmp_path: Path, make: Callable[[], Report], expected: int
) -> None:
    path = saved(tmp_path, make())
    page.open(path)
    assert page.ask(PLOTS) == page.ask(DRAWN) == expected
    check(page, path)


def test_ab_test_and_reports_side_by_side_are_shown_too(page: Page, tmp_path: Path) -> None:
    for reports in (
        (ab_report([around(1.0, 10)]),),
        (classic_report(), example_report(), classic_report()),
        (cycles_report(), cycles_report()),
    ):
        page.requests.clear()
        path = saved(tmp_path, *reports)
        page.open(path)
        assert page.ask(PLOTS) == page.ask(DRAWN)
        check(page, path)


def drawn_values(page: Page, plot: int) -> list[float]:
    """Return the values at the heights of a plot's round marks, by the ticks of its linear axis."""
    (low, at_low), (high, at_high) = page.ask(
        f"(() => {{ const ticks = [...document.querySelectorAll('[data-plot=\"{plot}\"] [data-y]')]"
        " .map(one => [Number(one.dataset.y), Number(one.getAttribute('y')) - 4]);"
        " return [ticks[0], ticks.at(-1)]; })()"
    )
    heights: list[float] = page.ask(
        f"[...document.querySelectorAll('[data-plot=\"{plot}\"] circle.mark')]"
        " .map(one => Number(one.getAttribute('cy')))"
    )
    return [low + (height - at_low) / (at_high - at_low) * (high - low) for height in heights]


def test_plots_and_table_have_the_figures_of_the_report(page: Page, tmp_path: Path) -> None:
    report = example_report()
    page.open(saved(tmp_path, report))
    rates = [run.median_tps() for run in report.runs]
    assert drawn_values(page, 0) == pytest.approx(rates, rel=0.01)
    cells = page.ask("[...document.querySelectorAll('table td')].map(one => one.innerText)")
    columns = page.ask("[...document.querySelectorAll('table th')].map(one => one.innerText)")
    place = columns.index("TPS total")
    assert cells[place :: len(columns)] == [f"{rate:,.0f}" for rate in rates]


def test_another_view_is_drawn_when_it_is_chosen(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()))
    names = page.ask(
        "(() => { const figure = document.querySelector('[data-plot=\"2\"]');"
        " const select = figure.querySelector('select');"
        " const values = () => figure.querySelector('.line').getAttribute('d');"
        " const before = values(); select.value = '0'; select.dispatchEvent(new Event('change'));"
        " return [before, values(), select.options[0].text]; })()"
    )
    assert names[0] != names[1]
    assert names[2] == "get, 1 bucket"
    assert page.errors == []


def test_ticks_of_a_logarithm_are_powers_of_ten(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()))
    for plot, axis in ((2, "y"), (3, "x")):
        found = page.ask(
            f"[...document.querySelectorAll('{PLOT.format(plot)} [data-{axis}]')].map(one => one.textContent)"
        )
        assert len(found) >= 2
        assert all(log10(float(tick.replace(",", ""))).is_integer() for tick in found)


def test_axis_of_one_count_has_a_tick_there_and_nowhere_else(page: Page, tmp_path: Path) -> None:
    report = example_report()
    only = tuple(run for run in report.runs if run.case.concurrency == 4)
    page.open(saved(tmp_path, replace(report, runs=only)))
    shares = "[...document.querySelectorAll('figure')].find(one => one.innerText.startsWith('Share of each'))"
    assert page.ask(f"[...{shares}.querySelectorAll('[data-x]')].map(one => one.textContent)") == ["4"]


def test_mark_shows_its_figure_under_the_pointer(page: Page, tmp_path: Path) -> None:
    report = example_report()
    page.open(saved(tmp_path, report))
    page.point(f"{PLOT.format(0)} circle", 2)
    told = page.ask(f"document.querySelector('{PLOT.format(0)} .tip').innerText")
    assert told == f"4 processes on 1 bucket: {report.runs[2].median_tps():,.0f} transactions/s"


def test_dragged_part_of_a_plot_is_enlarged_until_reset(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()))
    plot = PLOT.format(0)
    ticks = f"[...document.querySelectorAll('{plot} [data-y]')].map(one => one.textContent)"
    button = f"document.querySelector('{plot} figcaption button').hidden"
    whole = page.ask(ticks)
    page.drag(f"{plot} svg.chart", (0.4, 0.3), (0.6, 0.5))
    assert page.ask(ticks) != whole and page.ask(button) is False
    page.click(f"{plot} figcaption button")
    assert page.ask(ticks) == whole and page.ask(button) is True
    page.drag(f"{plot} svg.chart", (0.4, 0.3), (0.6, 0.5))
    page.click(f"{plot} svg.chart", 2)
    assert page.ask(ticks) == whole


def test_click_on_a_name_hides_and_shows_its_line_and_ideal(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()))
    lines = f"document.querySelectorAll('{PLOT.format(0)} .line').length"
    before = page.ask(lines)
    page.click(f"{PLOT.format(0)} .key")
    assert page.ask(lines) == before - 2
    page.click(f"{PLOT.format(0)} .key")
    assert page.ask(lines) == before


def test_no_two_names_of_a_legend_have_the_same_sample(page: Page, tmp_path: Path) -> None:
    report = example_report()
    both = (*report.runs, *with_case(report, driver="apsw").runs)
    page.open(saved(tmp_path, replace(report, runs=both, planned=len(both))))
    legends = page.ask(
        "[...document.querySelectorAll('svg')].map((svg) => [...svg.querySelectorAll('g.key')].map((key) => {"
        "const {fill, stroke, strokeDasharray} = getComputedStyle(key.children[1]);"
        "return [fill, stroke, strokeDasharray].join(); }))"
    )
    assert any(len(samples) > 1 for samples in legends)
    assert any("px" in sample for samples in legends for sample in samples)  # of a dashed line
    assert [samples for samples in legends if len({*samples}) < len(samples)] == []


def test_chart_is_saved_as_a_complete_picture(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()), dark=True)
    page.point(f"{PLOT.format(0)} h3")
    picture = page.saved_by(f"{PLOT.format(0)} figcaption button:last-of-type")
    root = ElementTree.fromstring(picture)
    assert root.tag.endswith("svg") and "<title>Throughput</title>" in picture
    assert "var(" not in picture and "#e6e9ed" in picture
    assert "1 bucket" in picture and page.errors == []


def test_each_of_many_lines_has_a_frame_with_the_others_faint(page: Page, tmp_path: Path) -> None:
    report = read(KEPT / "linux-1-and-20-files.json")
    page.open(saved(tmp_path, report))
    plot = PLOT.format(4)
    frames = page.ask(
        f"[...document.querySelectorAll('{plot} svg svg')].map(one => [...one.querySelectorAll('.line')]"
        ".map(line => line.style.stroke))"
    )
    assert len(frames) == 8
    assert all(len(lines) == 8 and lines.count("var(--faint)") == 7 for lines in frames)
    assert page.ask(f"document.querySelectorAll('{plot} .key').length") == 0


def test_table_on_a_phone_keeps_its_names_in_sight(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, read(KEPT / "linux-1-and-20-files.json")), 390)
    page.ask("document.querySelector('.table').scrollLeft = 1000")
    places = page.ask(
        "[...document.querySelectorAll('tbody tr:last-child td')].map(one => one.getBoundingClientRect().x)"
    )
    assert 0 <= places[0] < places[1] < 120
    assert page.ask("document.querySelector('thead th:last-child').getBoundingClientRect().right") <= 390


def test_long_names_scroll_away_to_leave_space_for_figures(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, read(KEPT / "linux-keys.json")), 260)
    assert page.ask("document.querySelector('.table').classList.contains('kept')") is False
    page.ask("document.querySelector('.table').scrollLeft = 1000")
    x, second = page.ask(
        "[...document.querySelectorAll('tbody tr:last-child td')].slice(0, 2)"
        ".map(one => one.getBoundingClientRect().x)"
    )
    assert second < 0 <= x


def test_plots_of_methods_on_a_phone_have_no_empty_space(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, read(KEPT / "published" / "000-methods.json")), 390)
    assert page.ask("document.documentElement.scrollHeight") < 5500
    assert page.ask(OVERFLOW) == 0
    page.click("summary")
    assert page.ask("document.querySelector('details table').getBoundingClientRect().height") > 50


def test_texts_have_two_columns_on_a_wide_screen(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()))
    begins = (
        "[...new Set([...document.querySelectorAll('section:first-of-type .said > p, .said li')]"
        ".map(one => Math.floor(one.getBoundingClientRect().x / 100)))]"
    )
    assert len(page.ask(begins)) == 2
    page.open(saved(tmp_path, example_report()), 390)
    assert len(page.ask(begins)) == 1


def test_no_button_of_a_plot_sends_it_anywhere(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()))
    buttons = page.ask("[...document.querySelectorAll('figure button')].map(one => one.textContent)")
    assert set(buttons) == {"Show all", "Save"}


@pytest.mark.parametrize("width", [400, 320, 1280])
def test_page_is_no_wider_than_the_screen_except_for_tables(page: Page, tmp_path: Path, width: int) -> None:
    page.open(saved(tmp_path, example_report()), width)
    assert page.ask("document.documentElement.clientWidth") == width
    assert page.ask(OVERFLOW) == 0
    assert page.errors == []


def test_plots_take_dark_colours_at_once(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()))
    light = page.ask(INK)
    page.prefer(dark=True)
    assert page.ask(INK) != light
    page.prefer(dark=False)


def test_page_is_printed_light_unfolded_and_as_wide_as_paper(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, read(KEPT / "linux-classic.json")), dark=True)
    # No page has plots and folded tables now.
    page.ask("document.body.insertAdjacentHTML('beforeend', '<details><summary>rows</summary></details>')")
    dark = page.ask(INK)
    page.ask(
        "window.seen = []; addEventListener('beforeprint', () => seen.push("
        "document.querySelector('.chart').getAttribute('width'),"
        " document.querySelectorAll('details[open]').length))"
    )
    assert page.printed().startswith(b"%PDF")
    assert page.ask("seen") == ["660", 1]
    assert page.ask("document.querySelector('.chart').getAttribute('width')") != "660"
    assert page.ask("document.querySelectorAll('details[open]').length") == 0
    page.on_paper(printed=True)
    assert page.ask(INK) == "rgb(27, 31, 36)" != dark
    page.on_paper(printed=False)
    assert page.errors == []


def test_hostile_report_runs_no_code(page: Page, tmp_path: Path) -> None:
    path = saved(tmp_path, hostile_report(), hostile_report())
    page.open(path)
    assert page.ask("document.title") == title_of(path)
    assert page.ask("document.querySelectorAll('img, iframe, object, a').length") == 0
    assert page.ask(PLOTS) == page.ask(DRAWN) > 5
    assert page.ask(OVERFLOW) == 0
    check(page, path)


def test_injected_script_does_not_run_and_loads_nothing(page: Page, tmp_path: Path) -> None:
    path = saved(tmp_path, example_report())
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        evil = (
            "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
            f"<img src='http://127.0.0.1:{server.getsockname()[1]}/x.png'>"
        )
        text = path.read_text(encoding="utf-8").replace("<main>", f"<main>{evil}")
        path.write_text(text, encoding="utf-8")
        page.open(path)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert page.ask("document.title") == title_of(path)
    assert sum("Content Security Policy" in error for error in page.errors) >= 3
    assert len(page.requests) == 3
