"""How long runs will take, told from those that were made."""

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
    assert forecast.expect(LONG) is None
    assert forecast.guess([LONG]) is None


def test_no_runs_take_no_time(forecast: Forecast) -> None:
    assert forecast.guess([]) == 0


def test_a_run_takes_as_long_as_the_median_of_its_kind(forecast: Forecast) -> None:
    for taken in (2.0, 90.0, 4.0):
        forecast.learn(LONG, taken)
    assert forecast.expect(make_job(RUN, index=9)) == 4
    assert forecast.expect(SHORT) is None


@pytest.mark.parametrize(
    "other", [make_job((20, 8)), make_job((40, 4)), OTHER_LONG, make_job(RUN, model="rubert")]
)
def test_a_run_of_another_kind_tells_nothing_for_sure(forecast: Forecast, other: Job) -> None:
    forecast.learn(LONG, 4)
    assert forecast.expect(other) is None


def test_a_warm_up_is_no_measure(forecast: Forecast) -> None:
    forecast.learn(make_job(SINGLE, index=None), 60)
    assert forecast.expect(SHORT) is None
    forecast.learn(SHORT, 2)
    assert forecast.expect(SHORT) == 2


def test_a_warm_up_is_expected_to_take_as_long_as_what_it_is_for(forecast: Forecast) -> None:
    forecast.learn(SHORT, 2)
    assert forecast.expect(make_job(SINGLE, index=None)) == 2


def test_the_times_of_runs_add_up(forecast: Forecast) -> None:
    forecast.learn(SHORT, 2)
    forecast.learn(LONG, 10)
    block = make_block(repeats=3)
    assert forecast.guess([block.warm_up, *block.jobs]) == 2 + 3 * (2 + 10)


def test_a_kind_that_was_never_run_takes_as_long_as_its_like(forecast: Forecast) -> None:
    for job, taken in ((SHORT, 2.0), (LONG, 10.0), (OTHER_SHORT, 4.0), (OTHER_LONG, 30.0)):
        forecast.learn(job, taken)
    assert forecast.guess([make_job(SINGLE, task="terra")]) == 3
    assert forecast.guess([make_job(RUN, task="terra")]) == 20


def test_a_mean_of_kinds_does_not_count_their_repeats(forecast: Forecast) -> None:
    for job, taken in ((LONG, 10.0), (LONG, 10.0), (OTHER_LONG, 40.0)):
        forecast.learn(job, taken)
    assert forecast.guess([make_job(RUN, task="terra")]) == 25


def test_short_runs_tell_nothing_of_long_ones(forecast: Forecast) -> None:
    forecast.learn(SHORT, 2)
    assert forecast.guess([SHORT, LONG]) is None
