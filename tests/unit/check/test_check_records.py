"""The rules of `check` on run records, which may come from strangers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.check.check import check
from morocco.check.profile import RUSSIAN_SUPERGLUE, Machine, Profile
from morocco.check.render import render
from morocco.logs.record import parse_record
from morocco.logs.submission import Entry, Submission
from morocco.util.units import GIB
from sample_logs import make_gpu, make_record
from submissions import ask, change, find, make_submission, with_record, without_records

ONE = Profile(("parus",), "one task", machine=RUSSIAN_SUPERGLUE.machine)
FIRST = "parus/2000_32_01.jsonl"
SECOND = "parus/2000_32_02.jsonl"
HOST = {"cpu": "Broadwell", "cores": 8, "ram": 94 * GIB, "name": "gpu-1"}
JUNK: list[Any] = [True, 0, -1, 2**62, 1e300, "", "x", "\x1b[2J", [], [[]], [1], {}, {"x": [1]}]


@pytest.fixture
def good() -> Submission:
    return make_submission(["parus"])


def spoil(submission: Submission, *files: str, **changes: Any) -> Submission:
    return change(submission, files or [FIRST], with_record(**changes))


def test_a_log_without_a_record_is_a_warning(good: Submission) -> None:
    some = change(good, [FIRST], lambda entry: replace(entry, record=None))
    assert ask(some, "records") == {FIRST: ""}
    assert check(some, ONE).valid
    (files,) = ask(without_records(good), "records")
    assert len(files) == 10


def test_an_unreadable_record_is_explained(good: Submission) -> None:
    some = change(good, [FIRST], lambda e: replace(e, record=None, record_fault="no JSON"))
    assert ask(some, "records") == {FIRST: "no JSON"}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"task": "rcb"}, "the record says rcb, the name parus"),
        ({"input_size": 1000}, "the record says 1000, the name 2000"),
        ({"batch_size": 8}, "the record says 8, the name 32"),
        ({"run_time": 12.0}, "the record says 12.00 s, the log 50.00 s"),
        ({"started": "2022-01-01T00:00:00+00:00"}, "the record is from another time"),
    ],
)
def test_a_record_of_another_run_is_named(good: Submission, changes: Any, what: str) -> None:
    assert ask(spoil(good, **changes), "same-run") == {FIRST: what}
    assert not check(spoil(good, **changes), ONE).valid


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ({"host": HOST | {"cpu": "Skylake"}}, ("CPU Broadwell", "CPU Skylake")),
        ({"host": HOST | {"cores": 4}}, ("cores: 8", "cores: 4")),
        ({"host": HOST | {"ram": 64 * GIB}}, ("RAM: 94 GB", "RAM: 64 GB")),
        ({"gpus": []}, ("GPUs: Tesla V100-SXM2-32GB", "GPUs: none")),
        ({"gpus": [make_gpu(driver="535.1")]}, ("driver 470.57", "driver 535.1")),
        ({"gpus": [make_gpu(power_limit=150.0)]}, ("power limit: 300 W", "power limit: 150 W")),
        ({"machine": "77aa"}, ("machine 3f0c", "machine 77aa")),
    ],
)
def test_one_task_on_two_machines_is_named(
    good: Submission, changes: Any, values: tuple[str, str]
) -> None:
    usual, other = values
    found = ask(spoil(good, **changes), "one-machine")
    assert found[FIRST] == other
    assert sorted(found.values()) == sorted([usual, other])
    assert not check(spoil(good, **changes), ONE).valid


def test_machines_that_differ_only_in_host_name_and_gpu_are_the_same(good: Submission) -> None:
    moved = {"host": HOST | {"name": "gpu-2"}, "gpus": [make_gpu(uuid="GPU-2")]}
    assert ask(spoil(good, **moved), "one-machine") == {}


def test_different_tasks_may_use_different_machines() -> None:
    both = make_submission(["parus", "rcb"])
    rcb = [str(entry.path) for entry in both.entries if entry.path.task == "rcb"]
    elsewhere = change(both, rcb, with_record(host=HOST | {"cpu": "Skylake"}))
    assert ask(elsewhere, "one-machine") == {}


@pytest.mark.parametrize(
    ("rule", "changes", "what"),
    [
        ("one-image", {"target": {"image_id": "sha256:2"}}, "image sha256:2"),
        ("one-image", {"target": {"target": "exec:a", "image_id": None}}, "image exec:a"),
        ("one-input", {"data": {"sha256": "77"}}, "SHA-256 77"),
    ],
)
def test_one_task_has_one_image_and_one_data_file(
    good: Submission, rule: str, changes: Any, what: str
) -> None:
    assert ask(spoil(good, **changes), rule)[FIRST] == what
    assert not check(spoil(good, **changes), ONE).valid


def test_foreign_load_is_a_warning_that_names_the_processes(good: Submission) -> None:
    processes = [{"gpu": 0, "name": "python3"}, {"gpu": 0, "name": None}]
    loaded = spoil(good, gpus_before={"used": [0], "processes": processes})
    assert ask(loaded, "foreign-load") == {FIRST: "python3, a hidden process"}
    assert check(loaded, ONE).valid


def test_those_who_came_during_the_run_are_foreign_load_too(good: Submission) -> None:
    before = {"used": [0], "processes": [{"gpu": 0, "pid": 7, "name": "python3"}]}
    users = [{"gpu": 0, "pid": 7, "name": "python3"}, {"gpu": 0, "pid": 8, "name": "train"}]
    loaded = spoil(good, gpus_before=before, gpu_users=users)
    assert ask(loaded, "foreign-load") == {FIRST: "python3, train"}


QUIET = {"cores": 8, "seconds": 40.0, "foreign_cores": 0.1, "foreign_highest": 6.0}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"foreign_cores": 1.64}, "1.6 of 8 cores"),
        ({"foreign_cores": 0.4}, "0.4 of 8 cores"),
        ({"foreign_cores": 0.39}, None),
        ({"foreign_cores": 0.25, "cores": 1}, "0.2 of 1 core"),
        ({"foreign_cores": 4.7, "cores": 96}, None),
        ({"foreign_cores": 1.2, "seconds": 0.4}, None),
        ({"foreign_cores": None}, None),
        ({"seconds": "x", "foreign_cores": 4.0}, None),
    ],
)
def test_a_busy_cpu_is_a_warning_with_its_cores(
    good: Submission, changes: Any, what: str | None
) -> None:
    loaded = spoil(good, load=QUIET | changes)
    assert ask(loaded, "foreign-cpu") == ({} if what is None else {FIRST: what})
    assert check(loaded, ONE).valid


def test_the_warning_of_a_busy_cpu_is_not_repeated(good: Submission) -> None:
    texts = ["5 samples missed.", "Other processes kept 1.6 of 8 cores busy."]
    told = spoil(good, warnings=texts, warning_codes=["samples-missed", "foreign-cpu"])
    assert ask(told, "warnings") == {FIRST: texts[0]}


# Clocks


def clocked(sm_clock: int = 1410, busy: float = 40.0, **seconds: float) -> list[dict[str, Any]]:
    """Return the clocks of GPU 0, throttled for so many seconds by reason."""
    none = dict.fromkeys(("power_cap", "driver_heat", "hardware", "slowdown"), 0.0)
    gpu = {"gpu": 0, "busy": busy, "sm_clock": sm_clock, "sm_clock_max": 1530, "temperature": 91}
    return [gpu | {"throttling": none | seconds}]


def clock_all(submission: Submission, **clocks: Any) -> Submission:
    everywhere = [str(entry.path) for entry in submission.entries]
    return spoil(submission, *everywhere, gpu_clocks=clocked(**clocks))


def test_runs_at_the_usual_clocks_are_good(good: Submission) -> None:
    even = clock_all(good, power_cap=40.0)
    assert ask(spoil(even, gpu_clocks=clocked(1300)), "clocks") == {}
    assert find(check(even, ONE), "clocks").says == "the GPUs ran at their usual clocks"


def test_a_gpu_slowed_down_by_heat_is_flagged_and_its_run_kept(good: Submission) -> None:
    slowed = spoil(good, gpu_clocks=clocked(1005, driver_heat=30.0, slowdown=30.0))
    what = "slowed down for 30 of 40 s at work by heat, up to 91 °C, SM clock 1005 of 1530 MHz"
    assert ask(slowed, "clocks") == {FIRST: what}
    assert check(slowed, ONE).valid


@pytest.mark.parametrize(
    ("seconds", "flagged"), [(1.0, False), (1.9, False), (2.1, True), (40.0, True)]
)
def test_a_moment_of_slowdown_is_no_slow_run(
    good: Submission, seconds: float, flagged: bool
) -> None:
    some = spoil(good, gpu_clocks=clocked(slowdown=seconds, hardware=seconds))
    assert bool(ask(some, "clocks")) is flagged


def test_the_share_that_matters_is_set_by_the_profile(good: Submission) -> None:
    some = spoil(good, gpu_clocks=clocked(slowdown=8.0, hardware=8.0))
    lenient = replace(ONE, thresholds=replace(ONE.thresholds, slowed=0.3))
    assert ask(some, "clocks", lenient) == {}


def test_a_run_at_a_lower_clock_than_the_others_is_flagged(good: Submission) -> None:
    low = spoil(clock_all(good), gpu_clocks=clocked(1100))
    assert ask(low, "clocks") == {FIRST: "SM clock 1100 MHz, 1410 in comparable runs"}


def test_a_run_at_its_power_limit_is_compared_with_runs_of_the_same_work(
    good: Submission,
) -> None:
    files = [str(entry.path) for entry in good.entries if entry.path.input_size == 2000]
    capped = clocked(1000, power_cap=40.0)
    heavy = spoil(clock_all(good), *files, gpu_clocks=capped)
    assert ask(heavy, "clocks") == {}
    slower = spoil(heavy, gpu_clocks=clocked(800, power_cap=40.0))
    assert ask(slower, "clocks") == {FIRST: "SM clock 800 MHz, 1000 in comparable runs"}


@pytest.mark.parametrize("clocks", [clocked(300, busy=3.0), [{"gpu": 0, "busy": 40.0}], []])
def test_clocks_that_say_little_are_not_judged(good: Submission, clocks: Any) -> None:
    assert ask(spoil(clock_all(good), gpu_clocks=clocks), "clocks") == {}


def test_another_gpu_has_clocks_of_its_own(good: Submission) -> None:
    other = {"gpus": [make_gpu(name="Tesla T4")], "gpu_clocks": clocked(600)}
    assert ask(spoil(clock_all(good), **other), "clocks") == {}


def test_warnings_of_bench_are_repeated(good: Submission) -> None:
    texts = ["5 samples missed: the machine was too busy.", "GPU 0 is in use by others: x (pid 1)."]
    assert ask(spoil(good, warnings=texts), "warnings") == {FIRST: texts[0]}
    assert check(spoil(good, warnings=texts), ONE).valid


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"gpus": [make_gpu(name="NVIDIA A100")]}, "NVIDIA A100, not V100"),
        ({"gpus": [make_gpu(memory=16 * GIB)]}, "GPU memory 16 GB, not 32"),
        ({"gpus": [make_gpu(), make_gpu()]}, "2 GPUs, not 1"),
        ({"gpus": []}, "0 GPUs, not 1"),
        ({"host": HOST | {"cores": 1}}, "1 core, not 8"),
        ({"host": HOST | {"ram": 48 * GIB}}, "48 GB of RAM, not 96"),
    ],
)
def test_a_machine_other_than_that_of_the_suite_is_a_warning(
    good: Submission, changes: Any, what: str
) -> None:
    everywhere = [str(entry.path) for entry in good.entries]
    checked = check(spoil(good, *everywhere, **changes), ONE)
    (detail,) = find(checked, "reference-machine").details
    assert detail.what == what
    assert checked.valid


def test_a_profile_without_a_machine_accepts_any(good: Submission) -> None:
    for machine in (None, Machine()):
        elsewhere = spoil(good, gpus=[make_gpu(name="NVIDIA A100")])
        assert ask(elsewhere, "reference-machine", replace(ONE, machine=machine)) == {}


# Strangers


def leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every (container, key) below a JSON value."""
    keys = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(keys):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from leaves(inner)


def spoilt_records(entry: Entry) -> Iterator[dict[str, Any]]:
    """Yield the record with each of its values replaced by each piece of junk."""
    assert entry.log
    original = make_record(entry.log)
    for place in range(len(list(leaves(original)))):
        for junk in JUNK:
            record = copy.deepcopy(original)
            container, key = list(leaves(record))[place]
            container[key] = junk
            yield record


def test_no_value_of_a_record_can_break_the_check(good: Submission) -> None:
    few = replace(good, entries=good.entries[4:6])
    for record in spoilt_records(few.entries[0]):
        odd = replace(few.entries[0], record=parse_record(record))
        text = render(check(replace(few, entries=(odd, few.entries[1])), ONE), "text")
        assert text.endswith("INVALID\n")
        assert "\x1b" not in text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)
keys = st.sampled_from(["exit_code", "failure", "gpus", "host", "target", "warnings", "started"])


@given(st.dictionaries(keys, json_values))
def test_any_json_is_read_as_a_record(record: dict[str, Any]) -> None:
    parse_record(record)


def test_an_empty_record_breaks_no_rule(good: Submission) -> None:
    everywhere = [str(entry.path) for entry in good.entries]
    checked = check(change(good, everywhere, lambda e: replace(e, record=parse_record({}))), ONE)
    assert checked.valid
    assert {result.status for result in checked.results} == {"Yes"}
