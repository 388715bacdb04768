"""Build the image of a trained task, and check it."""

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import IO

from models import model_files, weight_files
from records import ExampleError
from tasks import Task

_HERE = Path(__file__).parent
_NOT_SERVED = {"image.py", "random_model.py", "training.py"}
"""Files that an image does not need."""
_CPU_BASE, _CPU_TORCH = "python:3.11-slim", "torch==2.13.0"
_SLACK = 2**20
"""Bytes that layers may take beyond their files."""


@dataclass(frozen=True)
class Build:
    """The options of `docker-build`."""

    image: str
    base: str | None = None
    """An image with PyTorch; None for the default of the Dockerfile."""
    cpu: bool = False
    """Whether the base is a plain Python image, and PyTorch comes without CUDA."""
    torch_index: str | None = None
    """An extra index for PyTorch's CPU builds."""


def build(choice: Build, out_dir: Path, task: Task) -> None:
    """Build the image of a task, start it once, and report its size on stderr.

    ExampleError says what is missing, or what is wrong with the image.
    """
    context = list(_context(out_dir, task))
    _docker("the Docker engine does not answer", "version", "--format", "{{.Server.Version}}")
    _build(context, ["--tag", choice.image, *_arguments(choice, task)])
    try:
        _check_start(choice.image)
        own, whole = check_size(choice.image, sum(path.stat().st_size for path, _ in context))
    except ExampleError:
        _docker(f"{choice.image} cannot be removed", "rmi", choice.image)  # it must not be used
        raise
    size = f"{whole / 1e9:.2f} GB, {own / 1e6:.1f} MB of them its own"
    sys.stderr.write(f"main.py: {choice.image} starts without a network; {size}\n")


def check_size(image: str, sent: int) -> tuple[int, int]:
    """Return the bytes of the image's own layers, and of all layers.

    ExampleError if its own layers take more than the files that were sent.
    """
    layout = ("--human=false", "--no-trunc", "--format", "{{json .}}")
    history = _docker(f"cannot get the layer sizes of {image}", "history", *layout, image)
    layers = [json.loads(line) for line in history.splitlines()]
    # The newest comes first; everything after the libraries is the image's own.
    own = takewhile(lambda layer: "pip install" not in layer["CreatedBy"], layers)
    size = sum(int(layer["Size"]) for layer in own)
    if size > sent + _SLACK:
        raise ExampleError(
            f"{image} adds {size:,} bytes for files of {sent:,}; "
            f"docker history {image} shows the layers"
        )
    return size, sum(int(layer["Size"]) for layer in layers)


def _context(out_dir: Path, task: Task) -> Iterator[tuple[Path, str]]:
    """Yield each file of the build context, and its name there."""
    for name in ("Dockerfile", "requirements.txt"):
        yield _HERE / name, name
    for path in sorted(_HERE.glob("*.py")):
        if path.name not in _NOT_SERVED:
            yield path, path.name
    for path in model_files(out_dir):
        yield path, f"model/{path.name}"
    for path in weight_files(out_dir, task):
        yield path, f"weights/{task.trained_as}/{path.name}"


def _arguments(choice: Build, task: Task) -> Iterator[str]:
    arguments = {"BASE": choice.base, "WEIGHTS": task.trained_as, "TASK": task.name}
    if choice.cpu:
        arguments["BASE"] = choice.base or _CPU_BASE
        arguments |= {"TORCH": _CPU_TORCH, "TORCH_INDEX": choice.torch_index}
    for key, value in arguments.items():
        if value:
            yield "--build-arg"
            yield f"{key}={value}"


def _build(context: Sequence[tuple[Path, str]], options: Sequence[str]) -> None:
    """Build from these files alone, without other tasks and models."""
    command = [_find_docker(), "build", "--force-rm", *options, "-"]  # no container after a failure
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stderr.fileno())
    assert process.stdin
    with process, suppress(BrokenPipeError), process.stdin as stream:  # docker prints the reason
        _send(context, stream)
    if process.returncode:
        raise ExampleError("docker build failed; see its output above")


def _send(context: Sequence[tuple[Path, str]], stream: IO[bytes]) -> None:
    """Write a tar that does not depend on where its files come from, so that layers are shared."""
    with tarfile.open(fileobj=stream, mode="w|") as tar:
        for path, name in context:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = path.stat().st_size, 0o644  # readable by any user
            with path.open("rb") as file:
                tar.addfile(entry, file)


def _check_start(image: str) -> None:
    """Start the image on an empty input: it must load its weights and end well."""
    confined = ("--rm", "--interactive", "--network", "none", "--pull", "never")
    _docker(f"{image} does not start", "run", *confined, image, "--device", "cpu")


def _docker(failure: str, *arguments: str) -> str:
    """Return the output of a docker command; ExampleError names the failure and the reason."""
    command = [_find_docker(), *arguments]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        reason = done.stderr.strip()
        if "\n" in reason:
            sys.stderr.write(f"{reason}\n")
            reason = "see above"
        raise ExampleError(f"{failure}: {reason}")
    return done.stdout


def _find_docker() -> str:
    docker = shutil.which("docker")
    if docker is None:
        raise ExampleError("the command `docker` is missing: install Docker")
    return docker
