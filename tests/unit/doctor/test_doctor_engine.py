"""What `doctor` says of engines and images, as a probe or the engine's answers show them."""

from __future__ import annotations

import io
import shutil
import tarfile

import pytest
from docker import DockerClient

from morocco.doctor.engine import (
    judge_cuda,
    judge_engine,
    judge_images,
    judge_input,
    judge_start,
    judge_toolkit,
    judge_visibility,
)
from morocco.errors import EngineError, MoroccoError, TargetError
from morocco.targets.engine import ImageFacts, parse_cuda
from morocco.targets.probe import Probe, Stage, pack_programs

GIB = 2**30
GPU = ((0, "GPU-a1"),)
ENDED = b"probe\nPATH=/bin\0NVIDIA_VISIBLE_DEVICES={}\0"
NO_TOOLKIT = EngineError(
    'Cannot start it: could not select device driver "" with capabilities: [[gpu]]. Docker cannot'
)


def probe(
    stage: Stage = "done", output: bytes = ENDED, failure: MoroccoError | None = None
) -> Probe:
    return Probe((DockerClient(), "Docker Engine 27"), "image", GPU, stage, output, failure)


def test_an_engine_should_answer_at_once() -> None:
    assert judge_engine("Docker Engine 27", 0.02).state == "good"
    assert judge_engine("Docker Engine 27", 2.0).state == "doubtful"


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (probe(), "good"),
        (probe("end", b""), "bad"),
        (probe("done", b""), "unknown"),
    ],
)
def test_a_container_should_end_when_its_input_does(seen: Probe, expected: str) -> None:
    assert judge_input(seen).state == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (probe(), "good"),
        (probe("end", b""), "good"),
        (probe("start", b""), "unknown"),
        (probe("create", b"", EngineError("Cannot create it: no space. Make room.")), "bad"),
        (probe("start", b"", TargetError("exec format error")), "unknown"),  # the probe's fault
    ],
)
def test_a_container_should_start(seen: Probe, expected: str) -> None:
    assert judge_start(seen).state == expected


def test_the_processes_of_containers_should_be_visible() -> None:
    assert judge_visibility(probe()).state == "good"
    hidden = probe()
    hidden.hidden = EngineError("The processes are not visible from here. Use --pid=host.")
    finding = judge_visibility(hidden)
    assert (finding.state, finding.todo) == ("bad", "Use --pid=host")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (probe(output=ENDED.replace(b"{}", b"GPU-a1")), "good"),
        (probe(output=ENDED.replace(b"{}", b"GPU-b2")), "bad"),
        (probe(output=b"probe\nPATH=/bin\0 /lib/libnvidia-ml.so.1 rw"), "good"),  # as CDI does
        (probe(output=b"probe\nPATH=/bin\0"), "doubtful"),  # old Podman ignores the request
        (probe("start", b"", NO_TOOLKIT), "bad"),
        (probe("start", b"", EngineError("nvidia-container-cli: ldcache error")), "unknown"),
        (probe("start", b""), "unknown"),
    ],
)
def test_a_container_should_get_the_gpus_it_is_asked_for(seen: Probe, expected: str) -> None:
    assert judge_toolkit(seen).state == expected


def test_images_that_are_missing_are_named() -> None:
    here = {"rubert-parus": ImageFacts(2 * GIB, None)}
    assert judge_images(["rubert-parus"], here).state == "good"
    finding = judge_images(["rubert-parus", "rubert-rcb"], here)
    assert finding.state == "unknown"
    assert "rubert-rcb" in finding.found
    assert "1 of 2" in finding.found


@pytest.mark.parametrize(
    ("variables", "cuda"),
    [
        ("CUDA_VERSION=12.4.1", "12.4"),
        ("PATH=/bin\nNVIDIA_REQUIRE_CUDA=cuda>=11.8 brand=tesla,driver>=450", "11.8"),
        ("NVIDIA_REQUIRE_CUDA=brand=tesla,driver>=450", None),
        ("MY_CUDA_VERSION=1.1", None),
        ("", None),
    ],
)
def test_an_image_tells_its_cuda_in_its_variables(variables: str, cuda: str | None) -> None:
    assert parse_cuda(variables) == cuda


@pytest.mark.parametrize(
    ("image", "driver", "expected"),
    [
        ("11.8", "12.4", "good"),
        ("12.4", "12.4", "good"),
        ("12.10", "12.9", "doubtful"),
        ("13.0", "12.4", "bad"),
        (None, "12.4", "unknown"),
        ("12.4", None, "unknown"),
    ],
)
def test_the_driver_should_be_as_new_as_the_image(
    image: str | None, driver: str | None, expected: str
) -> None:
    assert judge_cuda({"a": ImageFacts(GIB, image)}, driver).state == expected


def test_the_newest_cuda_of_several_images_decides() -> None:
    images = {"a": ImageFacts(GIB, "11.8"), "b": ImageFacts(GIB, "13.0")}
    finding = judge_cuda(images, "12.4")
    assert finding.state == "bad"
    assert "13.0 in b" in finding.found


def test_a_probe_is_a_small_archive_of_a_program_and_its_libraries() -> None:
    cat = shutil.which("cat")
    assert cat
    packed = pack_programs(cat)
    assert len(packed) < 8 * 2**20
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert cat.lstrip("/") in tar.getnames()
        assert all(entry.isfile() for entry in tar)
