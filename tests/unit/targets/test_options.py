"""The run options: one definition, from which the record and the comparison of runs follow."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from morocco.bench.command import shaping_options
from morocco.targets.options import (
    CONDITIONS,
    CONTAINER_OPTIONS,
    ContainerOptions,
    RunOptions,
    build_run_options,
    digest_env,
    may_be_digest_of,
    parse_env,
)

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
        "env": ["TOKEN", "HOME"],
    }


def test_secret_values_are_not_shown() -> None:
    assert "secret" not in repr(OPTIONS)


def test_all_conditions_are_recorded() -> None:
    assert CONDITIONS == ("raw_output", "network", "memory", "cpus", "shm_size", "env")
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
    assert CONTAINER_OPTIONS == ("pull", "network", "memory", "cpus", "shm_size")


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
