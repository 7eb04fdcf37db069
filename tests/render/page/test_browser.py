"""Tests of the page in a real Chromium: it draws, asks nobody for anything, and runs nothing of a report."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from sqlstress.render.page.document import report_html
from sqlstress.report import Report
from tests.ab_report import ab_report, around
from tests.browser import Page, find_chromium, running
from tests.cycles_report import cycles_report
from tests.example_keys import keys_report
from tests.example_report import example_report
from tests.render.hostile import hostile_report
from tests.render.variants import beside_report, classic_report
from tests.rows import thorough

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

PLOTS = "document.querySelectorAll('[data-plot]').length"
DRAWN = "[...document.querySelectorAll('.canvas')].filter(one => one.querySelector('svg.main-svg')).length"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
INK = "getComputedStyle(document.querySelector('.canvas .xtitle')).fill"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests here that a worker runs."""
    assert CHROMIUM
    with running(CHROMIUM) as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that knows nothing of those before."""
    opened = Page(browser)
    yield opened
    opened.close()


def saved(folder: Path, *reports: Report) -> Path:
    path = folder / "report.html"
    path.write_text(report_html(*reports), encoding="utf-8")
    return path


def check(page: Page, path: Path) -> None:
    """Check that a page has complained of nothing and asked for nothing but itself."""
    assert page.errors == []
    assert page.requests == [path.resolve().as_uri()]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(example_report, 5, id="kv"),
        thorough(keys_report, 2, id="keys"),
        thorough(beside_report, 6, id="wal"),
    ],
)
def test_every_plot_is_drawn_with_no_error_and_no_request(
    page: Page, tmp_path: Path, make: Callable[[], Report], expected: int
) -> None:
    path = saved(tmp_path, make())
    page.open(path)
    assert page.ask(PLOTS) == page.ask(DRAWN) == expected
    check(page, path)


@pytest.mark.thorough
def test_an_ab_test_and_reports_side_by_side_are_shown_too(page: Page, tmp_path: Path) -> None:
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


@pytest.mark.thorough
def test_the_figures_that_are_drawn_and_those_in_the_table_are_the_reports(
    page: Page, tmp_path: Path
) -> None:
    report = example_report()
    page.open(saved(tmp_path, report))
    traces = page.ask(
        "document.querySelector('[data-plot=\"0\"] .canvas').data.map(one => [one.mode, one.y])"
    )
    drawn = [value for mode, values in traces if "markers" in mode for value in values]
    rates = [run.median_tps() for run in report.runs]
    assert drawn == rates
    cells = page.ask("[...document.querySelectorAll('table td')].map(one => one.innerText)")
    columns = page.ask("[...document.querySelectorAll('table th')].map(one => one.innerText)")
    place = columns.index("TPS total")
    assert cells[place :: len(columns)] == [f"{rate:,.0f}" for rate in rates]


@pytest.mark.thorough
def test_another_view_is_drawn_when_it_is_chosen(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()))
    names = page.ask(
        "(() => { const figure = document.querySelector('[data-plot=\"2\"]');"
        " const select = figure.querySelector('select');"
        " const values = () => JSON.stringify(figure.querySelector('.canvas').data[0].y);"
        " const before = values(); select.value = '0'; select.dispatchEvent(new Event('change'));"
        " return [before, values(), select.options[0].text]; })()"
    )
    assert names[0] != names[1]
    assert names[2] == "get, 1 file"
    assert page.errors == []


@pytest.mark.thorough
def test_no_button_of_a_plot_sends_it_anywhere(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()))
    buttons = page.ask("[...document.querySelectorAll('.modebar-btn')].map(one => one.dataset.title)")
    assert set(buttons) == {"Download plot as a PNG", "Zoom", "Pan", "Reset axes"}


@pytest.mark.thorough
@pytest.mark.parametrize("width", [400, 320, 1280])
def test_nothing_but_wide_tables_is_wider_than_the_screen(page: Page, tmp_path: Path, width: int) -> None:
    page.open(saved(tmp_path, example_report()), width)
    assert page.ask("document.documentElement.clientWidth") == width
    assert page.ask(OVERFLOW) == 0
    assert page.errors == []


@pytest.mark.thorough
def test_the_plots_take_the_colours_of_the_dark_at_once(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()))
    light = page.ask(INK)
    page.prefer(dark=True)
    waiting = "const look = () => changed() ? done(true) : setTimeout(look, 20); look();"
    assert page.ask(f"new Promise(done => {{ const changed = () => {INK} != '{light}'; {waiting} }})")
    page.prefer(dark=False)


@pytest.mark.thorough
def test_it_is_printed_in_light_colours_and_as_wide_as_paper(page: Page, tmp_path: Path) -> None:
    page.open(saved(tmp_path, example_report()), dark=True)
    page.ask(
        "window.seen = []; addEventListener('beforeprint', () => {"
        " const { width, font } = document.querySelector('.canvas').layout; seen.push(width, font.color); })"
    )
    assert page.printed().startswith(b"%PDF")
    assert page.ask("seen") == [660, "#1b1f24"]
    assert page.ask("document.querySelector('.canvas').layout.font.color") == "#e6e9ed"
    assert page.errors == []


@pytest.mark.thorough
def test_nothing_of_a_hostile_report_runs(page: Page, tmp_path: Path) -> None:
    path = saved(tmp_path, hostile_report(), hostile_report())
    page.open(path)
    assert page.ask("document.title").startswith("sqlstress ")
    assert page.ask("document.querySelectorAll('img, iframe, object, a').length") == 0
    assert page.ask(PLOTS) == page.ask(DRAWN) > 5
    assert page.ask(OVERFLOW) == 0
    check(page, path)


@pytest.mark.thorough
def test_a_script_that_got_into_the_page_would_not_run_and_nothing_could_be_loaded(
    page: Page, tmp_path: Path
) -> None:
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
    assert page.ask("document.title").startswith("sqlstress ")
    assert sum("Content Security Policy" in error for error in page.errors) >= 3
    assert len(page.requests) == 3
