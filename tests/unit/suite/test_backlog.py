"""Who does which run next: lanes stay with their blocks, help each other, and get lost."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from jobs import labels, make_block
from morocco.suite.plan import Block, Job
from morocco.suite.scheduler import Backlog
from runs import until

PARUS, RCB = make_block("parus"), make_block("rcb")
WARM_UPS = ["parus/warm-up", "rcb/warm-up"]


def take(backlog: Backlog, lane: str = "a") -> str | None:
    """Return the label of the job that a lane gets."""
    job = backlog.take(lane)
    return None if job is None else job.label


def do(backlog: Backlog, count: int, lane: str = "a") -> list[str]:
    """Let a lane do this many runs, one after the other."""
    done = []
    for _ in range(count):
        job = backlog.take(lane)
        assert job is not None
        done.append(job.label)
        backlog.finish(lane)
    return done


class Waiter:
    """A lane that asks for work in a thread of its own."""

    def __init__(self, backlog: Backlog, lane: str = "b") -> None:
        self.got: list[Job | None] = []
        self._thread = threading.Thread(
            target=lambda: self.got.append(backlog.take(lane)), name=lane, daemon=True
        )
        self._thread.start()

        self._thread.join(timeout=0.05)
        assert not self.got  # so it waits, as far as can be seen

    def wait(self) -> str | None:
        """Return what it gets in the end."""
        (job,) = until(lambda: self.got)
        self._thread.join()
        return None if job is None else job.label


# One lane


def test_a_lane_warms_up_then_does_the_runs_of_a_block_then_the_next() -> None:
    backlog = Backlog([PARUS, RCB])
    expected = [WARM_UPS[0], *labels(PARUS.jobs), WARM_UPS[1], *labels(RCB.jobs)]
    assert do(backlog, len(expected)) == expected
    assert take(backlog) is None


def test_without_blocks_there_is_nothing_to_do() -> None:
    assert take(Backlog([])) is None


def test_what_is_left_counts_warm_ups_that_are_still_to_be_done() -> None:
    backlog = Backlog([PARUS, RCB])
    everything = [WARM_UPS[0], *labels(PARUS.jobs), WARM_UPS[1], *labels(RCB.jobs)]
    assert labels(backlog.left) == everything
    for done in range(len(everything)):
        assert sorted(labels(backlog.left)) == sorted(everything[done:])
        backlog.take("a")
        assert sorted(labels(backlog.left)) == sorted(everything[done:])
        backlog.finish("a")
    assert backlog.left == []


def test_skipping_removes_the_rest_of_the_block_alone() -> None:
    backlog = Backlog([PARUS, RCB])
    assert take(backlog) == "parus/warm-up"
    assert labels(backlog.skip_block("a")) == labels(PARUS.jobs)
    backlog.finish("a")
    assert do(backlog, 5) == ["rcb/warm-up", *labels(RCB.jobs)]
    assert take(backlog) is None


# Several models


def test_models_take_turns_on_a_task_each_after_its_warm_up() -> None:
    blocks = [make_block(task, 3, model) for model in "AB" for task in ("parus", "rcb")]
    backlog = Backlog(blocks, in_turns=True)
    order = [f"{job.model} {job.path.stem}" for job in take_all(backlog) if job.task == "parus"]
    assert order == [
        *("A warm-up", "A 1_1_01", "A 20_4_01", "B warm-up", "B 1_1_01", "B 20_4_01"),
        *("B 1_1_02", "B 20_4_02", "A 1_1_02", "A 20_4_02"),
        *("A 1_1_03", "A 20_4_03", "B 1_1_03", "B 20_4_03"),
    ]


def test_a_task_is_finished_before_the_next_whoever_takes_turns() -> None:
    blocks = [make_block(task, 2, model) for model in "AB" for task in ("parus", "rcb")]
    tasks = [job.task for job in take_all(Backlog(blocks, in_turns=True))]
    assert [task for task, _ in itertools.groupby(tasks)] == ["parus", "rcb"]


def test_one_model_comes_after_the_other_without_turns() -> None:
    blocks = [make_block(task, 2, model) for model in "AB" for task in ("parus", "rcb")]
    models = [job.model for job in take_all(Backlog(blocks))]
    assert [model for model, _ in itertools.groupby(models)] == ["A", "B"]


def test_a_model_that_cannot_warm_up_leaves_the_turns_to_the_other() -> None:
    backlog = Backlog([make_block(model=model) for model in "AB"], in_turns=True)
    assert take(backlog) == "A/parus/warm-up"
    skipped = backlog.skip_block("a")
    backlog.finish("a")
    assert {job.model for job in skipped} == {"A"}
    assert {job.model for job in take_all(backlog)} == {"B"}


def test_what_is_left_of_several_models_counts_the_warm_up_of_each() -> None:
    backlog = Backlog([make_block(model=model) for model in "AB"], in_turns=True)
    assert sum(job.index is None for job in backlog.left) == 2
    do(backlog, 1)
    assert sum(job.index is None for job in backlog.left) == 1


def take_all(backlog: Backlog) -> list[Job]:
    """Let one lane do everything."""
    jobs = []
    while (job := backlog.take("a")) is not None:
        jobs.append(job)
        backlog.finish("a")
    return jobs


# Several lanes


def test_each_lane_takes_a_block_that_no_lane_has_started() -> None:
    backlog = Backlog([PARUS, RCB])
    assert [take(backlog, lane) for lane in "ab"] == WARM_UPS


def test_a_lane_keeps_to_its_block() -> None:
    backlog = Backlog([PARUS, RCB])
    taken: dict[str, list[str]] = {"a": [], "b": []}
    for _ in range(5):
        for lane in "ab":
            taken[lane] += do(backlog, 1, lane)
    assert taken["a"] == ["parus/warm-up", *labels(PARUS.jobs)]
    assert taken["b"] == ["rcb/warm-up", *labels(RCB.jobs)]


def test_an_idle_lane_helps_after_a_warm_up_of_its_own() -> None:
    backlog = Backlog([PARUS])
    assert do(backlog, 2, "a") == ["parus/warm-up", "parus/1_1_01"]
    assert do(backlog, 2, "b") == ["parus/warm-up-2", "parus/20_4_01"]
    assert do(backlog, 1, "a") == ["parus/1_1_02"]


def test_lanes_that_warm_up_for_the_same_runs_do_not_share_a_file() -> None:
    backlog = Backlog([PARUS])
    jobs = [backlog.take(lane) for lane in "abc"]
    assert len({job.path for job in jobs if job}) == 3
    assert {job.kind for job in jobs if job} == {PARUS.warm_up.kind}


def test_an_idle_lane_helps_where_most_is_left() -> None:
    backlog = Backlog([PARUS, make_block("rcb", repeats=9)])
    do(backlog, 1, "a")
    do(backlog, 1, "b")
    assert take(backlog, "c") == "rcb/warm-up-2"


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.booleans(),
)
def test_whatever_lane_is_quick_every_run_is_done_once_and_warm(
    repeats: Sequence[int], turns: Sequence[int], in_turns: bool
) -> None:
    blocks = [
        make_block(f"task{number // 2}", count, f"model{number % 2}")
        for number, count in enumerate(repeats)
    ]
    backlog, warm = Backlog(blocks, in_turns=in_turns), set[tuple[str, str, str]]()
    current: dict[str, Job] = {}
    waiting = [job for block in blocks for job in block.jobs]
    for turn in itertools.chain(turns, itertools.cycle(range(4))):
        lane = f"lane {turn}"
        if lane in current:
            del current[lane]
            backlog.finish(lane)
        elif not waiting:  # or it would wait for the others
            break
        else:
            job = backlog.take(lane)
            assert job is not None
            current[lane] = job
            if job.index is None:
                warm.add((lane, job.model, job.task))
            else:
                assert (lane, job.model, job.task) in warm
                waiting.remove(job)  # which it could not be twice
    assert {*labels(backlog.left)} == {job.label for job in current.values()}


def test_a_lane_waits_as_long_as_another_may_give_its_run_back() -> None:
    backlog = Backlog([Block(PARUS.warm_up, PARUS.jobs[:1])])
    do(backlog, 1, "a")
    assert take(backlog, "a") == "parus/1_1_01"
    waiter = Waiter(backlog)
    backlog.give_back("a")
    assert waiter.wait() == "parus/warm-up-2"
    backlog.finish("b")
    assert do(backlog, 1, "b") == ["parus/1_1_01"]


def test_lanes_that_wait_end_with_the_last_run() -> None:
    backlog = Backlog([Block(PARUS.warm_up, PARUS.jobs[:1])])
    do(backlog, 1, "a")
    take(backlog, "a")
    waiters = [Waiter(backlog, lane) for lane in "bc"]
    backlog.finish("a")
    assert [waiter.wait() for waiter in waiters] == [None, None]


def test_a_run_that_was_given_back_comes_first_again() -> None:
    backlog = Backlog([PARUS])
    do(backlog, 2, "a")
    take(backlog, "a")
    backlog.give_back("a")
    assert labels(backlog.left) == ["parus/warm-up", *labels(PARUS.jobs[1:])]
    assert do(backlog, 2, "b") == ["parus/warm-up-2", "parus/20_4_01"]


def test_a_lane_that_comes_back_warms_up_anew() -> None:
    backlog = Backlog([PARUS])
    do(backlog, 1, "a")
    take(backlog, "a")
    backlog.give_back("a")
    assert do(backlog, 2, "a") == ["parus/warm-up-2", "parus/1_1_01"]


def test_a_warm_up_that_was_given_back_is_nobody_elses_work() -> None:
    backlog = Backlog([PARUS, RCB])
    take(backlog, "a")
    backlog.give_back("a")
    assert labels(backlog.left).count("parus/warm-up") == 1
    assert do(backlog, 2, "b") == ["parus/warm-up-2", "parus/1_1_01"]


# The end


def test_once_stopped_nothing_is_handed_out() -> None:
    backlog = Backlog([PARUS])
    backlog.stop()
    assert take(backlog) is None


def test_stopping_ends_the_waiting() -> None:
    backlog = Backlog([Block(PARUS.warm_up, PARUS.jobs[:1])])
    do(backlog, 1, "a")
    take(backlog, "a")
    waiter = Waiter(backlog)
    backlog.stop()
    assert waiter.wait() is None


def test_a_lane_that_cannot_do_a_block_leaves_it_to_those_that_can() -> None:
    backlog = Backlog([PARUS])
    assert [take(backlog, lane) for lane in "ab"] == ["parus/warm-up", "parus/warm-up-2"]
    assert backlog.skip_block("b") == []
    backlog.finish("b")
    backlog.finish("a")
    done = do(backlog, len(PARUS.jobs))
    assert done == labels(PARUS.jobs)
    assert take(backlog, "b") is None


def test_a_block_that_no_lane_can_do_is_skipped() -> None:
    backlog = Backlog([PARUS])
    for lane in "ab":
        take(backlog, lane)
    assert backlog.skip_block("a") == []
    assert labels(backlog.skip_block("b")) == labels(PARUS.jobs)
