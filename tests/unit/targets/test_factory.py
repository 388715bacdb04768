"""What a TARGET becomes: here, the environment of a bare process."""

from __future__ import annotations

import os

import pytest

from morocco.hardware.gpu import Gpus
from morocco.targets.factory import make_target
from morocco.targets.options import RunOptions


def read_environment(options: RunOptions) -> dict[str, str]:
    """Return the environment that a bare process finds."""
    with (
        Gpus.open(options.gpus) as gpus,
        make_target("exec:sh -c env", 1, options, gpus, lambda _: None) as target,
    ):
        target.start()
        target.close_input()
        output = b"".join(data for channel, data in target.output() if channel == "stdout")
        target.wait()
    return dict(line.partition("=")[::2] for line in output.decode().splitlines())


def test_a_bare_process_inherits_variables_except_those_to_unset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("COLOUR", "red")
    env = read_environment(
        RunOptions(gpus="none", unset=("OMP_NUM_THREADS",), env=("SHAPE=round",))
    )
    assert "OMP_NUM_THREADS" not in env
    assert (env["COLOUR"], env["SHAPE"]) == ("red", "round")
    assert os.environ["OMP_NUM_THREADS"] == "1"


def test_a_variable_that_is_set_on_purpose_is_not_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    options = RunOptions(gpus="none", unset=("OMP_NUM_THREADS",), env=("OMP_NUM_THREADS=4",))
    assert read_environment(options)["OMP_NUM_THREADS"] == "4"
