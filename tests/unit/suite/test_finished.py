"""Which runs are done: a log and its record have to say so, both of them, and of this run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs import RUN, SINGLE, make_job, write_run
from morocco.bench.writers import FileWriter
from morocco.suite.plan import Job
from morocco.suite.resume import Doubtful, Finished, read_state
from morocco.targets.options import ContainerOptions, RunOptions


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A run, planned to be done in a folder of its own."""
    return make_job(RUN, logs=tmp_path)


def change_record(job: Job, **facts: Any) -> None:
    path = job.path.with_suffix(".json")
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))


def doubt(job: Job) -> str:
    """Return why a log that is there is not taken for a finished one."""
    state = read_state(job)
    assert isinstance(state, Doubtful), state
    return state.reason


def differences(job: Job) -> tuple[str, ...]:
    state = read_state(job)
    assert isinstance(state, Finished), state
    return state.differences


def test_a_log_with_its_record_is_a_finished_run(job: Job) -> None:
    write_run(job, run_time=2.5)
    state = read_state(job)
    assert isinstance(state, Finished)
    assert state.run_time == pytest.approx(2.5)
    assert (state.image_id, state.differences) == ("sha256:abc", ())


def test_without_a_log_a_run_is_to_be_done(job: Job) -> None:
    assert read_state(job) is None


def test_what_a_killed_run_left_is_no_log(job: Job) -> None:
    writer = FileWriter(job.path)
    assert read_state(job) is None
    writer.fail({})
    assert read_state(job) is None


def test_a_record_alone_is_no_finished_run(job: Job) -> None:
    write_run(job)
    job.path.unlink()
    assert read_state(job) is None


# Doubts


def test_a_log_without_its_record_is_doubtful(job: Job) -> None:
    write_run(job)
    job.path.with_suffix(".json").unlink()
    assert doubt(job) == "its record is missing"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"5", b"\xff\xfe", b"[" * 99_999])
def test_a_record_that_is_none_is_doubtful(content: bytes, job: Job) -> None:
    write_run(job)
    job.path.with_suffix(".json").write_bytes(content)
    assert doubt(job) == "its record cannot be read"


@pytest.mark.parametrize("missing", ["format", "task", "target", "arguments", "data", "run_time"])
def test_a_record_that_lacks_what_every_record_has_is_doubtful(missing: str, job: Job) -> None:
    record = write_run(job)
    del record[missing]
    job.path.with_suffix(".json").write_text(json.dumps(record))
    assert doubt(job) == "its record is incomplete"


@pytest.mark.parametrize(
    ("network", "differences"), [("none", ()), ("host", ("--network none, now host",))]
)
def test_an_option_that_an_old_record_lacks_had_its_default(
    network: str, differences: tuple[str, ...], job: Job
) -> None:
    record = write_run(job)
    del record["arguments"]["network"]
    job.path.with_suffix(".json").write_text(json.dumps(record))
    state = read_state(replace(job, options=job.options.with_container(network=network)))
    assert isinstance(state, Finished)
    assert state.differences == differences


def test_a_record_from_before_containers_were_confined_is_of_a_run_with_the_defaults(
    job: Job,
) -> None:
    record = write_run(job)
    for name in ("read_only", "pids_limit", "cap_add", "oom_score_adj"):
        del record["arguments"][name]
    record["arguments"]["memory"] = None
    job.path.with_suffix(".json").write_text(json.dumps(record))
    assert differences(job) == ()


@pytest.mark.parametrize("name", ["target", "arguments", "data", "run_time"])
@pytest.mark.parametrize("value", [None, "", [1]])
def test_a_record_that_holds_something_else_is_doubtful(name: str, value: Any, job: Job) -> None:
    write_run(job)
    change_record(job, **{name: value})
    assert doubt(job) == "its record is incomplete"


def test_a_record_of_a_format_to_come_is_doubtful(job: Job) -> None:
    write_run(job)
    change_record(job, format=2)
    assert doubt(job) == "its record has format 2"


@pytest.mark.parametrize(
    "facts",
    [{"exit_code": 1}, {"exit_code": None}, {"failure": {"kind": "TimedOut", "message": ""}}],
)
def test_the_record_of_a_failed_run_is_doubtful(facts: dict[str, Any], job: Job) -> None:
    write_run(job)
    change_record(job, **facts)
    assert doubt(job) == "its record is of a failed run"


@pytest.mark.parametrize("facts", [{"task": "rcb"}, {"input_size": 21}, {"batch_size": 5}])
def test_the_record_of_another_run_is_doubtful(facts: dict[str, Any], job: Job) -> None:
    write_run(job)
    change_record(job, **facts)
    assert doubt(job) == "its record is of another run"


def test_a_log_beside_the_record_of_the_run_that_should_have_replaced_it_is_doubtful(
    job: Job,
) -> None:
    """So it is when a run with --force is killed between its two last steps."""
    write_run(job, run_time=2.0)
    change_record(job, run_time=2.1)
    assert doubt(job) == "log and record differ in the run time"


@pytest.mark.parametrize("run_time", [1.9999, 2.0001])
def test_a_rounded_time_is_no_difference(run_time: float, job: Job) -> None:
    write_run(job, run_time=2.0)
    change_record(job, run_time=run_time)
    assert isinstance(read_state(job), Finished)


def test_a_log_that_was_cut_off_is_doubtful(job: Job) -> None:
    write_run(job)
    job.path.write_text(job.path.read_text().splitlines(keepends=True)[0])
    assert doubt(job) == "it has no closing line"


@pytest.mark.parametrize("content", [b"", b"\n", b"no JSON\n", b'{"timestamp": 1}\n', b"\0" * 4096])
def test_a_log_that_is_none_is_doubtful(content: bytes, job: Job) -> None:
    write_run(job)
    job.path.write_bytes(content)
    assert doubt(job).startswith(job.path.name)
    assert not doubt(job).endswith(".")  # as it goes into a sentence


# Another plan than that of the finished run


def test_a_run_of_another_target_is_reported(job: Job) -> None:
    write_run(job)
    change_record(job, target={"target": "old", "image_id": None})
    assert differences(job) == ("target old, now russiannlp/rubert-parus",)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (RunOptions(container=ContainerOptions(network="host")), "--network none, now host"),
        (RunOptions(container=ContainerOptions(memory="8g")), "--memory None, now 8g"),
        (RunOptions(container=ContainerOptions(cpus=2.0)), "--cpus None, now 2.0"),
        (RunOptions(container=ContainerOptions(shm_size="2g")), "--shm-size 1g, now 2g"),
        (RunOptions(container=ContainerOptions(read_only=True)), "--read-only False, now True"),
        (RunOptions(env=("A=1",)), "--env [], now ['A']"),
    ],
)
def test_options_that_make_it_another_run_are_reported(
    options: RunOptions, expected: str, tmp_path: Path
) -> None:
    write_run(make_job(logs=tmp_path))
    assert differences(make_job(logs=tmp_path, options=options)) == (expected,)


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(rate=5.0),
        RunOptions(timeout=60.0),
        RunOptions(container=ContainerOptions(pull="never")),
        RunOptions(container=ContainerOptions(pids_limit=None, cap_add=("SETUID",))),
        RunOptions(oom_score_adj=0),
        RunOptions(gpus="GPU-1", cores=(0, 1)),
        RunOptions(suite="another"),
    ],
)
def test_options_that_do_not_are_no_difference(options: RunOptions, tmp_path: Path) -> None:
    write_run(make_job(logs=tmp_path))
    assert differences(make_job(logs=tmp_path, options=options)) == ()


@pytest.mark.parametrize(
    ("env", "differs"),
    [
        (("TOKEN=secret", "HERE"), False),
        (("TOKEN=secret", "HERE=yes"), False),
        (("TOKEN=new", "HERE"), True),
        (("TOKEN=secret", "HERE=no"), True),
    ],
)
def test_other_values_of_variables_are_reported_but_not_shown(
    env: tuple[str, ...], differs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERE", "yes")
    options = RunOptions(env=("TOKEN=secret", "HERE"))
    assert "secret" not in json.dumps(write_run(make_job(logs=tmp_path, options=options)))
    found = differences(make_job(logs=tmp_path, options=RunOptions(env=env)))
    assert found == (("other values of --env TOKEN, HERE",) if differs else ())


@pytest.mark.parametrize("digest", [None, "", "argon2:00:11", 5])
def test_a_record_without_a_digest_that_is_known_shows_the_names_alone(
    digest: object, tmp_path: Path
) -> None:
    job = make_job(logs=tmp_path, options=RunOptions(env=("TOKEN=secret",)))
    write_run(job)
    change_record(job, env_digest=digest)
    assert differences(make_job(logs=tmp_path, options=RunOptions(env=("TOKEN=new",)))) == ()
    assert differences(make_job(logs=tmp_path, options=RunOptions(env=("KEY=new",)))) != ()


def test_other_data_are_reported(job: Job) -> None:
    write_run(job)
    change_record(job, data={"path": "data/parus.jsonl", "sha256": "1" * 64})
    assert differences(job) == ("its data file had other records",)


def test_all_differences_are_reported(tmp_path: Path) -> None:
    write_run(make_job(logs=tmp_path))
    options = RunOptions(container=ContainerOptions(memory="8g", network="host"))
    assert len(differences(make_job(logs=tmp_path, options=options))) == 2


def test_a_run_of_another_size_has_another_log(tmp_path: Path) -> None:
    write_run(make_job(RUN, logs=tmp_path))
    assert read_state(make_job(SINGLE, logs=tmp_path)) is None
