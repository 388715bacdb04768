"""What `doctor` says of GPUs, through the true binding over a stand-in for the driver's library."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from gpu_machine import Machine
from morocco.doctor.gpus import judge_absence
from nvml_standin import DRIVER_NOT_LOADED, UNKNOWN, Gpu, Process

PROGRAM = """
import sys
from morocco.doctor.finding import render_json
from morocco.doctor.gpus import look_at_gpus
from morocco.hardware.gpu import Gpus
with Gpus.open(sys.argv[1], foreign_pids=False) as gpus:
    for finding in look_at_gpus(gpus, sys.argv[1]):
        print(render_json(finding))
"""
POWER_CAP, HEAT, BRAKE = 0x4, 0x20, 0x80
GOOD = Gpu("GPU-a")


def look(machine: Machine, choice: str = "auto") -> dict[str, Any]:
    """Return the findings by name."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, choice],
        env=machine.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    findings = map(json.loads, done.stdout.splitlines())
    return {finding["name"]: finding for finding in findings}


def test_of_a_good_gpu_everything_is_good(machine: Machine) -> None:
    machine.plug(GOOD)
    found = look(machine)
    assert {finding["state"] for finding in found.values()} == {"good"}
    assert len(found) == 7
    for told in ("NVIDIA A100-SXM4-80GB", "550.54.15", "CUDA 12.4"):
        assert told in found["gpus"]["found"]


@pytest.mark.parametrize(
    ("change", "name", "state", "told"),
    [
        ({"persistence": False}, "persistence", "doubtful", "GPU 1"),
        ({"mig": True}, "mig", "doubtful", "GPU 1"),
        ({"memory_errors": 3}, "ecc", "bad", "3 memory errors"),
        ({"reasons": HEAT, "celsius": 91}, "gpu-clocks", "bad", "by heat, at 91 °C"),
        ({"reasons": BRAKE}, "gpu-clocks", "bad", "by the power supply"),
        ({"reasons": POWER_CAP}, "gpu-clocks", "good", ""),
        ({"power_limit": 250_000}, "gpu-power", "doubtful", "250 W, usual are 400 W"),
        ({"processes": [Process(2**22 + 7, 2**30)]}, "gpu-users", "doubtful", "1.00 GB"),
    ],
)
def test_a_gpu_that_is_not_good_is_named(
    machine: Machine, change: dict[str, Any], name: str, state: str, told: str
) -> None:
    machine.plug(GOOD, replace(GOOD, uuid="GPU-b", **change))
    found = look(machine)
    assert found[name]["state"] == state
    assert told in found[name]["found"]
    assert bool(found[name]["todo"]) == (state != "good")
    others = {key: finding["state"] for key, finding in found.items() if key != name}
    assert set(others.values()) == {"good"}


def test_what_a_driver_does_not_tell_is_unknown(machine: Machine) -> None:
    machine.plug(
        replace(GOOD, persistence=None, memory_errors=None, reasons=None, usual_power_limit=None)
    )
    states = {name: finding["state"] for name, finding in look(machine).items()}
    unknown = {name for name, state in states.items() if state == "unknown"}
    assert unknown == {"persistence", "ecc", "gpu-clocks", "gpu-power"}


def test_a_gpu_that_is_lost_is_bad(machine: Machine) -> None:
    machine.plug(GOOD, replace(GOOD, uuid="GPU-b", lost=True))
    assert look(machine)["gpus"]["state"] == "bad"
    machine.plug(errors={"nvmlInitWithFlags": UNKNOWN})
    assert look(machine)["gpus"]["state"] == "bad"


def test_a_machine_without_gpus_measures_on_the_cpu(machine: Machine) -> None:
    machine.plug(errors={"nvmlInitWithFlags": DRIVER_NOT_LOADED})
    assert look(machine)["gpus"]["state"] == "good"
    assert look(machine, "none")["gpus"]["state"] == "good"
    assert judge_absence("auto", 2).state == "bad"
    assert judge_absence("none", 2).state == "good"
