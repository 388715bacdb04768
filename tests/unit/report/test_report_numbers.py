"""The arithmetic of a report, compared with numbers computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from morocco.report.build import (
    compute_adjusted_rps,
    compute_cost,
    compute_mean,
    compute_weighted_score,
    rank_models,
)
from morocco.report.comparison import COMPARED, compare_tasks, compute_metric, compute_spread
from morocco.report.model import (
    Cell,
    Mean,
    Metric,
    ModelRatios,
    ModelSummary,
    Ratio,
    Readings,
    WeightedScore,
)
from morocco.report.tables import describe_ratio, format_ratio, summarise_ratios
from morocco.stats.estimates import Estimate

amounts = st.floats(0.1, 1000)
init_lists = st.lists(st.floats(1, 10), min_size=1, max_size=6).map(tuple)
long_lists = st.lists(st.floats(11, 99), min_size=1, max_size=6).map(tuple)


def make_readings(
    init: Sequence[float] = (10.0, 10.0, 10.0),
    long: Sequence[float] = (50.0, 50.0, 50.0),
    *,
    gpu_ram: Sequence[float] = (2.0, 2.0, 2.0),
) -> Readings:
    """Return readings in which the energy is 10 joules a second."""
    return Readings(
        input_size=2000,
        batch_size=32,
        init_times=tuple(init),
        run_times=tuple(long),
        gpu_ram=tuple(gpu_ram),
        gpu_ram_batch=(),
        ram=(1.0,) * len(init),
        ram_batch=(),
        init_energy=tuple(10 * time for time in init),
        energy=tuple(10 * time for time in long),
    )


def make_cell(rps: float, task: str = "parus", **more: object) -> Cell:
    estimate = Estimate("m", task, None, rps, 10.0, 2000, 32, 5, 5, None, None, None)
    return replace(Cell("m", task, estimate=estimate, tried=10), **more)  # type: ignore[arg-type]


readings = st.builds(make_readings, init_lists, long_lists)


def compare(model: Readings, baseline: Readings) -> dict[Metric, Ratio]:
    return compare_tasks({"parus": model}, {"parus": baseline})[1]["parus"]


# Readings


def test_metrics_are_computed_as_in_stats() -> None:
    found = make_readings((8, 12), (110, 60))
    assert compute_metric("rps", found) == (20 + 40) / 2
    assert compute_metric("init_time", found) == 10
    assert compute_metric("gpu_ram", found) == 2


def test_energy_is_counted_beyond_the_start_up() -> None:
    assert compute_metric("energy", make_readings((10, 10), (50, 50))) == (500 - 100) / 2
    assert compute_metric("energy", replace(make_readings(), init_energy=())) is None
    assert compute_metric("energy", replace(make_readings(), energy=(5.0,))) is None


def test_the_spread_is_standard_deviation_over_mean() -> None:
    # 2000 / 40 = 50 and 2000 / 20 = 100 records a second: 35.36 / 75
    assert compute_spread(make_readings((10,), (50, 30))) == pytest.approx(0.4714045)
    assert compute_spread(make_readings((10,), (50,))) is None


# Means


def test_both_means_are_over_what_is_known() -> None:
    mean = compute_mean({"a": 2.0, "b": 8.0, "c": None})
    assert (mean.arithmetic, mean.tasks, mean.missing) == (5.0, ("a", "b"), ("c",))
    assert mean.geometric == pytest.approx(4.0)
    nothing = compute_mean({"a": None})
    assert (nothing.arithmetic, nothing.geometric) == (None, None)
    assert compute_mean({"a": 0.0, "b": 2.0}).geometric is None


@given(st.lists(amounts, min_size=1))
def test_the_geometric_mean_is_never_above_the_arithmetic(numbers: list[float]) -> None:
    mean = compute_mean({str(place): number for place, number in enumerate(numbers)})
    assert mean.geometric is not None
    assert mean.arithmetic is not None
    assert min(numbers) * 0.999 <= mean.geometric <= mean.arithmetic * 1.001


def test_the_cost_of_a_million_records_follows_from_the_price_of_an_hour() -> None:
    assert compute_cost(price=36, rps=1000) == pytest.approx(10)


# The weighted score


def test_the_speed_is_adjusted_for_spread_and_failed_runs() -> None:
    assert compute_adjusted_rps(100, spread=0.1, failed=1, tried=10) == pytest.approx(
        100 * 0.9 * 0.9
    )
    assert compute_adjusted_rps(100, spread=None, failed=0, tried=2) == 100


def test_the_weighted_score_agrees_with_a_computation_by_hand() -> None:
    cells = {"a": make_cell(100, spread=0.1, failed=1), "b": make_cell(9)}
    found = compute_weighted_score(cells, {"a": 2, "b": 1, "c": 0})
    assert found.adjusted == {"a": pytest.approx(81), "b": 9}
    assert found.score == found.partial == pytest.approx(exp((2 * log(81) + log(9)) / 3))
    assert found.missing == {}


def test_a_missing_task_is_neither_0_nor_1() -> None:
    cells = {"a": make_cell(100), "b": Cell("m", "b", reason="no 1_1 runs")}
    found = compute_weighted_score(cells, {"a": 1, "b": 1, "c": 1})
    assert found.score is None
    assert found.partial == pytest.approx(100)
    assert found.missing == {"b": "no 1_1 runs", "c": "no runs"}


def test_a_speed_that_varies_as_much_as_it_is_counts_as_missing() -> None:
    found = compute_weighted_score({"a": make_cell(100, spread=1.2)}, {"a": 1})
    assert (found.score, found.partial, list(found.missing)) == (None, None, ["a"])


@given(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=9), amounts)
def test_only_the_ratio_of_the_weights_counts(
    pairs: list[tuple[float, float]], factor: float
) -> None:
    cells = {str(place): make_cell(rps) for place, (rps, _) in enumerate(pairs)}
    weights = {str(place): weight for place, (_, weight) in enumerate(pairs)}
    scaled = {task: weight * factor for task, weight in weights.items()}
    one, other = (compute_weighted_score(cells, which) for which in (weights, scaled))
    assert one.score == pytest.approx(other.score)


@given(st.lists(amounts, min_size=1, max_size=9), amounts)
def test_a_model_twice_as_fast_has_twice_the_score(speeds: list[float], factor: float) -> None:
    tasks = {str(place): rps for place, rps in enumerate(speeds)}
    weights = dict.fromkeys(tasks, 1.0)
    slow = compute_weighted_score({t: make_cell(rps) for t, rps in tasks.items()}, weights)
    fast = compute_weighted_score({t: make_cell(rps * factor) for t, rps in tasks.items()}, weights)
    assert slow.score is not None
    assert fast.score == pytest.approx(slow.score * factor)


# Ratios


def test_a_ratio_of_steady_runs_is_exact() -> None:
    found = compare(make_readings(long=(30.0,) * 3), make_readings(long=(50.0,) * 3))
    expected: dict[Metric, float] = {"rps": 2.0, "init_time": 1.0, "energy": 0.5}
    for metric, value in expected.items():
        ratio = found[metric]
        assert (ratio.low, ratio.value, ratio.high) == pytest.approx((value,) * 3)
        assert ratio.real is (value != 1)
    assert set(found) == set(COMPARED)


@given(readings)
@settings(max_examples=30, deadline=None)
def test_a_model_against_itself_is_1_and_shows_no_difference(model: Readings) -> None:
    for ratio in compare(model, model).values():
        assert ratio.value == 1
        assert not ratio.real
        assert ratio.low is None or ratio.low <= 1
        assert ratio.high is None or ratio.high >= 1


@given(readings, readings)
@settings(max_examples=30, deadline=None)
def test_the_interval_holds_the_ratio(model: Readings, baseline: Readings) -> None:
    assume(min(len(r.init_times) * len(r.run_times) for r in (model, baseline)) > 1)
    ratio = compare(model, baseline)["rps"]
    assert ratio.low is None or ratio.low <= ratio.value * 1.000001
    assert ratio.high is None or ratio.high >= ratio.value * 0.999999


@given(readings, readings)
@settings(max_examples=30, deadline=None)
def test_swapping_both_inverts_the_ratio(model: Readings, baseline: Readings) -> None:
    one, other = compare(model, baseline), compare(baseline, model)
    for metric, ratio in one.items():
        assert ratio.value == pytest.approx(1 / other[metric].value)


def test_few_runs_give_no_verdict() -> None:
    one = compare(make_readings((10,), (30, 31, 32)), make_readings())
    assert (one["rps"].low, one["rps"].high, one["rps"].real) == (None, None, None)
    two = compare(make_readings((10, 10), (30, 31)), make_readings())
    assert two["rps"].low is not None
    assert two["rps"].real is None


def test_runs_that_overlap_show_no_difference() -> None:
    found = compare(make_readings(long=(48, 50, 53)), make_readings(long=(47, 51, 52)))
    assert found["rps"].real is False
    assert 0.05 < (found["rps"].visible or 0) < 1
    assert found["rps"].more_runs is None or found["rps"].more_runs > 3


def test_all_tasks_together_are_the_geometric_mean() -> None:
    fast, slow = make_readings(long=(30.0,) * 3), make_readings(long=(50.0,) * 3)
    models = {"parus": fast, "rcb": slow, "rucos": fast, "terra": fast}
    baseline = {"parus": slow, "rcb": slow, "rucos": slow, "rwsd": slow}
    overall, by_task = compare_tasks(models, baseline, without=("rucos",))
    ratio = overall["rps"]
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((2**0.5,) * 3)
    assert ratio.real
    assert list(by_task) == ["parus", "rcb", "rucos"]


def test_the_interval_over_tasks_is_narrower_than_that_of_one() -> None:
    model, baseline = make_readings(long=(45, 50, 56)), make_readings(long=(44, 50, 55))
    tasks = [f"task{number}" for number in range(9)]
    overall, by_task = compare_tasks(dict.fromkeys(tasks, model), dict.fromkeys(tasks, baseline))
    widths = [_get_width(of_task["rps"]) for of_task in by_task.values()]
    assert _get_width(overall["rps"]) < min(widths) / 2


def _get_width(ratio: Ratio) -> float:
    assert ratio.low is not None
    assert ratio.high is not None
    return ratio.high - ratio.low


def test_a_speed_without_a_bound_gives_a_ratio_without_one() -> None:
    loose = make_readings((10, 10, 10, 30, 30), (29.0,) * 5)
    above, below = compare(loose, make_readings()), compare(make_readings(), loose)
    assert above["rps"].high is None
    assert below["rps"].low is None
    both = compare(loose, loose)["rps"]
    assert (both.low, both.high, both.real) == (None, None, None)
    assert format_ratio(both) == "1.00 (too little work to tell)"


def test_a_metric_that_one_side_lacks_has_no_ratio() -> None:
    nowhere = make_readings(gpu_ram=())
    assert "gpu_ram" not in compare(nowhere, make_readings())
    assert "gpu_ram" not in compare(make_readings(), nowhere)
    assert compare_tasks({}, {"parus": nowhere}) == ({}, {})


# In words


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        ("rps", 1.234, "1.23x faster"),
        ("rps", 0.5, "2.00x slower"),
        ("rps", 1.001, "as fast"),
        ("gpu_ram", 0.5, "half the GPU RAM"),
        ("gpu_ram", 2.0, "twice the GPU RAM"),
        ("ram", 0.999, "the same RAM"),
        ("init_time", 1.3, "1.30x the init time"),
        ("energy", 0.8, "0.80x the energy"),
    ],
)
def test_a_ratio_is_described_in_words(metric: Metric, value: float, words: str) -> None:
    assert describe_ratio(metric, Ratio(value, value, value, real=True)) == words
    assert (
        describe_ratio(metric, Ratio(value, 0.1, 9.0, real=False))
        == f"{words} (no difference shown)"
    )
    few = Ratio(value, None, None, real=None, runs=2)
    assert describe_ratio(metric, few) == f"{words} (3 runs needed)"


def test_a_ratio_in_a_cell_shows_its_interval() -> None:
    assert format_ratio(Ratio(1.2345, 1.2, 1.3, real=True)) == "1.23 [1.20, 1.30]"
    assert (
        format_ratio(Ratio(1.2, 0.9, 1.5, real=False)) == "1.20 [0.90, 1.50] (no difference shown)"
    )
    assert format_ratio(Ratio(1.2, None, None, real=None)) == "1.20 (3 runs needed)"


def test_an_interval_that_ends_near_1_shows_on_which_side() -> None:
    assert format_ratio(Ratio(0.94, 0.89, 0.997, real=True)) == "0.94 [0.89, 0.997]"
    assert format_ratio(Ratio(1.05, 1.0004, 1.1, real=True)) == "1.05 [1.0004, 1.10]"


def test_another_machine_is_mentioned_with_the_ratio() -> None:
    ratios: dict[Metric, Ratio] = {"rps": Ratio(2.0, 1.9, 2.1, real=True)}
    assert summarise_ratios(ModelRatios("m", ratios, {}, True)) == "m: 2.00x faster."
    assert summarise_ratios(ModelRatios("m", ratios, {}, False)).endswith(
        "; but on another machine."
    )
    assert summarise_ratios(ModelRatios("m", {}, {}, None)) == ""


# Ranks


def rank(**run_times: tuple[float, ...]) -> dict[str, int]:
    """Return the ranks of models with a start-up of 10 seconds, by their run times."""
    cells, summaries = {}, []
    for name, times in run_times.items():
        readings = make_readings(long=times)
        cells[name] = {"parus": Cell(name, "parus", readings=readings)}
        means: dict[Metric, Mean] = {
            "rps": compute_mean({"parus": compute_metric("rps", readings)})
        }
        nothing = WeightedScore(None, None, {}, {})
        summaries.append(ModelSummary(name, None, means, nothing, None, {}))
    return rank_models(summaries, cells, ())


def test_models_rank_by_speed() -> None:
    ranks = rank(slow=(59.9, 60.0, 60.1), fast=(29.9, 30.0, 30.1), medium=(44.9, 45.0, 45.1))
    assert ranks == {"fast": 1, "medium": 2, "slow": 3}


def test_models_that_cannot_be_told_apart_share_a_rank() -> None:
    ranks = rank(a=(29.0, 30.0, 31.0), b=(29.5, 30.5, 31.5), c=(59.0, 60.0, 61.0))
    assert ranks == {"a": 1, "b": 1, "c": 3}
