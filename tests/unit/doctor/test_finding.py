"""How findings are shown."""

from __future__ import annotations

import json

from morocco.doctor.finding import Finding, refuse, render_json, render_text, summarise
from morocco.errors import EngineError

LOAD = Finding("load", "bad", "others keep 2.0 of 2 cores busy: " + "cc1, " * 12, "stop them")
NOISE = Finding("noise", "doubtful", "3.1%", "repeat more runs")
CLOCK = Finding("clock", "good", "tsc")


def test_a_finding_fits_on_a_screen_in_columns() -> None:
    lines = render_text(LOAD, 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("bad       load         others keep")
    assert lines[-1] == " " * 23 + "-> stop them"
    assert all(line.startswith(" " * 23) for line in lines[1:])


def test_a_finding_is_one_line_of_json() -> None:
    (line,) = render_json(NOISE).splitlines()
    assert json.loads(line) == {
        "name": "noise",
        "state": "doubtful",
        "found": "3.1%",
        "todo": "repeat more runs",
    }


def test_a_finding_is_one_line_in_a_warning() -> None:
    assert str(NOISE) == "noise: 3.1% -> repeat more runs"
    assert str(CLOCK) == "clock: tsc"
    assert "\x1b" not in str(Finding("load", "bad", "evil\x1b[2J")) + render_text(
        Finding("load", "bad", "evil\x1b[2J"), 80
    )


def test_the_last_line_names_what_is_wrong() -> None:
    assert summarise([CLOCK, NOISE, LOAD]) == "bad: load; doubtful: noise"
    assert summarise([CLOCK, Finding("governor", "unknown", "?")]) == "Fit to measure on."


def test_an_error_is_what_happened_and_its_remedy() -> None:
    error = EngineError("Cannot reach it: no such file. Start it, or set DOCKER_HOST.")
    finding = refuse("engine", error)
    assert (finding.found, finding.todo) == (
        "Cannot reach it: no such file",
        "Start it, or set DOCKER_HOST",
    )
