"""How a machine is shared out: equal parts, each core in one of them at most."""

from __future__ import annotations

import os
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import make_job
from morocco.errors import DataError, GpuError
from morocco.hardware import host
from morocco.hardware.host import list_cores
from morocco.hardware.info import GpuInfo
from morocco.suite.lanes import Share, split_machine
from morocco.targets.options import ContainerOptions, RunOptions

GIB = 2**30


def make_gpus(count: int) -> list[GpuInfo]:
    return [
        GpuInfo(n, f"GPU-{n}", "A100", 80 * GIB, "550.54", "12.4", False, 400.0)
        for n in range(count)
    ]


def test_each_gpu_is_a_lane_of_its_own_with_its_part_of_the_cores() -> None:
    assert split_machine(make_gpus(2), [0, 1, 2, 3]) == [
        *(Share("GPU-0", (0, 1)), Share("GPU-1", (2, 3))),
    ]


def test_what_cannot_be_shared_equally_is_left_unused() -> None:
    assert [share.cores for share in split_machine(make_gpus(2), range(5))] == [(0, 1), (2, 3)]


def test_cores_are_shared_out_in_the_order_given_and_listed_in_their_own() -> None:
    """Those of one physical core come together: 0 and 4, 1 and 5, and so on."""
    shares = split_machine(make_gpus(2), [0, 4, 1, 5, 2, 6, 3, 7])
    assert [share.cores for share in shares] == [(0, 1, 4, 5), (2, 3, 6, 7)]


@given(st.integers(1, 16), st.lists(st.integers(0, 255), min_size=16, unique=True))
def test_shares_are_equal_disjoint_and_of_the_cores_there_are(gpus: int, cores: list[int]) -> None:
    shares = [set(share.cores) for share in split_machine(make_gpus(gpus), cores)]
    assert {len(share) for share in shares} == {len(cores) // gpus}
    assert all(not one & other for one, other in combinations(shares, 2))
    assert set().union(*shares) <= set(cores)


def test_without_a_gpu_there_is_nothing_to_share() -> None:
    with pytest.raises(GpuError, match="NVML sees no GPU here"):
        split_machine([], range(8))


def test_fewer_cores_than_gpus_cannot_be_shared() -> None:
    with pytest.raises(DataError, match="4 GPUs cannot share 3 CPU cores"):
        split_machine(make_gpus(4), range(3))


BOUND = ContainerOptions(memory="8g")


def test_a_share_decides_on_gpu_and_cores_and_leaves_the_rest_of_a_run() -> None:
    job = make_job(options=RunOptions(gpus="auto", container=BOUND, env=("A=1",)))
    applied = Share("GPU-1", (2, 3)).apply(job)
    assert applied == make_job(
        options=RunOptions(gpus="GPU-1", cores=(2, 3), container=BOUND, env=("A=1",))
    )


# The cores of this machine, whatever it is


def test_all_cores_that_may_be_used_are_listed_once() -> None:
    cores = list_cores()
    assert set(cores) == os.sched_getaffinity(0)
    assert len(cores) == len(set(cores))


def test_cores_that_may_not_be_used_are_not_listed() -> None:
    allowed = os.sched_getaffinity(0)
    first = min(allowed)
    try:
        os.sched_setaffinity(0, {first})
        assert list_cores() == [first]
    finally:
        os.sched_setaffinity(0, allowed)


def test_the_halves_of_a_physical_core_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine of two packages with two cores each, which its kernel counts like this."""
    places = dict(enumerate([(0, 0), (1, 0), (0, 1), (1, 1)] * 2))
    monkeypatch.setattr(host, "_read_place", places.__getitem__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(places))
    assert list_cores() == [0, 4, 2, 6, 1, 5, 3, 7]
    assert all(places[one] <= places[other] for one, other in pairwise(list_cores()))
