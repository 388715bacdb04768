"""What makes a run a failed one, and what makes a good one doubtful."""

from __future__ import annotations

from dataclasses import replace

import pytest

from morocco.bench.outcome import Outcome, find_failure, find_warnings, quote_stderr
from morocco.errors import NoPredictions, OutOfMemory, TargetError, UnreadInput
from morocco.logs.record import Peaks
from morocco.targets.target import Exit

GOOD = Outcome(
    exit=Exit(0, ended=9.0),
    records=2000,
    distinct=100,
    fed=2000,
    unread=0,
    predicted=2000,
    peaks=Peaks(ram=3 * 2**30, gpu_ram=2**30, gpu_ram_source="process"),
    gpus=1,
)
KILLED = Exit(137, ended=9.0, out_of_memory=True)


def failure(outcome: Outcome) -> TargetError:
    found = find_failure(outcome)
    assert found is not None
    return found


def warnings(outcome: Outcome) -> list[str]:
    assert find_failure(outcome) is None
    return list(find_warnings(outcome))


def test_a_good_run_has_neither_failure_nor_warning() -> None:
    assert find_failure(GOOD) is None
    assert warnings(GOOD) == []


def test_a_target_killed_for_memory_is_told_its_limit() -> None:
    found = failure(replace(GOOD, exit=KILLED, limits={"memory": "3g"}))
    assert type(found) is OutOfMemory
    assert "it needed more than --memory 3g" in str(found)


def test_a_target_killed_for_memory_without_a_limit_met_that_of_the_machine() -> None:
    found = failure(replace(GOOD, exit=KILLED, peaks=Peaks()))
    assert type(found) is OutOfMemory
    assert "the machine had none left" in str(found)
    assert "sample" not in str(found)


def test_a_target_killed_for_memory_without_a_limit_is_told_its_peak() -> None:
    found = failure(replace(GOOD, exit=KILLED, limits={}, peaks=Peaks(ram=3 * 2**30)))
    assert "The largest sample of its RAM was 3.00 GB" in str(found)


def test_a_target_killed_by_signal_9_most_likely_met_the_end_of_memory() -> None:
    found = failure(replace(GOOD, exit=Exit(137, ended=9.0)))
    assert type(found) is OutOfMemory
    assert "killed by signal 9 and morocco did not do it" in str(found)


def test_an_exit_code_is_told_with_how_far_the_run_came() -> None:
    found = failure(replace(GOOD, exit=Exit(3, 9.0), fed=1500, unread=2048, predicted=1))
    assert type(found) is TargetError
    assert str(found).startswith(
        "The target ended with exit code 3: 1,500 of 2,000 records handed over, 2 KB of input left "
        "unread, 1 prediction back."
    )


@pytest.mark.parametrize("changes", [{"fed": 1999}, {"unread": 1}])
def test_a_target_that_did_not_read_its_input_failed(changes: dict[str, int]) -> None:
    found = failure(replace(GOOD, **changes))  # type: ignore[arg-type]
    assert type(found) is UnreadInput
    assert "must read stdin to its end" in str(found)


def test_a_target_that_printed_nothing_failed() -> None:
    found = failure(replace(GOOD, predicted=0))
    assert type(found) is NoPredictions
    assert "one JSON object a line to stdout" in str(found)


def test_the_first_cause_is_the_one_that_is_told() -> None:
    worst = replace(GOOD, exit=KILLED, fed=10, predicted=0)
    causes = [
        failure(worst),
        failure(replace(worst, exit=Exit(1, 9.0))),
        failure(replace(worst, exit=Exit(0, 9.0))),
        failure(replace(worst, exit=Exit(0, 9.0), fed=2000)),
    ]
    assert [type(cause) for cause in causes] == [
        OutOfMemory,
        TargetError,
        UnreadInput,
        NoPredictions,
    ]


@pytest.mark.parametrize(
    "bad",
    [
        {"exit": KILLED},
        {"exit": Exit(137, 9.0)},
        {"exit": Exit(1, 9.0)},
        {"fed": 1},
        {"predicted": 0},
    ],
)
def test_every_failure_quotes_what_the_target_logged(bad: dict[str, int]) -> None:
    message = str(failure(replace(GOOD, stderr="CUDA error\n", **bad)))  # type: ignore[arg-type]
    assert message.endswith("\nIts last lines on stderr:\n  CUDA error")


def test_at_most_ten_lines_are_quoted_each_cut_short() -> None:
    lines = [f"line {number} " + "x" * 1000 for number in range(30)]
    _, *quoted = quote_stderr("\n\n".join(lines)).strip().splitlines()
    assert [line.split()[1] for line in quoted] == [str(number) for number in range(20, 30)]
    assert max(map(len, quoted)) <= 302


@pytest.mark.parametrize("stderr", ["", "\n \n"])
def test_silence_is_told_too(stderr: str) -> None:
    assert quote_stderr(stderr) == " It logged nothing to stderr."


@pytest.mark.parametrize("predicted", [100, 2000])
def test_one_prediction_a_record_or_one_an_idx_is_right(predicted: int) -> None:
    assert warnings(replace(GOOD, predicted=predicted)) == []


@pytest.mark.parametrize(
    ("distinct", "hint"),
    [(100, "1,999 predictions for 2,000 records with 100 different idx"), (None, "2,000 records:")],
)
def test_any_other_number_of_predictions_is_doubtful(distinct: int | None, hint: str) -> None:
    (warning,) = warnings(replace(GOOD, predicted=1999, distinct=distinct))
    assert hint in warning


def test_a_gpu_that_the_target_was_never_seen_on_is_doubtful() -> None:
    (warning,) = warnings(replace(GOOD, peaks=Peaks(ram=5), gpus=2))
    assert "given 2 GPUs" in warning
    assert "--gpus none" in warning


def test_a_target_without_gpus_needs_none() -> None:
    assert warnings(replace(GOOD, peaks=Peaks(ram=5), gpus=0)) == []


def test_memory_of_the_whole_device_is_told_as_such() -> None:
    peaks = Peaks(ram=5, gpu_ram=6, gpu_ram_source="device")
    (warning,) = warnings(replace(GOOD, peaks=peaks))
    assert "beyond what it held before the start" in warning


def test_a_process_killed_for_memory_in_a_run_that_ended_well_is_doubtful() -> None:
    (warning,) = warnings(replace(GOOD, exit=Exit(0, 9.0, out_of_memory=True)))
    assert "killed for memory" in warning


def test_gpus_that_were_lost_are_named_one_by_one() -> None:
    lost = ("GPU 0 (a): GPU is lost", "GPU 1 (b): Unknown Error")
    first, second = warnings(replace(GOOD, gpus=2, gpus_lost=lost))
    assert first.startswith(lost[0])
    assert second.startswith(lost[1])


def test_missed_samples_are_counted() -> None:
    assert warnings(replace(GOOD, samples_missed=1)) == [
        "1 sample missed: the machine was too busy."
    ]
