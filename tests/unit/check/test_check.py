"""The rules of `check` on logs: each is broken alone and names the right files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from morocco.check.check import RULES, check
from morocco.check.profile import RUSSIAN_SUPERGLUE, Profile, Thresholds
from morocco.check.rule import CheckResult, Detail
from morocco.logs.log import Log, LogFault, LogPath
from morocco.logs.record import parse_record
from morocco.logs.samples import Sample
from morocco.logs.submission import Entry, Submission
from sample_logs import INIT, LONG, MB, make_record, make_samples
from submissions import (
    NINE,
    ask,
    change,
    drop,
    find,
    lasting,
    make_entry,
    make_submission,
    with_record,
    with_samples,
    without_records,
)

ONE = Profile(("parus",), "one task")
FIRST = "parus/2000_32_01.jsonl"
SECOND = "parus/2000_32_02.jsonl"


@pytest.fixture
def good() -> Submission:
    return make_submission(["parus"])


def broken(checked: CheckResult) -> list[str]:
    return [result.rule for result in checked.results if result.status != "Yes"]


def test_nothing_is_wrong_with_a_good_submission() -> None:
    checked = check(make_submission())
    assert (checked.valid, broken(checked)) == (True, [])


def test_logs_alone_make_a_submission_too() -> None:
    checked = check(without_records(make_submission()))
    assert (checked.valid, broken(checked)) == (True, ["records"])
    for rule in ("one-machine", "one-image", "foreign-load", "foreign-cpu", "reference-machine"):
        assert find(checked, rule).says.startswith("unknown")


def test_the_rules_are_reported_in_this_order(good: Submission) -> None:
    assert [result.rule for result in check(good).results] == [
        *("complete", "tasks", "sizes", "readable", "forward", "cadence", "late-clock"),
        *("finished", "readings", "gpu", "start-up", "speed", "work", "spread", "gpu-busy"),
        *("records", "same-run", "one-machine", "one-image", "one-input", "copies", "overlap"),
        *("foreign-load", "foreign-cpu", "clocks", "warnings", "reference-machine", "remarks"),
    ]
    assert all(rule.good and rule.bad and (rule.todo or rule.repeat) for rule in RULES)


# Complete


def list_missing(submission: Submission, profile: Profile = RUSSIAN_SUPERGLUE) -> list[Detail]:
    return list(find(check(submission, profile), "complete").details)


def test_a_missing_task_is_named() -> None:
    assert list_missing(drop(make_submission(), "rucos/")) == [Detail("rucos: no runs", "rubert")]


def test_missing_runs_are_numbered() -> None:
    lacking = drop(make_submission(), "rcb/1_1_03", "rcb/1_1_05", "terra/2000_32_01")
    assert [detail.what for detail in list_missing(lacking)] == [
        "rcb: 3 of 5 runs of 1_1 (missing: 03, 05)",
        "terra: 4 of 5 runs of 2000_32 (missing: 01)",
    ]
    assert not check(lacking).valid


def test_both_sizes_are_needed() -> None:
    lacking = drop(make_submission(), "rcb/1_1", "terra/2000")
    assert [detail.what for detail in list_missing(lacking)] == [
        "rcb: 0 of 5 runs of 1_1 (missing: 01, 02, 03, 04, 05)",
        "terra: no long runs",
    ]


def test_each_model_must_be_complete() -> None:
    both = make_submission(models=["a", "b"])
    lacking = replace(
        both, entries=tuple(e for e in both.entries if (e.model, e.path.task) != ("b", "russe"))
    )
    assert list_missing(lacking) == [Detail("russe: no runs", "b")]


def test_one_complete_long_size_is_enough() -> None:
    more = make_submission(["parus"], long=[LONG, (1000, 8)])
    assert list_missing(drop(more, "parus/1000_8_02"), ONE) == []


def test_a_profile_may_ask_for_its_own_sizes(good: Submission) -> None:
    profile = replace(ONE, sizes=("500_4",))
    assert [detail.what for detail in list_missing(good, profile)] == [
        "parus: 0 of 5 runs of 500_4 (missing: 01, 02, 03, 04, 05)"
    ]
    assert find(check(good, profile), "sizes").details[0].files[0] == FIRST


def test_more_runs_than_asked_for_are_welcome() -> None:
    assert check(make_submission(["parus"], runs=6), ONE).valid


def test_an_unreadable_log_does_not_count(good: Submission) -> None:
    fault = LogFault("unreadable", "not JSON", 7)
    cut = change(good, [FIRST], lambda entry: replace(entry, log=None, fault=fault))
    assert ask(cut, "readable") == {FIRST: "line 7: not JSON"}
    assert ask(cut, "forward") == {}
    assert list_missing(cut, ONE)[0].what == "parus: 4 of 5 runs of 2000_32 (missing: 01)"


def test_a_foreign_task_is_a_warning() -> None:
    (detail,) = find(check(make_submission([*NINE, "paruss"])), "tasks").details
    assert detail.files[0] == "paruss/1_1_01.jsonl"
    assert check(make_submission([*NINE, "paruss"])).valid


def test_several_long_sizes_are_a_warning() -> None:
    mixed = make_submission(["parus", "rcb"], long=[LONG, (1000, 8)], runs=2)
    result = find(check(mixed), "sizes")
    assert result.status == "warn"
    assert len(result.details[0].files) == 2 * 2 * 2
    assert ask(make_submission(["parus", "rcb"]), "sizes") == {}


# Samples


def test_time_that_runs_backward_has_its_own_rule(good: Submission) -> None:
    fault = LogFault("backward", "an earlier timestamp", 5)
    spoilt = change(good, [FIRST], lambda entry: replace(entry, log=None, fault=fault))
    assert ask(spoilt, "forward") == {FIRST: "line 5: an earlier timestamp"}
    assert ask(spoilt, "readable") == {}


def test_a_gap_is_named_with_its_line(good: Submission) -> None:
    def leave_out(log: Log) -> tuple[Sample, ...]:
        return (*log.samples[:20], *log.samples[23:])

    assert ask(change(good, [FIRST], with_samples(leave_out)), "cadence") == {
        FIRST: "1.33 s before line 21, 4.0 periods"
    }


@pytest.mark.parametrize(("left_out", "gaps"), [(1, 0), (2, 0), (3, 1)])
def test_a_gap_is_longer_than_three_periods(good: Submission, left_out: int, gaps: int) -> None:
    def leave_out(log: Log) -> tuple[Sample, ...]:
        # A thousandth off: three periods exactly are no gap.
        later = [s._replace(timestamp=s.timestamp - 0.001) for s in log.samples[20 + left_out :]]
        return (*log.samples[:20], *later)

    assert len(ask(change(good, [FIRST], with_samples(leave_out)), "cadence")) == gaps


def test_a_hiccup_at_fifty_samples_a_second_is_no_gap(good: Submission) -> None:
    def hurry(log: Log) -> tuple[Sample, ...]:
        start = log.samples[0].timestamp
        moments = [at for at in range(2500) if not 100 < at < 110]
        return tuple(Sample(start + at / 50, 1.0, at) for at in moments)

    assert ask(change(good, [FIRST], with_samples(hurry)), "cadence") == {}


def test_logs_of_one_or_two_lines_do_not_crash(good: Submission) -> None:
    for lines in (1, 2):
        short = with_samples(lambda log, lines=lines: log.samples[:lines])  # type: ignore[misc]
        everywhere = [str(entry.path) for entry in good.entries]
        assert not check(change(good, everywhere, short), ONE).valid


def test_a_log_without_a_reading_is_named(good: Submission) -> None:
    null = change(good, [FIRST], lasting(50.0, first_ram=None, use=None))
    assert ask(null, "readings") == {FIRST: "151 lines"}
    assert ask(null, "gpu") == {}


# The GPU


def test_a_run_never_seen_on_the_gpu_is_named(good: Submission) -> None:
    spoilt = change(good, [FIRST], lasting(50.0, use=None))
    assert ask(spoilt, "gpu") == {FIRST: "given 1 GPU"}
    assert ask(without_records(spoilt), "gpu") == {FIRST: ""}


def test_a_model_may_run_without_a_gpu_if_its_records_say_so(good: Submission) -> None:
    everywhere = [str(entry.path) for entry in good.entries]

    def on_cpu(entry: Entry) -> Entry:
        return lasting(10.0 if entry.path.input_size == 1 else 50.0, use=None)(entry)

    cpu = change(good, everywhere, on_cpu)
    assert len(ask(cpu, "gpu")) == 10
    assert ask(without_records(cpu), "gpu") == {}
    without_gpus = with_record(arguments={"gpus": "none"})
    assert ask(change(cpu, everywhere, without_gpus), "gpu") == {}


def test_an_idle_gpu_is_a_warning(good: Submission) -> None:
    files = [f"parus/2000_32_0{index}.jsonl" for index in range(1, 6)]
    for use, what in ((0.7, {tuple(files): "70%"}), (0.85, {})):
        assert ask(change(good, files, lasting(50.0, use=use)), "gpu-busy") == what


def test_loading_the_model_does_not_count_as_work(good: Submission) -> None:
    def load_and_wait(log: Log) -> tuple[Sample, ...]:
        uses = [0.95] * 3 + [0.0] * 60 + [0.9] * 80 + [0.0] * 8
        samples = zip(log.samples, uses, strict=False)
        return (*(sample._replace(gpu_usage=use) for sample, use in samples), log.samples[-1])

    assert ask(change(good, [FIRST], with_samples(load_and_wait)), "gpu-busy") == {}


# The clock


def test_much_ram_at_the_first_line_reveals_a_late_clock(good: Submission) -> None:
    late = change(good, [SECOND], lasting(46.0, first_ram=290 * MB))
    assert ask(late, "late-clock") == {SECOND: "290 MB at the first line, 1_1 runs 5 MB"}
    assert not check(late, ONE).valid


def test_a_process_that_starts_large_has_no_late_clock(good: Submission) -> None:
    large = change(
        good,
        [str(entry.path) for entry in good.entries],
        lambda entry: lasting(
            10.0 if entry.path.input_size == 1 else 50.0,
            first_ram=(200 if entry.path.input_size == 1 else 400) * MB,
        )(entry),
    )
    assert ask(large, "late-clock") == {}


def test_cold_starts_are_named(good: Submission) -> None:
    cold = change(good, ["parus/1_1_01.jsonl", "parus/1_1_02.jsonl"], lasting(14.0))
    assert ask(cold, "start-up") == {
        "parus/1_1_01.jsonl": "14.0 s, the fastest 10.0 s",
        "parus/1_1_02.jsonl": "14.0 s, the fastest 10.0 s",
    }


def test_a_tiny_model_may_take_twice_as_long_to_start() -> None:
    quick = make_submission(["parus"])
    for index in range(1, 6):
        quick = change(quick, [f"parus/1_1_0{index}.jsonl"], lasting(0.7 if index == 1 else 0.35))
    assert ask(quick, "start-up") == {}


# The end


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"exit_code": 137}, "exit code 137"),
        ({"failure": {"kind": "OutOfMemory"}}, "failed: out of memory"),
        ({"records_fed": 1500}, "1,500 of 2,000 records fed"),
        ({"predictions": {"count": 0}}, "no predictions"),
        ({"predictions": {"count": 1999}}, "1,999 predictions, other runs 2,000"),
        ({"exit_code": 1, "records_fed": 0}, "exit code 1, 0 of 2,000 records fed"),
    ],
)
def test_the_record_shows_how_a_run_ended(
    good: Submission, changes: dict[str, object], what: str
) -> None:
    spoilt = change(good, [SECOND], with_record(**changes))
    assert ask(spoilt, "finished") == {SECOND: what}
    assert not check(spoilt, ONE).valid


def test_a_model_may_merge_equal_records_into_one_prediction(good: Submission) -> None:
    files = [f"parus/2000_32_0{index}.jsonl" for index in range(1, 6)]
    assert ask(change(good, files, with_record(predictions={"count": 100})), "finished") == {}


def cut(seconds: float, *, record: bool = False) -> Callable[[Entry], Entry]:
    """Make a log of the first tool, which has no closing line, end after these seconds."""

    def make(log: Log) -> tuple[Sample, ...]:
        end = log.samples[0].timestamp + seconds
        return tuple(sample for sample in log.samples[:-1] if sample.timestamp < end)

    return with_samples(make, record=record)


def test_without_a_record_a_run_that_is_short_or_ends_busy_was_cut_off(good: Submission) -> None:
    spoilt = change(good, [FIRST], cut(12.4))
    assert ask(spoilt, "finished") == {FIRST: "12.3 s, others 50.0 s"}
    spoilt = change(good, [FIRST], cut(40.0))
    assert ask(spoilt, "finished") == {FIRST: "GPU 90% busy at the last line"}
    spoilt = change(good, [FIRST], cut(30.0))
    assert ask(spoilt, "finished") == {
        FIRST: "29.7 s, others 50.0 s, GPU 90% busy at the last line"
    }


def test_a_log_without_a_closing_line_was_cut_off_whatever_its_record_says(
    good: Submission,
) -> None:
    cut_off = change(good, [FIRST], cut(40.0, record=True))
    assert ask(cut_off, "finished") == {FIRST: "no closing line"}


def test_a_warm_start_among_cold_ones_was_not_cut_off(good: Submission) -> None:
    cold = [f"parus/1_1_0{index}.jsonl" for index in (1, 2, 3)]
    assert ask(without_records(change(good, cold, lasting(16.0))), "finished") == {}
    assert ask(change(good, ["parus/1_1_01.jsonl"], cut(9.5)), "finished") == {}
    assert list(ask(change(good, ["parus/1_1_01.jsonl"], cut(6.5)), "finished")) == [
        "parus/1_1_01.jsonl"
    ]


# The speed


def test_a_run_that_is_not_longer_than_the_start_up_has_no_speed(good: Submission) -> None:
    short = change(good, [FIRST], lasting(9.0))
    assert ask(short, "speed") == {FIRST: "9.0 s, start-up 10.0 s"}
    assert not check(short, ONE).valid


def test_short_work_is_a_warning_with_a_number(good: Submission) -> None:
    files = [f"parus/2000_32_0{index}.jsonl" for index in range(1, 6)]
    assert ask(change(good, files, lasting(14.0)), "work") == {
        tuple(files): "4.0 s, 12 samples, --input-size 5600 is enough"
    }


def test_a_speed_that_varies_is_told_of_all_runs_and_a_cause_of_the_run_that_has_one(
    good: Submission,
) -> None:
    odd = change(change(good, [FIRST], lasting(60.0)), [SECOND], lasting(46.0))
    files = tuple(f"parus/2000_32_0{index}.jsonl" for index in range(1, 6))
    assert ask(odd, "spread") == {files: "by 11%, 40 to 55.56 rps"}
    assert check(odd, ONE).valid
    assert "more --repeats" in find(check(odd, ONE), "spread").todo
    slowed = change(odd, [FIRST], with_record(warnings=["busy"], warning_codes=["foreign-cpu"]))
    told = f"by 11%, 40 to 55.56 rps; {FIRST.rpartition('/')[2]}: foreign-cpu"
    assert ask(slowed, "spread") == {files: told}


def test_a_speed_that_hardly_varies_is_fine(good: Submission) -> None:
    assert ask(change(good, [FIRST], lasting(52.0)), "spread") == {}


def test_thresholds_come_from_the_profile(good: Submission) -> None:
    profile = replace(ONE, thresholds=Thresholds(spread=0.01, gpu_busy=0.95))
    assert ask(change(good, [FIRST], lasting(52.0)), "spread", profile)
    assert ask(good, "gpu-busy", profile)


# Copies and overlaps


def shift(entry: Entry, index: int, seconds: float) -> Entry:
    """Return another run with the same readings, these seconds later."""
    assert entry.log
    moved = [s._replace(timestamp=s.timestamp + seconds) for s in entry.log.samples]
    return make_entry(replace(entry.path, index=index), tuple(moved))


def test_the_same_file_under_two_names_is_a_copy(good: Submission) -> None:
    first = next(entry for entry in good.entries if str(entry.path) == FIRST)
    copied = change(good, [SECOND], lambda _: replace(shift(first, 2, 0), digest=first.digest))
    assert ask(copied, "copies") == {SECOND: f"same file as {FIRST}"}
    assert not check(copied, ONE).valid


def test_a_copy_shifted_in_time_is_a_copy(good: Submission) -> None:
    first = next(entry for entry in good.entries if str(entry.path) == FIRST)
    copied = change(good, [SECOND], lambda _: shift(first, 2, 77_777.123456))
    assert ask(copied, "copies") == {SECOND: f"same readings as {FIRST}"}


def test_a_copy_with_another_rhythm_is_a_copy(good: Submission) -> None:
    def stretch(entry: Entry) -> Entry:
        copied = shift(first, 2, 5000)
        assert copied.log
        samples = copied.log.samples
        bent = [s._replace(timestamp=s.timestamp + at**2 / 1e4) for at, s in enumerate(samples)]
        return make_entry(entry.path, tuple(bent))

    first = next(entry for entry in good.entries if str(entry.path) == FIRST)
    assert list(ask(change(good, [SECOND], stretch), "copies")) == [SECOND]


def test_a_copy_from_another_model_is_a_copy() -> None:
    both = make_submission(["parus"], ["a", "b"])
    original = next(entry for entry in both.entries if entry.model == "a")

    def copy(entry: Entry) -> Entry:
        return replace(entry, digest=original.digest) if entry.model == "b" else entry

    (what,) = ask(change(both, [str(original.path)], copy), "copies").values()
    assert what == f"same file as a/{original.path}"


def test_logs_without_readings_are_not_copies_of_each_other(good: Submission) -> None:
    def null(entry: Entry) -> Entry:
        odd = 0.002 * entry.path.index
        return with_samples(
            lambda log: tuple(
                Sample(log.samples[0].timestamp + at + odd * (at % 2)) for at in range(10)
            )
        )(entry)

    files = [f"parus/1_1_0{index}.jsonl" for index in range(1, 6)]
    assert ask(change(good, files, null), "copies") == {}
    again = change(
        good,
        files,
        with_samples(lambda log: tuple(Sample(log.samples[0].timestamp + at) for at in range(10))),
    )
    assert len(ask(again, "copies")) == 4


def beside(entry: Entry) -> Entry:
    """Start a run in the middle of the one before."""
    assert entry.log
    start = entry.log.samples[0].timestamp - 100.7 + 20
    return make_entry(entry.path, make_samples(start, 50.0), entry.model)


def test_simultaneous_runs_are_named(good: Submission) -> None:
    spoilt = change(good, [SECOND], beside)
    assert ask(spoilt, "overlap") == {SECOND: f"30.0 s beside {FIRST}"}
    assert ask(without_records(spoilt), "overlap") == {SECOND: f"30.0 s beside {FIRST}"}
    assert not check(spoilt, ONE).valid


def test_a_log_of_one_line_overlaps_with_nothing(good: Submission) -> None:
    spoilt = change(good, [SECOND], beside)
    spoilt = change(spoilt, [SECOND], with_samples(lambda log: tuple(log.samples[:1])))
    assert ask(spoilt, "overlap") == {}


def test_runs_one_after_the_other_do_not_overlap(good: Submission) -> None:
    def follow(entry: Entry) -> Entry:
        assert entry.log
        start = entry.log.samples[0].timestamp - 100.7 + 50
        return make_entry(entry.path, make_samples(start, 50.0))

    assert ask(change(good, [SECOND], follow), "overlap") == {}


@pytest.mark.parametrize(
    ("changes", "overlaps"),
    [
        ({"host": {"name": "gpu-2"}}, False),
        ({"machine": "77aa"}, False),
        ({"gpus": [{"uuid": "GPU-2"}]}, False),
        ({"gpus": [{"uuid": "GPU-2"}, {"uuid": "GPU-1"}]}, True),
        ({"gpus": []}, True),
    ],
)
def test_runs_on_different_machines_or_gpus_may_overlap(
    good: Submission, changes: dict[str, object], overlaps: bool
) -> None:
    spoilt = change(good, [SECOND], lambda entry: with_record(**changes)(beside(entry)))
    assert bool(ask(spoilt, "overlap")) == overlaps


def test_models_of_two_authors_may_overlap_unless_they_share_a_machine() -> None:
    one, other = make_submission(["parus"], ["a"]), make_submission(["rcb"], ["b"])

    def late(entry: Entry) -> Entry:
        # Neither at the same moment nor with the same readings.
        assert entry.log
        start = entry.log.samples[0].timestamp + 1
        return make_entry(entry.path, make_samples(start, entry.log.run_time), entry.model)

    other = change(other, [str(entry.path) for entry in other.entries], late)
    both = Submission((*one.entries, *other.entries), many_models=True)
    assert ask(without_records(both), "overlap") == {}
    assert len(ask(both, "overlap")) == 10


def test_skipped_files_are_a_warning(good: Submission) -> None:
    checked = check(replace(good, remarks=("x.jsonl.failed: a run that failed",)), ONE)
    assert find(checked, "remarks").details == (Detail("x.jsonl.failed: a run that failed"),)
    assert checked.valid


def test_the_builder_makes_what_it_says() -> None:
    entry = make_entry(LogPath("parus", *INIT, 1), make_samples(5.0, 10.0))
    assert entry.log
    assert entry.log.run_time == 10.0
    assert entry.record == parse_record(make_record(entry.log))
