"""What makes a run a failed one, and what makes a good one doubtful."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from morocco.bench.outcome import (
    Measurement,
    Prepared,
    RunWarning,
    build_failure,
    judge,
    warn_of_gpu_users,
    warn_of_other_runs,
)
from morocco.errors import NoPredictions, OutOfMemory, TargetError, UnreadInput, name_cause
from morocco.hardware.clocks import ClockReading, summarise
from morocco.hardware.info import GpuInfo, GpuProcess, Load, Throttling
from morocco.logs.record import FOREIGN_CPU, GpusBefore, Monitor, Output
from morocco.logs.samples import Peaks
from morocco.targets.target import Exit, Identity
from morocco.tasks import Records

GPU = GpuInfo(0, "GPU-0", "H100", 80 * 2**30, "550", "12.4", False, 700.0)
PREPARED = Prepared(
    Records(Path("val.jsonl"), count=2000, distinct=100, sha256="0"),
    Identity("rubert"),
    (GPU,),
    GpusBefore((0,), ()),
)
GOOD = Measurement(
    started=1.0,
    exit=Exit(0, ended=9.0),
    fed=2000,
    predictions=Output(2000, "0", None, None),
    peaks=Peaks(ram=3 * 2**30, gpu_ram=2**30, gpu_ram_source="process"),
    monitor=Monitor(samples_due=25, samples_missed=0, cpu_time=0.1),
)
KILLED = Exit(137, ended=9.0, out_of_memory=True)
NOTHING = Output(0, "0", None, None)


def fail(prepared: Prepared = PREPARED, **changes: Any) -> TargetError:
    """Return why a run fails that differs from the good one."""
    with pytest.raises(TargetError) as raised:
        judge(prepared, replace(GOOD, **changes))
    return raised.value


def warn(prepared: Prepared = PREPARED, **changes: Any) -> RunWarning:
    """Return the one warning of a run that differs from the good one."""
    (warning,) = judge(prepared, replace(GOOD, **changes))
    return warning


def limit(**limits: str) -> Prepared:
    return replace(PREPARED, target=Identity("rubert", limits=limits))


def test_a_good_run_has_neither_failure_nor_warning() -> None:
    assert judge(PREPARED, GOOD) == ()


def test_the_message_for_too_little_memory_names_the_limit() -> None:
    found = fail(limit(memory="3g"), exit=KILLED)
    assert type(found) is OutOfMemory
    assert "--memory 3g" in str(found)


def test_without_a_limit_it_was_the_memory_of_the_machine() -> None:
    found = fail(exit=KILLED, peaks=Peaks())
    assert type(found) is OutOfMemory
    assert "the machine ran out" in str(found)
    assert "peaked" not in str(found)


def test_without_a_limit_the_message_names_the_peak() -> None:
    assert "3.00 GB" in str(fail(exit=KILLED))


def test_a_target_killed_by_signal_9_most_likely_ran_out_of_memory() -> None:
    found = fail(exit=Exit(137, ended=9.0))
    assert type(found) is OutOfMemory
    assert "signal 9" in str(found)
    assert "3.00 GB" in str(found)


@pytest.mark.parametrize(
    ("limits", "stderr", "option"),
    [
        ({"capabilities": "CHOWN"}, "chroot: Operation not permitted", "--cap-add"),
        ({"pids": "20"}, "RuntimeError: can't start new thread", "--pids-limit"),
        ({"pids": "20"}, "fork: Resource temporarily unavailable", "--pids-limit"),
        ({"read_only": "yes"}, "Read-only file system: 'cache'", "--read-only"),
        ({"network": "none"}, "[Errno -3] Temporary failure in name resolution", "--network"),
    ],
)
def test_a_container_that_met_a_limit_is_told_the_option(
    limits: dict[str, str], stderr: str, option: str
) -> None:
    failed: dict[str, Any] = {"exit": Exit(1, 9.0), "stderr": stderr}
    assert option in str(fail(limit(**limits), **failed)).splitlines()[0]
    assert option not in str(fail(**failed))


def test_a_container_that_has_a_network_is_not_told_to_take_one() -> None:
    failed: dict[str, Any] = {"exit": Exit(1, 9.0), "stderr": "Name or service not known"}
    assert "--network" not in str(fail(limit(network="bridge"), **failed))


def test_an_exit_code_comes_with_how_far_the_run_got() -> None:
    predictions = replace(NOTHING, count=1)
    found = fail(exit=Exit(3, 9.0), fed=1500, unread=2048, predictions=predictions)
    assert type(found) is TargetError
    for fact in ("code 3", "1,500 of 2,000 records", "2 KB of input", "1 prediction back"):
        assert fact in str(found)


@pytest.mark.parametrize("changes", [{"fed": 1999}, {"unread": 1}])
def test_a_target_that_did_not_read_its_input_failed(changes: dict[str, Any]) -> None:
    found = fail(**changes)
    assert type(found) is UnreadInput
    assert "must read stdin to its end" in str(found)


def test_a_target_that_printed_nothing_failed() -> None:
    found = fail(predictions=NOTHING)
    assert type(found) is NoPredictions
    assert "one JSON object per line to stdout" in str(found)


def test_the_first_cause_is_the_one_that_is_reported() -> None:
    causes = [
        fail(exit=KILLED, fed=10, predictions=NOTHING),
        fail(exit=Exit(1, 9.0), fed=10, predictions=NOTHING),
        fail(exit=Exit(0, 9.0), fed=10, predictions=NOTHING),
        fail(exit=Exit(0, 9.0), predictions=NOTHING),
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
        {"predictions": NOTHING},
    ],
)
def test_every_failure_quotes_what_the_target_logged(bad: dict[str, Any]) -> None:
    found = fail(stderr="CUDA error\n", **bad)
    assert found.quoted == ("CUDA error",)
    assert str(found).endswith("\n    CUDA error")


def test_at_most_ten_lines_are_quoted_each_cut_short() -> None:
    lines = [f"line {number} " + "x" * 1000 for number in range(30)]
    quoted = build_failure(TargetError, "It failed.", "\n\n".join(lines)).quoted
    assert [line.split()[1] for line in quoted] == [str(number) for number in range(20, 30)]
    assert max(map(len, quoted)) <= 300


@pytest.mark.parametrize("stderr", ["", "\n \n"])
def test_silence_on_stderr_is_reported_too(stderr: str) -> None:
    found = build_failure(TargetError, "It failed.", stderr)
    assert found.quoted == ()
    assert "nothing to stderr" in str(found)


@pytest.mark.parametrize(
    ("kind", "exit_code", "cause"),
    [
        ("OutOfMemory", 137, "out of memory"),
        ("TimedOut", None, "timed out"),
        ("TargetError", 3, "exit code 3"),
        ("TargetError", None, "cannot start"),
        ("Interrupted", None, "interrupted"),
        ("ZeroDivisionError", None, "ZeroDivisionError"),
        (None, 3, "exit code 3"),
        (None, 0, None),
        (None, None, None),
    ],
)
def test_a_record_names_the_same_cause_as_the_error(
    kind: str | None, exit_code: int | None, cause: str | None
) -> None:
    assert name_cause(kind, exit_code) == cause


def test_the_cause_of_an_error_is_that_of_its_class_or_its_exit_code() -> None:
    assert fail(exit=KILLED).cause == name_cause("OutOfMemory", 137)
    assert fail(exit=Exit(3, 9.0)).cause == name_cause("TargetError", 3)


@pytest.mark.parametrize("predicted", [100, 2000])
def test_one_prediction_per_record_or_per_idx_is_right(predicted: int) -> None:
    assert judge(PREPARED, replace(GOOD, predictions=replace(NOTHING, count=predicted))) == ()


@pytest.mark.parametrize(
    ("distinct", "hint"),
    [(100, "1,999 predictions for 2,000 records with 100 different idx"), (None, "2,000 records:")],
)
def test_any_other_number_of_predictions_is_doubtful(distinct: int | None, hint: str) -> None:
    prepared = replace(PREPARED, records=replace(PREPARED.records, distinct=distinct))
    warning = warn(prepared, predictions=replace(NOTHING, count=1999))
    assert warning.code == "prediction-count"
    assert hint in warning.message


def test_a_gpu_that_the_target_was_never_seen_on_is_doubtful() -> None:
    warning = warn(replace(PREPARED, gpus=(GPU, GPU)), peaks=Peaks(ram=5))
    assert warning.code == "gpu-unused"
    assert "2 GPUs" in warning.message
    assert "--gpus none" in warning.message


def test_a_target_without_gpus_needs_none() -> None:
    assert judge(replace(PREPARED, gpus=()), replace(GOOD, peaks=Peaks(ram=5))) == ()


def test_memory_of_the_whole_device_is_marked_as_such() -> None:
    warning = warn(peaks=Peaks(ram=5, gpu_ram=6, gpu_ram_source="device"))
    assert warning.code == "gpu-ram-of-device"
    assert "gpu_ram" in warning.message


def test_a_process_killed_for_memory_in_a_run_that_ended_well_is_doubtful() -> None:
    assert warn(exit=Exit(0, 9.0, out_of_memory=True)).code == "out-of-memory"


def test_gpus_that_were_lost_are_named_one_by_one() -> None:
    lost = ("GPU 0 (a): GPU is lost", "GPU 1 (b): Unknown Error")
    warnings = judge(PREPARED, replace(GOOD, gpus_lost=lost))
    assert [warning.code for warning in warnings] == ["gpu-lost"] * 2
    assert [warning.message.partition(".")[0] for warning in warnings] == list(lost)


def test_a_gpu_that_was_slowed_down_is_named_with_the_cause() -> None:
    hot = [ClockReading(1.0, 1005, 1593, 91, 250.0, 0x20)] * 30
    cool = [ClockReading(1.0, 1410, 1593, 70, 300.0, 0x4)] * 10
    warning = warn(gpu_clocks=(summarise(1, [*cool, *hot], highest=1410),))
    assert warning.code == "gpu-slowed"
    assert "GPU 1 was slowed down for 30 of 40 s at work by heat, up to 91 °C" in warning.message
    assert "SM clock 1005 of 1410 MHz" in warning.message


def test_a_gpu_at_its_power_limit_is_not_slowed_down() -> None:
    capped = summarise(0, [ClockReading(1.0, 1200, 1593, 70, 400.0, 0x4)] * 40)
    assert judge(PREPARED, replace(GOOD, gpu_clocks=(capped,))) == ()


def test_someone_who_came_to_a_gpu_during_the_run_is_named_once() -> None:
    old, new = (GpuProcess(gpu=0, pid=pid, name="sleep", memory=None) for pid in (7, 8))
    prepared = replace(PREPARED, gpus_before=GpusBefore((0,), (old,)))
    (warning,) = judge(prepared, replace(GOOD, gpu_users=(old, new)))
    assert warning.code == "gpu-in-use"
    assert "GPU 0 was used by others during the run: sleep (pid 8)" in warning.message


def run_command(command: str) -> Prepared:
    target = Identity(f"exec:{command}", (*command.split(), "--batch-size", "32"))
    return replace(PREPARED, target=target, gpus=())


@pytest.mark.parametrize(
    ("command", "cores"),
    [("python client.py", 0.04), ("docker run -i x", 0.15), ("sh -c '/usr/bin/ssh h x'", 0.15)],
)
def test_a_process_that_uses_next_to_no_cpu_works_elsewhere(command: str, cores: float) -> None:
    warning = warn(run_command(command), cores=cores, peaks=Peaks(ram=5))
    assert warning.code == "works-elsewhere"
    assert f"{cores} cores" in warning.message


@pytest.mark.parametrize(
    ("prepared", "changes"),
    [
        (run_command("python infer.py"), {"cores": 0.15}),
        (run_command("python infer.py"), {"cores": None}),
        (run_command("python docker/infer.py"), {"cores": 0.15}),
        (run_command("docker run x"), {"cores": 0.5}),
        (run_command("python infer.py"), {"cores": 0.01, "peaks": Peaks(5, 2**30, "process")}),
        (replace(PREPARED, gpus=()), {"cores": 0.01}),
    ],
)
def test_a_process_that_works_here_is_not_doubtful(
    prepared: Prepared, changes: dict[str, Any]
) -> None:
    assert judge(prepared, replace(GOOD, **{"peaks": Peaks(ram=5), **changes})) == ()


def test_missed_samples_are_counted() -> None:
    warning = warn(monitor=Monitor(samples_due=25, samples_missed=1, cpu_time=0.1))
    assert warning.code == "samples-missed"
    assert warning.message.startswith("1 sample missed")


def test_each_process_on_a_gpu_before_the_start_is_named() -> None:
    known = GpuProcess(gpu=0, pid=7, name="sleep", memory=None)
    hidden = GpuProcess(gpu=1, pid=8, name=None, memory=None)
    warnings = list(warn_of_gpu_users(GpusBefore((0, 0), (known, hidden))))
    assert [warning.code for warning in warnings] == ["gpu-in-use"] * 2
    assert "GPU 0 is in use by others: sleep (pid 7)" in warnings[0].message
    assert "GPU 1 is in use by others: a hidden process (pid 8)" in warnings[1].message


# What else was at work on the machine


@pytest.mark.parametrize(
    ("load", "code", "figure"),
    [
        (Load(2, 5.0, foreign_cores=1.62, foreign_highest=1.9), FOREIGN_CPU, "1.6 of 2 cores"),
        (Load(2, 5.0, 0.02, 0.1, stolen_cores=0.5), "steal", "0.5 of 2 cores"),
        (Load(swapped_in=2**30), "swapping", "1.00 GB"),
        (Load(throttling=Throttling(400, 120, 3.5)), "throttled", "120 of 400 periods"),
    ],
)
def test_what_slows_a_target_down_is_told_with_its_figure(
    load: Load, code: str, figure: str
) -> None:
    found = warn(load=load)
    assert found.code == code
    assert figure in found.message


@pytest.mark.parametrize(
    "load",
    [
        Load(),
        Load(2, 60.0, foreign_cores=0.2, foreign_highest=2.0),
        Load(1, 0.33, foreign_cores=0.9, foreign_highest=0.9),
        Load(64, 60.0, foreign_cores=3.0, foreign_highest=30.0),
        Load(2, 5.0, 0.0, 0.0, stolen_cores=0.1),
        Load(swapped_in=2**20, swapped_out=2**34),
        Load(throttling=Throttling(400, 12, 3.5)),
    ],
)
def test_a_little_of_it_is_not_told(load: Load) -> None:
    assert judge(PREPARED, replace(GOOD, load=load)) == ()


def test_a_quota_that_was_asked_for_is_not_told() -> None:
    asked = limit(cpus="1.5")
    assert judge(asked, replace(GOOD, load=Load(throttling=Throttling(400, 120, 3.5)))) == ()


def test_another_run_on_this_machine_is_named() -> None:
    (warning,) = warn_of_other_runs(["exec:python infer.py (pid 77)"])
    assert warning.code == "other-runs"
    assert "exec:python infer.py (pid 77)" in warning.message
