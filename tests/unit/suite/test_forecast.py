"""How long runs will take, judged by those already done."""

from __future__ import annotations

import pytest

from jobs import RUN, SINGLE, make_block, make_job
from morocco.suite.plan import Forecast, Job

LONG, SHORT = make_job(RUN), make_job(SINGLE)
OTHER_LONG, OTHER_SHORT = make_job(RUN, task="rcb"), make_job(SINGLE, task="rcb")


@pytest.fixture
def forecast() -> Forecast:
    return Forecast()


def test_before_any_run_nothing_is_known(forecast: Forecast) -> None:
    assert forecast.time_of(LONG) is None
    assert forecast.total_time([LONG]) is None


def test_no_runs_take_no_time(forecast: Forecast) -> None:
    assert forecast.total_time([]) == 0


def test_a_run_takes_as_long_as_the_median_of_its_kind(forecast: Forecast) -> None:
    for duration in (2.0, 90.0, 4.0):
        forecast.add(LONG, duration)
    assert forecast.time_of(make_job(RUN, index=9)) == 4
    assert forecast.time_of(SHORT) is None


@pytest.mark.parametrize(
    "other", [make_job((20, 8)), make_job((40, 4)), OTHER_LONG, make_job(RUN, model="rubert")]
)
def test_a_run_of_another_kind_is_no_measure(forecast: Forecast, other: Job) -> None:
    forecast.add(LONG, 4)
    assert forecast.time_of(other) is None


def test_a_warm_up_is_no_measure(forecast: Forecast) -> None:
    forecast.add(make_job(SINGLE, index=None), 60)
    assert forecast.time_of(SHORT) is None
    forecast.add(SHORT, 2)
    assert forecast.time_of(SHORT) == 2


def test_a_warm_up_is_expected_to_take_as_long_as_what_it_is_for(forecast: Forecast) -> None:
    forecast.add(SHORT, 2)
    assert forecast.time_of(make_job(SINGLE, index=None)) == 2


def test_the_times_of_runs_add_up(forecast: Forecast) -> None:
    forecast.add(SHORT, 2)
    forecast.add(LONG, 10)
    block = make_block(repeats=3)
    assert forecast.total_time([block.warm_up, *block.jobs]) == 2 + 3 * (2 + 10)


def test_a_kind_that_was_never_run_takes_as_long_as_its_like(forecast: Forecast) -> None:
    for job, duration in ((SHORT, 2.0), (LONG, 10.0), (OTHER_SHORT, 4.0), (OTHER_LONG, 30.0)):
        forecast.add(job, duration)
    assert forecast.total_time([make_job(SINGLE, task="terra")]) == 3
    assert forecast.total_time([make_job(RUN, task="terra")]) == 20


def test_a_mean_of_kinds_does_not_count_their_repeats(forecast: Forecast) -> None:
    for job, duration in ((LONG, 10.0), (LONG, 10.0), (OTHER_LONG, 40.0)):
        forecast.add(job, duration)
    assert forecast.total_time([make_job(RUN, task="terra")]) == 25


def test_short_runs_tell_nothing_of_long_ones(forecast: Forecast) -> None:
    forecast.add(SHORT, 2)
    assert forecast.total_time([SHORT, LONG]) is None
