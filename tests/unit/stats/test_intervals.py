"""Intervals hold the truth as often as they say, and equal models are seldom told apart."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from statistics import median, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from morocco.report.comparison import compare_tasks
from morocco.report.model import Readings
from morocco.stats.intervals import (
    Moments,
    bound_values,
    count_more,
    find_different,
    find_visible,
    measure,
    quantile,
    subtract,
)
from morocco.stats.speed import bound_speed
from simulated_suites import (
    Condition,
    bootstrap,
    bound,
    list_conditions,
    measure_alarms,
    measure_coverage,
)

CONDITIONS = list(list_conditions())
USUAL = CONDITIONS[:9]


def covers_as_it_should(share: float) -> bool:
    return 0.925 <= share <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("condition", USUAL, ids=lambda condition: condition.name)
@pytest.mark.parametrize("runs", [3, 5, 10])
def test_the_interval_of_a_speed_holds_the_truth_as_often_as_it_says(
    condition: Condition, runs: int
) -> None:
    share, _ = measure_coverage(condition, runs, 1000, bound)
    assert covers_as_it_should(share)


@pytest.mark.slow
def test_a_bootstrap_of_medians_would_not_pass() -> None:
    share, _ = measure_coverage(USUAL[1], 3, 300, bootstrap)
    assert not covers_as_it_should(share)


@pytest.mark.parametrize("probability", [0.6, 0.8, 0.975, 0.995, 1 - 0.05 / 18])
@pytest.mark.parametrize("freedom", [1, 1.5, 2, 2.7, 4, 8.3, 30, 500])
def test_quantiles_are_those_of_scipy(probability: float, freedom: float) -> None:
    expected = stdtrit(freedom, probability)
    assert quantile(probability, freedom) == pytest.approx(expected, rel=1e-3)


@given(st.lists(st.floats(1, 100), min_size=2, max_size=8))
def test_the_interval_of_single_runs_is_that_of_student(values: list[float]) -> None:
    expected = stdtrit(len(values) - 1, 0.975) * stdev(values) / len(values) ** 0.5
    assert measure(values).half_width() == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_equal_variances_have_the_freedom_of_both_and_unequal_ones_of_the_larger() -> None:
    same, exact = Moments(1.0, ((0.1, 5),)), Moments(1.0, ((0.0, 5),))
    assert subtract(same, same).freedom == pytest.approx(10)  # as Welch (1947) has it
    assert subtract(same, exact).freedom == pytest.approx(4)


@given(st.lists(st.floats(1, 100), min_size=2, max_size=9))
def test_an_interval_holds_the_median(values: list[float]) -> None:
    found = bound_values(values, median(values))
    assert found is not None
    assert found[0] <= median(values) <= found[1]


def test_one_run_has_no_interval() -> None:
    assert bound_values([3.0], 3.0) is None
    assert bound_speed(1000, [1.0], [2.0, 3.0], 700.0) is None


def test_runs_that_never_differ_are_known_exactly() -> None:
    assert bound_values([3.0, 3.0, 3.0], 3.0) == (3.0, 3.0)
    assert bound_speed(1000, [1.0, 1.0], [3.0, 3.0], 500.0) == (500.0, 500.0)


def different(*clear: float, runs: int = 5) -> list[bool]:
    """Judge means that are so many standard errors away from 0."""
    return find_different([Moments(at, ((1.0, runs),)) for at in clear])


def test_several_differences_are_judged_together() -> None:
    assert different(3.0) == [True]  # t of 4 degrees of freedom is 2.78 at 5 %
    assert different(3.0, 0.0) == [False, False]  # 3.50 at 2.5 %
    assert different(4.0, 3.0) == [True, True]  # 4.0 is clear, then 3.0 stands alone
    assert different(4.0, 3.0, 0.0) == [True, False, False]
    assert different() == []


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [1, 9])
def test_equal_models_are_seldom_told_apart(tasks: int) -> None:
    assert measure_alarms(USUAL[2], 5, 400, sees_any, tasks) <= 0.08


def sees_any(pairs: Sequence[tuple[Readings, Readings]]) -> bool:
    model = {str(at): pair[0] for at, pair in enumerate(pairs)}
    baseline = {str(at): pair[1] for at, pair in enumerate(pairs)}
    overall, by_task = compare_tasks(model, baseline)
    assert overall
    return any(ratios["rps"].real for ratios in by_task.values())


def test_a_visible_difference_is_seen_in_four_of_five_cases() -> None:
    random, seen, tries = Random(1), 0, 1000
    for _ in range(tries):
        drawn = measure([random.gauss(0, 1) for _ in range(5)])
        size = find_visible(Moments(0.0, ((1 / 5, 5),)))
        seen += abs(drawn.mean + size) > drawn.half_width()
    assert 0.72 < seen / tries < 0.88


def test_more_runs_are_suggested_as_the_difference_asks_for() -> None:
    small, large = Moments(0.01, ((0.01**2, 5),)), Moments(0.03, ((0.01**2, 5),))
    assert (count_more(large, 5, 100) or 0) < (count_more(small, 5, 100) or 0)
    assert count_more(Moments(1e-9, ((1.0, 5),)), 5, 100) is None
    assert count_more(Moments(0.0, ((1.0, 5),)), 5, 100) is None
