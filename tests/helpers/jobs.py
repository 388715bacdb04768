"""Made-up jobs of a suite, for tests that run none of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from morocco.bench.writers import FileWriter
from morocco.hardware.info import HostInfo
from morocco.logs.record import DataFile, RunRecord
from morocco.logs.samples import Sample
from morocco.suite.plan import Block, Job
from morocco.targets.options import RunOptions, digest_env
from morocco.targets.target import Identity
from morocco.tasks import Records

DIGEST = "0" * 64
RUN = (20, 4)
"""Input size and batch size of a long run."""
SINGLE = (1, 1)
STARTED = 1.7e9
"""When a made-up run started, in seconds since the epoch."""


def make_records(count: int, task: str = "parus") -> Records:
    return Records(Path("data") / f"{task}.jsonl", count, count, DIGEST)


def make_job(
    size: tuple[int, int] = RUN,
    index: int | None = 1,
    *,
    task: str = "parus",
    model: str = "",
    logs: Path = Path("logs"),
    options: RunOptions | None = None,
) -> Job:
    """Return a run of this input size and batch size; a warm-up if `index` is None."""
    return Job(
        model=model,
        task=task,
        target=f"russiannlp/rubert-{task}",
        records=make_records(size[0], task),
        batch_size=size[1],
        index=index,
        folder=logs / model / task,
        options=options or RunOptions(),
    )


def make_block(task: str = "parus", repeats: int = 2, model: str = "") -> Block:
    """Return all runs of one task, start-up runs and long runs in turn."""
    jobs = [
        make_job(size, index, task=task, model=model)
        for index in range(1, repeats + 1)
        for size in (SINGLE, RUN)
    ]
    return Block(make_job(SINGLE, None, task=task, model=model), tuple(jobs))


def labels(jobs: Sequence[Job]) -> list[str]:
    return [job.label for job in jobs]


def write_run(job: Job, run_time: float = 2.0, **facts: Any) -> dict[str, Any]:
    """Write the log and the record of a good run of a job, and return the record."""
    digest = digest_env(job.options.env)
    facts = {"exit_code": 0, "run_time": run_time, "env_digest": digest, **facts}
    record = RunRecord(
        morocco="1.0",
        target=Identity(job.target, image_id="sha256:abc"),
        arguments=job.options.for_record(),
        task=job.task,
        input_size=job.records.count,
        batch_size=job.batch_size,
        data=DataFile(str(job.records.path), job.records.sha256),
        host=HostInfo("CPU", 4, 2**30, "6.1"),
        **facts,
    ).to_json()
    sink = FileWriter(job.path)
    for sample in (Sample(STARTED, ram=5), Sample(STARTED + run_time)):
        sink.write(sample)
    sink.finish(record)
    return record
