"""The run options: one definition, from which the record and the comparison of runs follow."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.bench.command import shaping_options
from morocco.targets.options import (
    CONDITIONS,
    CONTAINER_OPTIONS,
    ContainerOptions,
    RunOptions,
    build_run_options,
    digest_env,
    limit_memory,
    may_be_digest_of,
    parse_env,
)
from morocco.util.units import GIB

OPTIONS = RunOptions(
    gpus="0",
    container=ContainerOptions(pull="never", memory="8g"),
    env=("TOKEN=secret", "HOME"),
    unset=("OMP_NUM_THREADS",),
    cores=(0, 1),
    suite="name",
)


def test_the_record_holds_the_options_flat_and_of_variables_the_names() -> None:
    assert OPTIONS.for_record() == {
        "gpus": "0",
        "rate": 3.0,
        "timeout": None,
        "raw_output": False,
        "network": "none",
        "memory": "8g",
        "cpus": None,
        "shm_size": "1g",
        "read_only": False,
        "pids_limit": 8192,
        "cap_add": [],
        "oom_score_adj": 1000,
        "env": ["TOKEN", "HOME"],
    }


def test_secret_values_are_not_shown() -> None:
    assert "secret" not in repr(OPTIONS)


def test_all_conditions_are_recorded() -> None:
    assert (
        *("raw_output", "network", "memory", "cpus", "shm_size", "read_only", "env"),
    ) == CONDITIONS
    assert set(CONDITIONS) <= set(OPTIONS.for_record())


def test_every_option_of_the_command_line_finds_its_place() -> None:
    @click.command()
    @shaping_options
    def command(**_: object) -> None: ...

    values = command.make_context("bench", ["--memory", "8g", "-e", "A=1"]).params
    values["task"] = "parus"
    options = build_run_options(values)
    assert options == RunOptions(container=ContainerOptions(memory="8g"), env=("A=1",))
    assert values == {"task": "parus"}


def test_one_container_option_is_changed_and_the_others_stay() -> None:
    changed = OPTIONS.with_container(memory="4g")
    assert changed.container == ContainerOptions(pull="never", memory="4g")
    assert changed.env == OPTIONS.env


def test_the_container_options_are_those_of_their_class() -> None:
    assert (
        *("pull", "network", "memory", "cpus", "shm_size", "read_only", "pids_limit", "cap_add"),
    ) == CONTAINER_OPTIONS


@pytest.mark.parametrize(
    ("ram", "containers", "limit"),
    [(96, 1, 93184), (64, 4, 15360), (24, 1, 23296), (16, 1, 15360), (2, 1, 1536), (0.5, 1, 256)],
)
def test_a_part_of_the_memory_is_left_for_the_system(
    ram: float, containers: int, limit: int
) -> None:
    assert limit_memory(int(ram * GIB), containers) == f"{limit}m"


@given(st.integers(GIB // 4, 2**44), st.integers(1, 16))
def test_all_limits_together_leave_a_twentieth_of_the_memory(ram: int, containers: int) -> None:
    limit = limit_memory(ram, containers)
    assert limit.endswith("m")
    total = int(limit[:-1]) * 2**20 * containers
    assert ram - max(ram // 20, GIB) - containers * 2**28 < total <= ram - ram // 20


def test_a_variable_without_a_value_takes_the_one_it_has_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOKEN", "a=b")
    assert parse_env(["A=1", "TOKEN", "B=c=d", "E="]) == {
        "A": "1",
        "TOKEN": "a=b",
        "B": "c=d",
        "E": "",
    }


def test_a_digest_of_variables_depends_on_the_process_that_made_it() -> None:
    code = "from morocco.targets.options import digest_env; print(digest_env(['PIN=1234']))"
    command = [sys.executable, "-c", code]
    digests = [subprocess.check_output(command, text=True).strip() for _ in range(2)]
    assert digests[0] != digests[1]
    for digest in digests:
        assert may_be_digest_of(digest, ["PIN=1234"])
        assert not may_be_digest_of(digest, ["PIN=1235"])


def test_without_variables_there_is_no_digest() -> None:
    assert digest_env([]) is None
