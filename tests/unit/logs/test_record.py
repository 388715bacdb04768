"""Run records: written with every field, read from anybody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs import make_job, write_run
from morocco.hardware.info import GpuInfo, GpuProcess, Load, Pressure, Throttling
from morocco.logs.record import GPU_IN_USE, Failure, GpusBefore, Output, RunRecord, parse_record

UUID = "GPU-6bd9b2c2"
LOAD = Load(
    cores=2,
    seconds=1.333,
    foreign_cores=0.02,
    foreign_highest=0.5,
    stolen_cores=0.0,
    swapped_in=4096,
    swapped_out=0,
    pressure=Pressure(0.2, 0.0, None),
    throttling=Throttling(10, 1, 0.04),
    other_runs=("exec:python infer.py (pid 77)",),
)


def test_a_record_that_was_written_is_read_back_whole(tmp_path: Path) -> None:
    written = write_run(
        make_job(logs=tmp_path),
        gpus=(GpuInfo(0, UUID, "Tesla V100", 2**35, "470.57", "11.4", None, 300.0),),
        gpus_before=GpusBefore((2**20, None), (GpuProcess(0, 77, None, None),)),
        predictions=Output(20, "ab", "2022-06-17T14:00:00+00:00", None),
        load=LOAD,
        warnings=("1 sample missed.",),
        warning_codes=("samples-missed",),
    )
    content = make_job(logs=tmp_path).path.with_suffix(".json").read_bytes()
    record = parse_record(content)
    assert json.loads(content) == json.loads(json.dumps(record.to_json()))
    assert list(json.loads(content))[:3] == ["format", "morocco", "target"]
    assert record.machine == written["machine"]
    assert record.gpus == (GpuInfo(0, UUID, "Tesla V100", 2**35, "470.57", "11.4", None, 300.0),)
    assert record.prediction_count == 20
    assert record.load == LOAD


def test_a_record_that_says_nothing_is_empty() -> None:
    record = parse_record({})
    assert (record.format, record.task, record.input_size, record.exit_code) == (None,) * 4
    assert (record.records_fed, record.prediction_count, record.gpus, record.failure) == (None,) * 4
    assert (record.image, record.start_time, record.machine, record.energy) == (None,) * 4
    assert (record.data.sha256, record.host.name, record.host.cores) == ("", "", 0)
    assert (record.arguments, record.warnings, record.warning_codes) == ({}, (), ())


@pytest.mark.parametrize("value", [-1, 1e-300, 2**61, 2**62])
def test_an_amount_that_no_machine_can_have_is_unknown(value: float) -> None:
    record = parse_record({"energy": value, "peaks": {"ram": value, "gpu_ram": value}})
    assert (record.energy, record.peaks.ram, record.peaks.gpu_ram) == (None, None, None)


@pytest.mark.parametrize("value", [0, 1, 2**40])
def test_amounts_that_machines_have_are_read(value: int) -> None:
    record = parse_record({"energy": value, "peaks": {"ram": value, "gpu_ram": value}})
    assert (record.energy, record.peaks.ram, record.peaks.gpu_ram) == (value, value, value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("exit_code", True),
        ("exit_code", 0.5),
        ("exit_code", 2**63),
        ("run_time", "2.0"),
        ("run_time", float("nan")),
        ("run_time", float("inf")),
        ("energy", [1.0]),
        ("task", 5),
        ("gpus", {"name": "Tesla V100"}),
        ("predictions", None),
    ],
)
def test_a_value_of_the_wrong_type_is_none(field: str, value: Any) -> None:
    assert getattr(parse_record({field: value}), field) is None


def test_a_whole_number_is_a_number_of_seconds() -> None:
    assert parse_record({"run_time": 5}).run_time == 5


def test_one_wrong_value_costs_no_other() -> None:
    record = parse_record({"host": {"cpu": 7, "cores": 8}, "gpus": [{"name": "A100"}, "B200"]})
    assert (record.host.cpu, record.host.cores) == ("", 8)
    assert record.gpus is not None
    assert [gpu.name for gpu in record.gpus] == ["A100", ""]


@pytest.mark.parametrize("failure", [True, "", {}, {"kind": 5}, ["OutOfMemory"]])
def test_a_failure_without_a_kind_is_a_failure(failure: Any) -> None:
    assert parse_record({"failure": failure}).failure == Failure("unknown", "")


def test_texts_and_lists_are_cut() -> None:
    record = parse_record({"machine": "x" * 5000, "warnings": ["x" * 5000] * 5000})
    assert len(record.machine or "") == 200
    assert (len(record.warnings), {len(text) for text in record.warnings}) == (100, {200})


def test_a_target_is_whole_so_that_it_can_be_compared() -> None:
    record = parse_record({"target": {"target": "exec:" + "x" * 5000}})
    assert len(record.target.target) == 5005
    assert len(record.image or "") == 200


@pytest.mark.parametrize("text", ["2022-06-17T14:00:00", "yesterday", "", 5, None])
def test_a_start_without_a_time_zone_is_not_known(text: Any) -> None:
    assert parse_record({"started": text}).start_time is None


def test_a_start_is_a_moment() -> None:
    record = parse_record({"started": "2022-06-17T14:00:00.500000+00:00"})
    assert record.start_time == 1655474400.5


IN_USE = "GPU 0 is in use by others: python3 (pid 12)."


@pytest.mark.parametrize(
    ("content", "codes"),
    [
        ({"warnings": ["1 sample missed.", IN_USE]}, ("", GPU_IN_USE)),
        ({"warnings": [IN_USE], "warning_codes": ["other"]}, ("other",)),
        ({"warnings": [IN_USE], "warning_codes": []}, (GPU_IN_USE,)),
        ({"warnings": [5, IN_USE], "warning_codes": "x"}, ("", GPU_IN_USE)),
    ],
)
def test_every_warning_has_a_code_though_old_records_have_none(
    content: dict[str, Any], codes: tuple[str, ...]
) -> None:
    record = parse_record(content)
    assert record.warning_codes == codes
    assert len(record.warnings) == len(codes)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": NaN}', b"[" * 99_999])
def test_what_is_not_a_json_object_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_record(content)


def test_a_record_keeps_its_fingerprint() -> None:
    record: RunRecord = parse_record({"machine": "3f0c"})
    assert record.to_json()["machine"] == "3f0c"
    assert len(parse_record({}).to_json()["machine"]) == 12
