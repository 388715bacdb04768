"""What a suite has to measure: which runs, in which order, under which names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import SINGLE, labels, make_job, make_records
from morocco.errors import DataError
from morocco.logs.log import LogPath
from morocco.suite.plan import Block, Model, Sizes, build_blocks
from morocco.targets.options import ContainerOptions, RunOptions

LOGS = Path("logs")
TARGET = "russiannlp/rubert-{task}"
SIZES = Sizes(2000, 32, 3)
COUNTS = st.integers(1, 100)


def make_model(name: str = "", target: str = TARGET, **sizes: Sizes) -> Model:
    return Model(name, target, sizes or {"parus": SIZES})


def plan(*models: Model, options: RunOptions | None = None) -> list[Block]:
    records = {
        (task, size): make_records(size, task)
        for model in models
        for task, sizes in model.sizes.items()
        for size in (1, sizes.input_size)
    }
    return build_blocks(models, records, LOGS, options or RunOptions())


def test_one_record_and_many_take_turns() -> None:
    (block,) = plan(make_model())
    assert labels(block.jobs) == [
        *("parus/1_1_01", "parus/2000_32_01"),
        *("parus/1_1_02", "parus/2000_32_02"),
        *("parus/1_1_03", "parus/2000_32_03"),
    ]


def test_a_warm_up_is_a_run_of_one_record() -> None:
    (block,) = plan(make_model())
    assert (block.warm_up.records.count, block.warm_up.batch_size) == SINGLE
    assert (block.warm_up.index, block.warm_up.label) == (None, "parus/warm-up")
    assert block.warm_up.path == LOGS / "parus" / "warm-up.jsonl"
    for warm_up in (block.warm_up, replace(block.warm_up, turn=2)):
        assert LogPath.parse(warm_up.path) is None  # so that no other command takes it for a log


def test_each_task_of_each_model_has_a_block_of_its_own_in_the_order_they_were_named() -> None:
    first = make_model("b", parus=SIZES, danetqa=SIZES)
    second = make_model("a", "other-{task}", rcb=SIZES)
    blocks = plan(first, second)
    assert [(block.warm_up.model, block.warm_up.task) for block in blocks] == [
        *(("b", "parus"), ("b", "danetqa"), ("a", "rcb")),
    ]
    assert [block.warm_up.target for block in blocks] == [
        *("russiannlp/rubert-parus", "russiannlp/rubert-danetqa", "other-rcb"),
    ]


def test_logs_lie_by_task_and_by_model_where_there_are_several() -> None:
    (alone,), (named,) = plan(make_model()), plan(make_model("rubert"))
    assert alone.jobs[1].path == LOGS / "parus" / "2000_32_01.jsonl"
    assert named.jobs[1].path == LOGS / "rubert" / "parus" / "2000_32_01.jsonl"
    assert named.jobs[1].label == "rubert/parus/2000_32_01"


def test_sizes_may_differ_by_task() -> None:
    parus, rcb = plan(make_model(parus=Sizes(10, 2, 1), rcb=Sizes(20, 4, 2)))
    assert labels(parus.jobs) == ["parus/1_1_01", "parus/10_2_01"]
    assert labels(rcb.jobs)[-1] == "rcb/20_4_02"
    assert len(rcb.jobs) == 4


def test_a_long_run_of_one_record_is_not_planned_twice() -> None:
    (block,) = plan(make_model(parus=Sizes(1, 1, 3)))
    assert labels(block.jobs) == ["parus/1_1_01", "parus/1_1_02", "parus/1_1_03"]


@given(COUNTS, COUNTS, COUNTS)
def test_all_runs_have_their_own_logs(input_size: int, batch_size: int, repeats: int) -> None:
    (block,) = plan(make_model(parus=Sizes(input_size, batch_size, repeats)))
    paths = [job.path for job in block.jobs]
    assert len({*paths, block.warm_up.path}) == len(paths) + 1
    kinds = 1 if (input_size, batch_size) == (1, 1) else 2
    assert len(paths) == kinds * repeats


@given(COUNTS, COUNTS, COUNTS)
def test_the_name_of_a_log_identifies_its_run(
    input_size: int, batch_size: int, repeats: int
) -> None:
    (block,) = plan(make_model(parus=Sizes(input_size, batch_size, repeats)))
    for job in block.jobs:
        assert LogPath.parse(job.path) == LogPath(
            job.task, job.records.count, job.batch_size, job.index or 0
        )


def test_every_run_has_the_options_that_were_given() -> None:
    options = RunOptions(container=ContainerOptions(memory="8g"), env=("A=1",))
    (block,) = plan(make_model(), options=options)
    assert {job.options for job in (block.warm_up, *block.jobs)} == {options}


def test_repeats_are_of_one_kind_and_other_sizes_are_not() -> None:
    assert make_job(index=1).kind == make_job(index=2).kind
    others = [make_job(SINGLE), make_job(task="rcb"), make_job(model="rubert")]
    assert make_job().kind not in [job.kind for job in others]


def test_the_task_stands_wherever_it_goes() -> None:
    model = make_model(target="exec:python {task}/infer.py {task}")
    (block,) = plan(model)
    assert {job.target for job in (block.warm_up, *block.jobs)} == {
        "exec:python parus/infer.py parus"
    }


def test_one_target_cannot_be_that_of_several_tasks() -> None:
    with pytest.raises(DataError, match=r"same for all tasks; write \{task\}.*--tasks"):
        make_model(target="russiannlp/rubert", parus=SIZES, rcb=SIZES)


def test_a_target_of_one_task_needs_no_place_for_its_name() -> None:
    (block,) = plan(make_model(target="mine"))
    assert block.warm_up.target == "mine"
