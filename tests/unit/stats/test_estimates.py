"""From logs to estimates, their intervals, the warnings and the tables."""

from __future__ import annotations

import csv
import json
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sample_logs
from morocco.errors import DataError
from morocco.logs.discovery import Collection, collect_logs
from morocco.logs.log import Log
from morocco.logs.samples import Peaks, Sample
from morocco.stats.estimates import Estimate, IncompleteStats, Stats, estimate
from morocco.stats.grouping import Clock
from morocco.stats.render import Format, render, render_table, to_rows
from morocco.util.text import format_number
from morocco.util.units import GIB
from published import PUBLISHED, load_expected, needs_published
from sample_logs import INIT, LONG, MB

KEYS = [
    "task",
    "gpu_ram",
    "rps",
    "init_time",
    "input_size",
    "batch_size",
    "runs",
    "init_runs",
    "rps_low",
    "rps_high",
    "gpu_ram_batch",
    "ram",
    "limit",
    *(f"{name}_{end}" for name in ("init_time", "gpu_ram", "ram") for end in ("low", "high")),
]

times = st.floats(0.5, 100, allow_nan=False)


def make_log(
    size: tuple[int, int] = LONG,
    index: int = 1,
    run_time: float = 110.0,
    *,
    task: str = "parus",
    model: str = "rubert",
    first_ram: int | None = 5 * MB,
    gpu_ram: int | None = 2 * GIB,
    gpu_at: float = 0.0,
    beats: int = 100,
) -> Log:
    """Return a log as morocco writes it, with evenly spaced lines and a closing line of nulls.

    `first_ram` None makes a log without any reading; `gpu_ram` None one that never saw a GPU.
    """
    samples = [
        Sample(
            at,
            ram=first_ram and (300 * MB if beat else first_ram),
            gpu_ram=gpu_ram if at >= gpu_at else None,
        )
        for beat in range(beats)
        for at in [run_time * beat / beats]
    ]
    samples.append(Sample(run_time))
    return sample_logs.make_log(size, index, task=task, model=model, samples=samples)


def make_logs(
    init: Sequence[float] = (10.0,) * 5,
    long: Sequence[float] = (110.0,) * 5,
    size: tuple[int, int] = LONG,
    task: str = "parus",
    model: str = "rubert",
    first_ram: int = 5 * MB,
) -> list[Log]:
    inits = [make_log(INIT, at, t, task=task, model=model) for at, t in enumerate(init, 1)]
    return inits + [
        make_log(size, at, t, task=task, model=model, first_ram=first_ram)
        for at, t in enumerate(long, 1)
    ]


def collect(logs: Sequence[Log]) -> Collection:
    return Collection(tuple(logs), many_models=len({log.model for log in logs}) > 1)


def compute(logs: Sequence[Log], clock: Clock = "log") -> Stats:
    return estimate(collect(logs), clock)


def only(stats: Stats) -> Estimate:
    (found,) = stats.estimates
    return found


def find_warning(stats: Stats, start: str) -> str:
    """Return the only warning that starts with this text."""
    (found,) = [warning for warning in stats.warnings if warning.startswith(start)]
    return found


# The published logs


@pytest.fixture(scope="module")
def published() -> Collection:
    return collect_logs([PUBLISHED / "rubert", PUBLISHED / "rubert-conversational"])


@needs_published
@pytest.mark.parametrize(("clock", "key"), [("log", "rps"), ("gpu", "rps_gpu_clock")])
def test_published_logs_give_the_published_numbers(
    published: Collection, clock: Clock, key: str
) -> None:
    found = {
        (row.model, row.task): row
        for row in estimate(published, clock).estimates
        if (row.input_size, row.batch_size) == (2000, 32)
    }
    expected = load_expected()
    assert len(found) == len(expected) == 18
    for row in expected:
        estimated = found[str(row["model"]), str(row["task"])]
        assert estimated.rps == pytest.approx(row[key], rel=1e-12)
        assert estimated.gpu_ram == pytest.approx(row["gpu_ram"], rel=1e-12)


@needs_published
def test_published_groups_are_not_pooled(published: Collection) -> None:
    found = [row for row in estimate(published).estimates if row.model == "rubert"]
    groups = [(1000, 8, 3), (1000, 16, 3), (1000, 32, 3), (2000, 32, 5)]
    assert len(found) == 9 * 4
    assert [(row.input_size, row.batch_size, row.runs) for row in found] == groups * 9
    assert {row.init_runs for row in found} == {5}


@needs_published
def test_published_logs_are_flagged_for_their_late_clock(published: Collection) -> None:
    warning = find_warning(estimate(published), "The clock started late")
    flagged = set(warning.partition("again: ")[2].split(", "))
    sizes = {"rubert": ("1000_8", "1000_16", "1000_32", "2000_32")}
    every = {
        f"{model} {task} {size}"
        for model in ("rubert", "rubert-conversational")
        for task in {log.path.task for log in published.logs}
        for size in sizes.get(model, ("2000_32",))
    }
    # 1000 short records fitted into the pipe: their clock started at once, at 10 to 15 MB.
    prompt = {f"rubert {task} 1000_{size}" for task in ("parus", "russe") for size in (8, 16, 32)}
    assert flagged == every - prompt
    assert "late" not in "".join(estimate(published, "gpu").warnings)


@needs_published
def test_published_anomalies_are_named(published: Collection) -> None:
    stats = estimate(published)
    assert find_warning(stats, "No reading on any line").splitlines()[1:] == [
        "  rubert rcb 1_1: 1_1_05.jsonl",
        "  rubert-conversational rcb 1_1: 1_1_02.jsonl",
        "  rubert-conversational rwsd 1_1: 1_1_05.jsonl",
        "  rubert-conversational terra 1_1: 1_1_02.jsonl",
    ]
    cold = find_warning(stats, "Start-up times differ")
    assert "rubert rcb 1_1: 1_1_01.jsonl 26.5 s, 1_1_02.jsonl 26.3 s; the fastest: " in cold
    assert "rubert lidirus" not in cold
    assert "rubert parus 2000_32: 1.9 s, 5 samples" in find_warning(stats, "Too little work")
    left_out = find_warning(estimate(published, "gpu"), "Left out")
    assert "rubert rcb 1_1: 1_1_05.jsonl" in left_out


# Known answers


def test_a_known_container_gets_its_known_numbers() -> None:
    found = only(compute(make_logs()))
    assert found == Estimate(
        model="rubert",
        task="parus",
        gpu_ram=2.0,
        rps=20.0,
        init_time=10.0,
        input_size=2000,
        batch_size=32,
        runs=5,
        init_runs=5,
        rps_low=20.0,
        rps_high=20.0,
        gpu_ram_batch=2.0,
        ram=300 / 1024,
        limit="runs",
        **{f"init_time_{end}": 10.0 for end in ("low", "high")},
        **{f"gpu_ram_{end}": 2.0 for end in ("low", "high")},
        **{f"ram_{end}": 300 / 1024 for end in ("low", "high")},
    )


def test_nothing_is_warned_about_good_runs() -> None:
    assert compute(make_logs()).warnings == ()
    assert compute(make_logs(), "gpu").warnings == ()


def test_medians_ignore_odd_runs() -> None:
    found = only(compute(make_logs([10, 11, 40], [110, 60, 500, 111, 112])))
    assert found.init_time == 11
    assert found.rps == 2000 / 100


def test_an_even_number_of_runs_takes_the_middle_of_both_speeds() -> None:
    found = only(compute(make_logs([8, 12], [110, 60])))
    assert found.init_time == 10
    assert found.rps == (20 + 40) / 2


def test_gpu_ram_is_the_median_peak_of_the_start_ups_and_the_highest_of_the_long_runs() -> None:
    inits = [make_log(INIT, at, 10.0, gpu_ram=at * GIB) for at in (1, 2, 9)]
    longs = [make_log(LONG, at, gpu_ram=at * GIB) for at in (3, 4, 30)]
    found = only(compute([*inits, *longs]))
    assert (found.gpu_ram, found.gpu_ram_batch) == (2.0, 30.0)


def test_gpu_ram_is_unknown_where_no_gpu_was_seen() -> None:
    logs = [make_log(INIT, 1, 10.0, gpu_ram=None), make_log(LONG, 1, gpu_ram=None)]
    found = only(compute(logs))
    assert (found.gpu_ram, found.gpu_ram_batch) == (None, None)


def test_ram_is_the_median_peak_of_the_start_ups_by_their_records() -> None:
    peaks = [Peaks(at * GIB, ram_source="cgroup") for at in (1, 2, 9)]
    inits = [replace(make_log(INIT, at, 10.0), recorded=peak) for at, peak in enumerate(peaks, 1)]
    stats = compute([*inits, *make_logs(())])
    assert only(stats).ram == 2.0
    assert not any("RAM" in warning for warning in stats.warnings)


def test_ram_is_that_of_the_samples_where_no_record_tells() -> None:
    assert only(compute(make_logs())).ram == 300 / 1024


def test_ram_that_is_unknown_is_no_number() -> None:
    inits = [make_log(INIT, at, 10.0, first_ram=None) for at in (1, 2, 3)]
    assert only(compute([*inits, *make_logs(())])).ram is None


def test_several_sources_of_ram_are_told() -> None:
    of_group = [
        replace(log, recorded=Peaks(GIB, ram_source="cgroup")) for log in make_logs(model="other")
    ]
    (warning,) = compute([*make_logs(), *of_group]).warnings
    assert "rss: rubert parus 1_1" in warning
    assert "cgroup: other parus 1_1" in warning


def test_the_gpu_clock_starts_at_the_first_gpu_reading() -> None:
    inits = [make_log(INIT, at, 10.0, gpu_at=6.0) for at in (1, 2, 3)]
    longs = [make_log(LONG, at, 56.0, gpu_at=2.0, beats=112) for at in (1, 2, 3)]
    found = only(compute([*inits, *longs], "gpu"))
    assert found.init_time == 4.0
    assert found.rps == 2000 / (54.0 - 4.0)


def test_the_gpu_clock_leaves_out_runs_without_a_gpu() -> None:
    unseen = [make_log(INIT, 6, 99.0, gpu_ram=None), make_log(LONG, 6, 999.0, gpu_ram=None)]
    stats = compute([*make_logs(), *unseen], "gpu")
    assert (only(stats).init_runs, only(stats).runs) == (5, 5)
    assert (only(stats).init_time, only(stats).rps) == (10.0, 20.0)
    assert find_warning(stats, "Left out").splitlines()[1:] == [
        "  parus 1_1: 1_1_06.jsonl",
        "  parus 2000_32: 2000_32_06.jsonl",
    ]


def test_groups_are_never_pooled_and_come_sorted() -> None:
    logs = make_logs(long=[60.0] * 3, size=(1000, 16)) + make_logs(init=())
    logs += make_logs(task="danetqa", long=[20.0] * 3)
    found = compute(logs).estimates
    assert [(row.task, row.input_size, row.rps, row.runs) for row in found] == [
        ("danetqa", 2000, 200.0, 3),
        ("parus", 1000, 20.0, 3),
        ("parus", 2000, 20.0, 5),
    ]


def test_models_are_never_pooled() -> None:
    found = compute(make_logs() + make_logs(model="other", long=[20.0] * 3)).estimates
    assert [(row.model, row.rps) for row in found] == [("other", 200.0), ("rubert", 20.0)]


# The interval


@given(st.permutations([30.1, 31.5, 32.9, 38.4, 40.0, 51.0]))
@settings(max_examples=20, deadline=None)
def test_the_interval_does_not_depend_on_the_order_of_the_runs(shuffled: list[float]) -> None:
    ordered = only(compute(make_logs([1, 2.5, 4, 9, 16], sorted(shuffled))))
    assert only(compute(make_logs([16, 1, 9, 2.5, 4], shuffled))) == ordered


def test_the_interval_does_not_depend_on_other_logs() -> None:
    logs = make_logs([10, 11, 12], [100, 110, 120])
    others = make_logs(task="danetqa") + make_logs(init=(), size=(500, 8))
    assert only(compute(logs)) in compute([*others, *logs]).estimates


@given(st.lists(st.floats(1, 10), min_size=2, max_size=7), st.lists(st.floats(11, 99), min_size=2))
@settings(max_examples=30, deadline=None)
def test_the_interval_holds_the_estimate(init: list[float], long: list[float]) -> None:
    found = only(compute(make_logs(init, long)))
    assert found.rps_low is not None
    assert found.rps_low <= found.rps <= (found.rps_high or inf)
    assert found.init_time_low is not None
    assert found.init_time_high is not None
    assert found.init_time_low <= found.init_time <= found.init_time_high


@pytest.mark.parametrize(("init", "long"), [([10.0], [100.0, 110.0]), ([9.0, 10.0], [100.0])])
def test_one_run_of_either_size_has_no_interval(init: list[float], long: list[float]) -> None:
    found = only(compute(make_logs(init, long)))
    assert (found.rps_low, found.rps_high) == (None, None)


def test_the_interval_is_that_of_the_difference_turned_into_a_speed() -> None:
    found = only(compute(make_logs([10.0, 10.0, 10.0], [99.0, 100.0, 101.0])))
    half = 4.3027 / 3**0.5  # t of two degrees of freedom, times the standard error
    assert found.rps_low == pytest.approx(2000 / (90 + half), rel=1e-4)
    assert found.rps_high == pytest.approx(2000 / (90 - half), rel=1e-4)
    assert (found.init_time_low, found.init_time_high) == (10.0, 10.0)


@pytest.mark.parametrize(
    ("init", "long", "limit"),
    [([9, 10, 11], [100, 100.1], "init"), ([10, 10.1], [99, 100, 101], "runs"), ([10], [99], None)],
)
def test_the_runs_that_limit_the_interval_are_named(
    init: list[float], long: list[float], limit: str | None
) -> None:
    assert only(compute(make_logs(init, long))).limit == limit


def test_an_interval_without_a_bound_is_null_and_warned_about() -> None:
    stats = compute(make_logs([10, 10, 10, 30, 30], [29.0] * 5))
    assert only(stats).rps_high is None
    assert only(stats).rps_low is not None
    assert "parus 2000_32" in find_warning(stats, "The speed has no upper bound (rps_high)")
    assert json.loads(render(stats, "jsonl"))["rps_high"] is None


@st.composite
def shuffled_logs(draw: st.DrawFn) -> tuple[list[Log], list[Log]]:
    logs = []
    for task in draw(st.lists(st.sampled_from(["parus", "rcb"]), min_size=1, unique=True)):
        logs += make_logs(draw(st.lists(times, min_size=1, max_size=4)), [], task=task)
        for size in draw(st.lists(st.sampled_from([(9, 1), LONG]), min_size=1, unique=True)):
            work = st.lists(st.floats(101, 200), min_size=1, max_size=4)
            logs += make_logs((), draw(work), size, task)
    return logs, draw(st.permutations(logs))


@given(shuffled_logs(), st.sampled_from(["log", "gpu"]))
@settings(max_examples=30, deadline=None)
def test_the_order_of_the_logs_never_matters(both: tuple[list[Log], list[Log]], c: Clock) -> None:
    logs, shuffled = both
    assert compute(shuffled, c) == compute(logs, c)


# Errors


def test_a_task_without_start_ups_says_how_to_get_them() -> None:
    with pytest.raises(DataError, match=r"^logs/parus has no 1_1 runs") as error:
        compute(make_logs(init=()))
    assert "-o logs/parus/1_1_01.jsonl --input-size 1 --batch-size 1`" in str(error.value)


def test_a_task_without_long_runs_says_how_to_get_them() -> None:
    with pytest.raises(DataError, match=r"^logs/parus has no long runs") as error:
        compute(make_logs(long=()))
    command = "-o logs/parus/2000_32_01.jsonl --input-size 2000 --batch-size 32`"
    assert command in str(error.value)


def test_all_faults_are_listed_at_once() -> None:
    logs = make_logs() + make_logs(task="rcb", init=()) + make_logs(task="terra", long=())
    with pytest.raises(DataError) as error:
        compute([*logs, make_log((10, 1), 3, run_time=9.0)])
    first, second, third = str(error.value).splitlines()
    assert first.startswith("logs/rcb has no 1_1 runs")
    assert second.startswith("logs/terra has no long runs")
    assert third.startswith("logs/parus/10_1_03.jsonl: not longer than the start-up")


def test_faulty_logs_do_not_hide_the_estimates_of_others() -> None:
    logs = make_logs() + make_logs(task="rcb", init=())
    with pytest.raises(IncompleteStats, match="logs/rcb has no 1_1 runs") as error:
        compute(logs)
    assert error.value.stats == compute(make_logs())


@pytest.mark.parametrize("run_time", [5.0, 10.0, 10.0005])
def test_a_run_not_longer_than_the_start_up_is_named(run_time: float) -> None:
    with pytest.raises(DataError, match=r"^logs/parus/2000_32_02\.jsonl: not longer ") as error:
        compute(make_logs(long=[110.0, run_time, 110.0]))
    assert "(10.000 s, median of parus 1_1)" in str(error.value)
    assert "--input-size" not in str(error.value)  # the others are long enough
    assert "--clock gpu" not in str(error.value)


@given(st.floats(0, 1000))
def test_a_barely_longer_run_has_a_speed_or_an_error(init_time: float) -> None:
    try:
        stats = compute(make_logs([init_time], [init_time + 0.001]))
    except DataError:
        return
    assert 1_900_000 < only(stats).rps < 2_100_000


def test_a_run_too_short_for_its_late_clock_hints_at_the_gpu_clock() -> None:
    with pytest.raises(DataError, match="started late: try --clock gpu"):
        compute(make_logs(long=[9.0] * 3, first_ram=290 * MB))


def test_the_gpu_clock_needs_gpu_readings() -> None:
    longs = [make_log(LONG, 1)]
    with pytest.raises(DataError, match="logs/parus: no run of parus 1_1 has a GPU reading"):
        compute([make_log(INIT, 1, 10.0, gpu_ram=None), *longs], "gpu")
    with pytest.raises(DataError, match="no run of parus 2000_32 has a GPU reading"):
        compute([make_log(INIT, 1, 10.0), make_log(LONG, 1, gpu_ram=None)], "gpu")


def test_logs_of_one_line_do_not_crash() -> None:
    start_ups = [make_log(INIT, at, 0.0, beats=0) for at in (1, 2, 3)]
    assert only(compute([*start_ups, *make_logs(init=())])).rps == 2000 / 110
    with pytest.raises(DataError, match="not longer than the start-up"):
        compute([*start_ups, make_log(LONG, 1, 0.0, beats=0)])


# Warnings


def test_a_warning_names_the_model_only_where_there_are_several() -> None:
    assert find_warning(compute(make_logs([10] * 2)), "Fewer than 3 runs").endswith(
        ": parus 1_1: 2 runs"
    )
    several = compute(make_logs([10] * 2) + make_logs(model="other"))
    assert find_warning(several, "Fewer than 3 runs").endswith(": rubert parus 1_1: 2 runs")


def test_many_groups_with_one_fault_give_one_warning() -> None:
    stats = compute(make_logs([10.0]) + make_logs([10.0], task="rcb"))
    lines = find_warning(stats, "Fewer than 3 runs").splitlines()
    assert lines[1:] == ["  parus 1_1: 1 run", "  rcb 1_1: 1 run"]


def test_few_long_runs_are_warned_about() -> None:
    warning = find_warning(compute(make_logs(long=[110.0] * 2)), "Fewer than 3 runs")
    assert "measure 5" in warning
    assert "parus 2000_32: 2 runs" in warning


@pytest.mark.parametrize(("first_ram", "late"), [(290, True), (104, False), (20, False)])
def test_a_late_clock_shows_in_the_ram_of_the_first_line(first_ram: int, late: bool) -> None:
    stats = compute(make_logs(first_ram=first_ram * MB))
    assert any("clock started late" in warning for warning in stats.warnings) == late


def test_a_large_process_from_the_start_is_no_late_clock() -> None:
    inits = [make_log(INIT, at, 10.0, first_ram=200 * MB) for at in range(1, 6)]
    assert compute([*inits, *make_logs(init=(), first_ram=400 * MB)]).warnings == ()


def test_the_gpu_clock_is_never_late() -> None:
    assert compute(make_logs(first_ram=290 * MB), "gpu").warnings == ()


def test_a_log_without_a_reading_is_named() -> None:
    null = make_log(INIT, 6, 10.0, first_ram=None, gpu_ram=None)
    warning = find_warning(compute([*make_logs(), null]), "No reading on any line")
    assert warning.endswith(": parus 1_1: 1_1_06.jsonl")


def test_a_start_up_without_a_reading_counts_its_time_and_not_its_memory() -> None:
    null = make_log(INIT, 6, 20.0, first_ram=None, gpu_ram=None)
    found = only(compute([*make_logs(init=[10.0]), null]))
    assert (found.init_time, found.init_runs, found.gpu_ram) == (15.0, 2, 2.0)


@pytest.mark.parametrize(
    ("work", "beats", "short"),
    [(4.9, 100, True), (5.1, 100, False), (20.0, 40, True), (20.0, 50, False)],
)
def test_short_work_is_warned_about(work: float, beats: int, short: bool) -> None:
    longs = [make_log(LONG, at, 10.0 + work, beats=beats) for at in range(1, 6)]
    stats = compute([*make_logs(long=()), *longs])
    assert any(text.startswith("Too little work") for text in stats.warnings) == short


def test_lines_of_the_same_moment_do_not_hide_the_sampling_period() -> None:
    longs = [make_log(LONG, at, 12.0) for at in range(1, 6)]
    doubled = [replace(log, samples=tuple(s for s in log.samples for _ in "ab")) for log in longs]
    (warning,) = compute([*make_logs(long=()), *longs]).warnings
    assert compute([*make_logs(long=()), *doubled]).warnings == (warning,)


def test_short_work_suggests_an_input_size() -> None:
    warning = find_warning(compute(make_logs(long=[12.0] * 5)), "Too little work")
    assert warning.endswith(": parus 2000_32: 2.0 s, 17 samples; --input-size 5600 is enough")


def test_the_suggested_input_size_is_enough_at_the_first_try() -> None:
    noise = random.Random(1)
    for _ in range(300):
        speed, size = 10 ** noise.uniform(0, 4), 2000
        start_up, jitter = noise.uniform(0.1, 20), noise.uniform(0, 0.3)
        if size / speed > 4 or size / speed < jitter / 2:
            continue
        inits = [start_up + jitter * noise.random() for _ in range(5)]

        def measure(
            size: int, start_up: float = start_up, jitter: float = jitter, speed: float = speed
        ) -> list[float]:
            return [start_up + jitter * noise.random() + size / speed for _ in range(5)]

        try:
            logs = make_logs(init=inits, long=measure(size))
            told = find_warning(compute(logs), "Too little work")
        except IncompleteStats as error:
            told = str(error)
        enough = int(re.findall(r"--input-size (\d+) is enough", told)[0])
        assert enough / speed >= 5, (size / speed, jitter, enough)
        assert enough / speed <= 50


def test_a_run_as_short_as_the_start_up_is_told_an_input_size() -> None:
    with pytest.raises(DataError, match=r"--input-size 430000 is enough"):
        compute(make_logs(init=[10.0, 10.05, 10.1], long=[9.99, 10.0, 10.0]))


def test_a_wide_spread_is_told_without_inviting_to_pick_runs() -> None:
    stats = compute(make_logs(long=[110, 110, 90, 110, 111]))
    warning = find_warning(stats, "The speed varies")
    assert "measure more of all of them" in warning
    assert warning.endswith(": parus 2000_32: 11%, from 19.8 to 25")


def test_a_narrow_spread_is_no_warning() -> None:
    assert compute(make_logs(long=[110, 112, 108, 111, 109])).warnings == ()


def test_cold_start_ups_are_named() -> None:
    warning = find_warning(compute(make_logs([27, 28, 18, 18.5, 18])), "Start-up times differ")
    assert "1_1_01.jsonl 27.0 s, 1_1_02.jsonl 28.0 s; the fastest: 1_1_03.jsonl 18.0 s" in warning


def test_warm_start_ups_are_no_warning() -> None:
    assert compute(make_logs([18, 19, 20, 21, 22])).warnings == ()


# Tables


@pytest.fixture
def one_model() -> Stats:
    return compute(make_logs() + make_logs(task="a,b"))


@pytest.fixture
def two_models() -> Stats:
    return compute(make_logs() + make_logs(model="модель"))


def test_json_lines_hold_the_keys_in_their_order(one_model: Stats) -> None:
    lines = [json.loads(line) for line in render(one_model, "jsonl").splitlines()]
    assert [list(line) for line in lines] == [KEYS, KEYS]
    assert lines[1]["task"] == "parus"
    assert lines[1]["rps"] == 20.0


def test_the_model_comes_first_where_there_are_several(two_models: Stats) -> None:
    assert [list(row) for row in to_rows(two_models)] == [["model", *KEYS]] * 2
    assert [row["model"] for row in to_rows(two_models)] == ["rubert", "модель"]


def test_csv_reads_back(one_model: Stats) -> None:
    rows = list(csv.DictReader(StringIO(render(one_model, "csv"))))
    assert [list(row) for row in rows] == [KEYS, KEYS]
    assert [row["task"] for row in rows] == ["a,b", "parus"]
    assert float(rows[0]["rps"]) == 20.0


def test_unknown_values_are_empty_in_csv_and_left_out_of_the_table() -> None:
    stats = compute([make_log(INIT, 1, 10.0, gpu_ram=None), make_log(LONG, 1, gpu_ram=None)])
    (row,) = csv.DictReader(StringIO(render(stats, "csv")))
    known = ["task", "rps", "init_time", "input_size", "batch_size", "runs", "init_runs", "ram"]
    assert [key for key, cell in row.items() if cell != ""] == known
    assert "GPU" not in render_table(stats)


def test_what_one_of_several_tasks_lacks_is_a_dash() -> None:
    unseen = [make_log(INIT, n, gpu_ram=None, task="rcb") for n in (1, 2)]
    unseen += [make_log(LONG, n, 200.0, gpu_ram=None, task="rcb") for n in (1, 2)]
    lines = render_table(compute([*make_logs(), *unseen])).splitlines()
    assert [line.split().count("-") for line in lines[2:]] == [0, 2]


def test_the_table_is_aligned(two_models: Stats) -> None:
    names, units, *lines = render_table(two_models).splitlines()
    assert " ".join(names.split()) == "task records batch speed +- by init RAM GPU RAM + batch runs"
    assert units.split() == ["rec/s", "%", "s", "GB", "GB", "GB"]
    assert [line.split()[:4] for line in lines] == [
        ["rubert:"],
        ["parus", "2000", "32", "20.0"],
        ["модель:"],
        ["parus", "2000", "32", "20.0"],
    ]
    assert len({len(line) for line in (names, lines[1], lines[3])}) == 1
    assert max(map(len, (names, units, *lines))) <= 80


@pytest.mark.parametrize("form", ["jsonl", "csv", "table"])
def test_every_line_ends_with_a_newline(one_model: Stats, form: Format) -> None:
    text = render(one_model, form)
    assert text.endswith("\n")
    assert "" not in text.splitlines()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.01234, "0.0123"),
        (4.389, "4.39"),
        (98.66, "98.7"),
        (1070.28, "1070"),
    ],
)
def test_numbers_have_three_significant_digits(value: float | None, text: str) -> None:
    assert format_number(value) == text


def test_nothing_heavy_is_imported() -> None:
    heavy = {"docker", "matplotlib", "numpy", "pandas", "rich"}
    code = f"import sys, morocco.stats.render; print(*sorted({heavy!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
