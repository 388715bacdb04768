"""The plan of a suite as people see it before they start it."""

from __future__ import annotations

import pytest

from jobs import make_block
from morocco.suite.display import render_plan
from morocco.suite.plan import Block, Forecast, Job
from morocco.suite.preflight import SuiteState
from morocco.suite.resume import Finished

PARUS, RCB = make_block("parus"), make_block("rcb")
DONE = Finished(1.5, None, ())


def make_state(blocks: list[Block], finished: int = 0) -> SuiteState:
    """Return what a suite is that has done the first few of its runs."""
    jobs = [job for block in blocks for job in block.jobs]
    return SuiteState(dict.fromkeys(jobs[:finished], DONE), frozenset(jobs[finished:]), {})


def forecast_from(times: dict[Job, float]) -> Forecast:
    forecast = Forecast()
    for job, duration in times.items():
        forecast.add(job, duration)
    return forecast


def total(
    blocks: list[Block], finished: int, times: dict[Job, float] | None = None, lanes: int = 1
) -> str:
    """Return the last line of a plan."""
    state = make_state(blocks, finished)
    return render_plan(blocks, state, forecast_from(times or {}), lanes).splitlines()[-1]


def test_a_plan_has_a_line_for_each_kind_of_run() -> None:
    times = {PARUS.jobs[0]: 2.0, PARUS.jobs[1]: 70.0}
    assert render_plan([PARUS, RCB], make_state([PARUS, RCB], 2), forecast_from(times)) == (
        "task   target                   input  batch  runs  done  a run  left\n"
        "parus  russiannlp/rubert-parus      1      1     2     1   0:02  0:02\n"
        "parus  russiannlp/rubert-parus     20      4     2     1   1:10  1:10\n"
        "rcb    russiannlp/rubert-rcb        1      1     2     0      ?     ?\n"
        "rcb    russiannlp/rubert-rcb       20      4     2     0      ?     ?\n"
        "6 runs to do, 2 done, 2 warm-ups: more than 1:14, as some kinds of run have not been "
        "measured yet\n"
    )


def test_models_have_a_column_where_they_have_names() -> None:
    block = make_block("parus", repeats=1, model="rubert")
    header, first, *_ = render_plan([block], make_state([block]), Forecast()).splitlines()
    assert header.split()[:3] == ["model", "task", "target"]
    assert first.split()[:2] == ["rubert", "parus"]


def test_before_any_run_the_time_is_not_known() -> None:
    line = total([PARUS], 0)
    assert line.startswith("4 runs to do, 0 done, 1 warm-up: ")
    assert "known after the first runs" in line


@pytest.mark.parametrize(("finished", "left"), [(1, "2:24"), (2, "1:14"), (3, "1:12")])
def test_the_time_is_that_of_what_is_left_with_its_warm_up(finished: int, left: str) -> None:
    times = {PARUS.jobs[0]: 2.0, PARUS.jobs[1]: 70.0}
    assert total([PARUS], finished, times).endswith(f"1 warm-up: {left}")


def test_lanes_share_the_time() -> None:
    times = {PARUS.jobs[0]: 2.0, PARUS.jobs[1]: 70.0}
    assert total([PARUS], 2, times, lanes=2).endswith(": 0:37")


def test_where_all_is_done_nothing_is_left() -> None:
    times = {PARUS.jobs[0]: 2.0, PARUS.jobs[1]: 70.0}
    assert total([PARUS], 4, times) == "0 runs to do, 4 done, 0 warm-ups: 0:00"


def test_a_single_run_is_counted_as_one() -> None:
    times = {PARUS.jobs[0]: 2.0, PARUS.jobs[1]: 70.0}
    assert total([PARUS], 3, times).startswith("1 run to do, 3 done, 1 warm-up: ")
