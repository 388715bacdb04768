"""The HTML report: its structure read with a parser, its behaviour in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from math import nan
from pathlib import Path

import pytest

from chromium import CHROMIUM, ask_page, dump_dom, print_page
from morocco.charts.curves import keep_extremes
from morocco.errors import DataError
from morocco.logs.log import LogPath
from morocco.logs.submission import load_submission
from morocco.report.build import build_report
from morocco.report.chart import render_chart
from morocco.report.html.page import render_page
from morocco.report.html.plots import Scale, trace
from morocco.report.model import Report
from morocco.report.options import ModelScores, ReportSettings
from sample_logs import INIT, LONG, write_failure, write_runs

SLOW = {INIT: (10.0, 10.1, 9.9), LONG: (90.0, 90.2, 89.9)}
FAST = {INIT: (10.0, 10.1, 9.9), LONG: (50.0, 50.2, 49.9)}
WISHES = ReportSettings(
    scores={"fast": ModelScores(0.4, {"parus": 0.4}), "slow": ModelScores(0.6)},
    baseline="slow",
    price=75.0,
)
HOSTILE = "<script>alert(1)</script>\"' &amp; http:"
VOID = {"meta", "img", "source"}


class Page(HTMLParser):
    """The elements of a page, each with its text and where it stands; fails on bad nesting."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = Element(tag, {name: value or "" for name, value in attrs}, list(self.open))
        self.elements.append(found)
        if tag not in VOID:
            self.open.append(found)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for found in self.open:
            found.text += data

    def find(self, tag: str, **attributes: str) -> list[Element]:
        return [e for e in self.elements if e.tag == tag and attributes.items() <= e.attrs.items()]


class Element:
    def __init__(self, tag: str, attrs: dict[str, str], around: list[Element]) -> None:
        self.tag, self.attrs, self.around, self.text = tag, attrs, around, ""

    def find(self, tag: str, page: Page) -> list[Element]:
        return [e for e in page.elements if e.tag == tag and self in e.around]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`fast` and `slow` on three tasks; of `slow` there is no rcb, and one run of terra failed."""
    logs = tmp_path_factory.mktemp("logs")
    for model, times in (("fast", FAST), ("slow", SLOW)):
        write_runs(logs / model, "parus", times)
        write_runs(logs / model, "terra", FAST)
    write_runs(logs / "fast", "rcb", SLOW)
    write_failure(logs / "slow", LogPath("terra", *LONG, 9))
    return logs


@pytest.fixture(scope="module")
def report(logs: Path) -> Report:
    return build_report(load_submission([logs]), WISHES)


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return render_page(report)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a model and a task with names that would like to be more than names."""
    logs = tmp_path_factory.mktemp("logs")
    name = HOSTILE.replace("/", "")
    for model in (name, "b\udcff"):
        write_runs(logs / model, name, FAST)
    settings = ReportSettings(scores={name: ModelScores(0.5)})
    return render_page(build_report(load_submission([logs]), settings))


# Structure


def test_the_page_says_what_it_is(page: Page) -> None:
    assert page.find("html")[0].attrs["lang"] == "en"
    assert page.find("title")[0].text == "morocco report: 2 models, 3 tasks"
    assert page.find("meta")[0].attrs == {"charset": "utf-8"}
    assert all(len(page.find(tag)) == 1 for tag in ("header", "nav", "main", "footer"))


def test_headings_begin_with_one_h1_and_leave_no_level_out(page: Page) -> None:
    levels = [int(e.tag[1]) for e in page.elements if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_table_has_a_caption_and_headers_with_a_scope(page: Page) -> None:
    tables = page.find("table")
    assert len(tables) > 4
    for table in tables:
        assert len(table.find("caption", page)) == 1
        assert {th.attrs.get("scope") for th in table.find("th", page)} == {"col", "row"}
        head, *rows = (len(row_cells(row, page)) for row in table.find("tr", page))
        assert rows
        assert set(rows) == {head}


def row_cells(row: Element, page: Page) -> list[Element]:
    return [e for e in page.elements if e.tag in ("th", "td") and e.around[-1] is row]


def test_what_scrolls_can_be_reached_by_the_keyboard_and_has_a_name(page: Page) -> None:
    ids = {e.attrs["id"] for e in page.elements if "id" in e.attrs}
    for table in page.find("table"):
        box = table.around[-1].attrs
        assert (box["tabindex"], box["role"]) == ("0", "region")
        assert box["aria-labelledby"] in ids


def test_every_picture_has_words(page: Page) -> None:
    pictures = page.find("img") + page.find("svg")
    assert len(pictures) > 6
    for picture in pictures:
        attrs = picture.attrs
        assert attrs.get("alt") or attrs.get("aria-label") or attrs.get("aria-hidden") == "true"


def test_the_words_of_the_chart_tell_what_it_shows(page: Page) -> None:
    (image,) = page.find("img")
    assert "fast: " in image.attrs["alt"]
    assert "2.00 GB GPU memory" in image.attrs["alt"]
    # The means of `slow` lack a task, so it does not compare.
    assert image.attrs["alt"].endswith("On the front: fast.")


def test_ids_are_unique_and_every_link_leads_somewhere(page: Page) -> None:
    ids = [e.attrs["id"] for e in page.elements if "id" in e.attrs]
    assert len(ids) == len(set(ids))
    links = [link.attrs["href"] for link in page.find("a")]
    assert len(links) > 20
    assert {link[0] for link in links} == {"#"}
    assert {link[1:] for link in links} <= set(ids)


def test_a_number_leads_to_the_runs_it_was_made_from(page: Page) -> None:
    (table,) = page.find("table", id="by-rps")
    (row,) = (row for row in table.find("tr", page) if row.text.strip().startswith("parus"))
    (link,) = (link for link in row.find("a", page) if link.text == "25.0")
    (figure,) = page.find("figure", id=link.attrs["href"][1:])
    (picture,) = (svg for svg in figure.find("svg", page) if "role" in svg.attrs)
    assert picture.attrs["aria-label"].startswith("slow, parus: CPU up to ")
    assert "2,000 records, batch 32: 3 runs, median 90.0 s" in figure.text


def test_nothing_outside_the_page_is_named(text: str, page: Page, hostile: str) -> None:
    assert not re.search(r"https?://|//[a-z]|url\(|@import", text)
    for attribute in ("src", "srcset"):
        urls = [e.attrs[attribute] for e in page.elements if attribute in e.attrs]
        assert all(url.startswith("data:image/svg+xml;base64,") for url in urls)
    assert not {e.tag for e in Page(hostile).elements} & {"link", "iframe", "object", "base"}


def test_the_policy_allows_the_style_and_the_script_and_nothing_else(page: Page) -> None:
    policy = page.find("meta", **{"http-equiv": "Content-Security-Policy"})[0].attrs["content"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for tag in ("style", "script"):
        (found,) = page.find(tag)
        digest = b64encode(sha256(found.text.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not any("style" in e.attrs for e in page.elements)
    assert not any(name.startswith("on") for e in page.elements for name in e.attrs)


# Content


def test_intervals_failures_and_reasons_stand_beside_the_speed(page: Page) -> None:
    (table,) = page.find("table", id="by-rps")
    assert re.search(r"50\.0\d\d\.\d – \d\d\.\d", table.text)
    assert "1 of 7 runs failed" in table.text
    missing = [e for e in table.find("small", page) if e.attrs.get("class") == "bad"]
    assert len(missing) == 2


def test_what_is_asked_for_has_a_section(page: Page, report: Report) -> None:
    sections = [section.attrs["id"] for section in page.find("section")]
    assert sections[0] == "models"
    assert {"tasks", "comparison", "runs"} <= set(sections)
    assert "gpus" not in sections
    assert "Price of an hour: 75." in page.find("header")[0].text
    (compared,) = page.find("table", id="comparison-1")
    assert "fast compared with slow" in compared.text
    assert "2.00x faster" in compared.text
    with_notes = Page(render_page(replace(report, notes=("first", "second"), warnings=())))
    assert [li.text for li in with_notes.find("section", id="notes")[0].find("li", with_notes)] == [
        "first",
        "second",
    ]
    assert not with_notes.find("section", id="warnings")


def test_long_lists_in_warnings_are_folded_away(report: Report) -> None:
    lines = "\n".join(["Measure again:", *(f"  log {i}" for i in range(9))])
    line = f"Too short: {', '.join(f'log {i}' for i in range(99))}"
    page = Page(render_page(replace(report, warnings=(lines, line, "a\n  b"))))
    assert [e.text for e in page.find("summary")] == [
        "Measure again (9 places)",
        "Too short (99 places)",
    ]


def test_one_model_has_its_metrics_side_by_side(report: Report) -> None:
    alone = replace(report, models=report.models[:1], comparison=None)
    page = Page(render_page(alone))
    (table,) = page.find("table", id="by-task")
    assert "Init time, s" in table.text


def test_without_scores_the_page_says_how_to_get_a_chart(report: Report) -> None:
    models = tuple(replace(model, score=None) for model in report.models)
    cells = {key: replace(cell, score=None) for key, cell in report.cells.items()}
    bare = replace(report, models=models, cells=cells)
    assert "--scores FILE" in render_page(bare)
    assert not Page(render_page(bare)).find("img")
    with pytest.raises(DataError, match="--scores"):
        render_chart(bare, ".png")


def test_names_are_text_whatever_they_hold(hostile: str) -> None:
    page = Page(hostile)
    assert len(page.find("script")) == 1
    assert HOSTILE.replace("/", "") in page.find("table", id="by-rps")[0].text
    assert "b?" in page.find("table", id="overview")[0].text
    labels = [svg.attrs.get("aria-label", "") for svg in page.find("svg")]
    assert any(label.startswith(HOSTILE.replace("/", "")) for label in labels)
    hostile.encode()


def test_the_same_report_gives_the_same_page(report: Report, text: str) -> None:
    assert render_page(report) == text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report.html", "report.md", "report.png"])
def test_only_a_page_needs_jinja(name: str, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "scores.json").write_text('{"fast": {"overall": 0.4}}')
    code = """
import sys
from morocco.cli import cli
cli(sys.argv[1:], standalone_mode=False)
print("jinja2" in sys.modules)
"""
    arguments = ["report", str(logs), "--scores", "scores.json", "-o", name]
    ran = [sys.executable, "-c", code, *arguments]
    printed = subprocess.run(ran, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [name, str(name == "report.html")]


def test_a_picture_tells_its_sizes_apart_however_many_there_are(tmp_path: Path) -> None:
    for number in range(8):
        sizes = {(100 + number, 1): (30.0,), (100 + number, 6): (30.0,)}
        write_runs(tmp_path / "model", f"task{number}", {INIT: (10.0,), **sizes})
    page = Page(render_page(build_report(load_submission([tmp_path]), ReportSettings())))
    for figure in page.find("figure"):
        paths = figure.find("path", page)
        keys = [path for path in paths if path.around[-1].attrs.get("class") == "key"]
        assert [path.attrs["class"] for path in keys] == ["init", "g0", "g1"]


# Lines


SCALE = Scale(across=1.0, up=10.0, floor=50)


def walk(path: str) -> Iterator[list[tuple[int, int]]]:
    """Yield the points of each piece of a path."""
    for piece in path.split("M")[1:]:
        start, _, steps = piece.replace("h", "l").partition("l")
        x, y = map(int, start.split())
        points = [(x, y)]
        numbers = [*map(int, steps.split())] if " " in steps else []
        for across, up in zip(numbers[::2], numbers[1::2], strict=True):
            x, y = x + across, y + up
            points.append((x, y))
        yield points


def test_a_line_goes_up_where_values_grow() -> None:
    assert list(walk(trace([(0, 1), (1, 2), (2, 4)], SCALE))) == [[(0, 40), (1, 30), (2, 10)]]


def test_a_gap_breaks_the_line_and_a_lone_reading_is_a_dot() -> None:
    path = trace([(0, 1), (1, nan), (2, 2), (3, nan), (4, 3)], SCALE)
    assert list(walk(path)) == [[(0, 40)], [(2, 30)], [(4, 20)]]
    assert path.count("h0") == 3


def test_nothing_but_gaps_is_no_line() -> None:
    assert trace([(0, nan), (1, nan)], SCALE) == ""
    assert trace([], SCALE) == ""


def test_level_stretches_take_one_step() -> None:
    assert trace([(time, 1.0) for time in range(100)], SCALE) == "M0 40l99 0"


def test_thinning_keeps_a_peak_of_one_reading() -> None:
    curve = [(i / 100, 4.0 if i == 555 else 1.0) for i in range(1000)]
    (points,) = walk(trace(keep_extremes(curve, 1.0), SCALE))
    assert (6, 10) in points
    assert len(points) < 50


# In a browser


@pytest.fixture
def browser(tmp_path: Path) -> Path:
    """The folder of a browser; without one a test is skipped, in CI failed."""
    if CHROMIUM is None:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop("Chromium is not installed: apt-get install chromium")
    return tmp_path


SORT = """
  const rows = () => [...document.querySelectorAll("#by-rps tbody tr")];
  const read = () => rows().map(row => row.cells[0].innerText);
  const press = column => {
    const button = document.querySelector(`#by-rps thead th:nth-child(${column}) button`);
    button.focus();
    button.click();
    const header = button.parentNode;
    return [document.activeElement === button, header.ariaSort, ...read()];
  };
  return [read(), press(3), press(3), press(1), press(1),
          document.querySelectorAll("#by-rps [aria-sort]").length];
"""


def test_tables_sort_by_a_button_and_load_nothing(text: str, browser: Path) -> None:
    answer = ask_page(text, SORT, browser)
    before, up, down, names, names_down, sorted_columns = answer["returned"]
    assert before == ["parus", "rcb", "terra"] or before == ["rcb", "parus", "terra"]
    assert up == [True, "ascending", "parus", "terra", "rcb"]
    assert down == [True, "descending", "terra", "parus", "rcb"], "what is missing stays last"
    assert names == [True, "ascending", "parus", "rcb", "terra"]
    assert names_down == [True, "descending", "terra", "rcb", "parus"]
    assert sorted_columns == 1
    assert all(name.startswith("data:") for name in answer["loaded"])


def test_the_script_runs_under_the_policy_and_strange_names_run_nothing(
    hostile: str, browser: Path
) -> None:
    dom = dump_dom(hostile, browser)
    assert "<button" in dom
    assert len(Page(hostile).find("th", scope="col")) == dom.count("<button")


FITS = """
  const root = document.documentElement;
  return [root.scrollWidth <= innerWidth, innerWidth,
          [...document.images].every(i => i.complete && i.naturalWidth > 300)];
"""


@pytest.mark.parametrize("width", [500, 1200])
def test_the_page_is_no_wider_than_the_screen(text: str, browser: Path, width: int) -> None:
    answer = ask_page(text, FITS, browser, f"--window-size={width},900")
    assert answer["returned"] == [True, width, True]


def test_the_page_prints_without_cutting_tables(text: str, browser: Path) -> None:
    pdf = print_page(text, browser)
    assert pdf.startswith(b"%PDF-")
    assert b"/MediaBox [0 0 841" in pdf or b"/MediaBox [0 0 842" in pdf, "A4, landscape"


def test_the_picture_in_the_page_is_an_svg(page: Page) -> None:
    (image,) = page.find("img")
    assert b64decode(image.attrs["src"].partition(",")[2]).startswith(b"<?xml")
