"""Images of trained tasks: built, then looked at."""

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
"""What an image has no use for."""
_CPU_BASE, _CPU_TORCH = "python:3.11-slim", "torch==2.13.0"
_SLACK = 2**20
"""Bytes that layers may take beyond the files in them."""


@dataclass(frozen=True)
class Build:
    """What the user chooses."""

    image: str
    base: str | None = None
    """An image with PyTorch; None for that of the Dockerfile."""
    cpu: bool = False
    """Whether the base is a plain Python image, and PyTorch comes without CUDA."""
    torch_index: str | None = None
    """Where pip finds builds for the CPU beside those it knows."""


def build(choice: Build, out_dir: Path, task: Task) -> None:
    """Build the image of a task, start it once, and tell its size on stderr.

    ExampleError says what is missing, or what is wrong with the image.
    """
    context = list(_context(out_dir, task))
    _docker("the Docker engine does not answer", "version", "--format", "{{.Server.Version}}")
    _build(context, ["--tag", choice.image, *_arguments(choice, task)])
    try:
        _check_start(choice.image)
        own, whole = check_size(choice.image, sum(path.stat().st_size for path, _ in context))
    except ExampleError:
        _docker(f"{choice.image} cannot be removed", "rmi", choice.image)  # nobody should use it
        raise
    size = f"{whole / 1e9:.2f} GB, {own / 1e6:.1f} MB of them its own"
    sys.stderr.write(f"main.py: {choice.image} starts without a network; {size}\n")


def check_size(image: str, sent: int) -> tuple[int, int]:
    """Return the bytes of the image's own layers, and of all of them.

    ExampleError where its own take more than the files that were sent.
    """
    layout = ("--human=false", "--no-trunc", "--format", "{{json .}}")
    history = _docker(f"{image} tells no sizes", "history", *layout, image)
    layers = [json.loads(line) for line in history.splitlines()]
    # The newest comes first; all that follows the libraries is the image's own.
    own = takewhile(lambda layer: "pip install" not in layer["CreatedBy"], layers)
    size = sum(int(layer["Size"]) for layer in own)
    if size > sent + _SLACK:
        raise ExampleError(
            f"{image} has {size:,} bytes of its own, for files of {sent:,}; "
            f"docker history {image} tells in which layers"
        )
    return size, sum(int(layer["Size"]) for layer in layers)


def _context(out_dir: Path, task: Task) -> Iterator[tuple[Path, str]]:
    """Yield each file that the build needs, and its name there."""
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
    """Build from these files alone: other tasks and other models are not sent to the engine."""
    command = [_find_docker(), "build", *options, "-"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stderr.fileno())
    assert process.stdin
    with process, suppress(BrokenPipeError), process.stdin as stream:  # it says why it broke off
        _send(context, stream)
    if process.returncode:
        raise ExampleError("docker build failed; it says why above")


def _send(context: Sequence[tuple[Path, str]], stream: IO[bytes]) -> None:
    """Write a tar that is the same wherever its files come from, so that layers are shared."""
    with tarfile.open(fileobj=stream, mode="w|") as tar:
        for path, name in context:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = path.stat().st_size, 0o644  # whoever runs may read it
            with path.open("rb") as file:
                tar.addfile(entry, file)


def _check_start(image: str) -> None:
    """Let the image load its weights and answer an empty input."""
    confined = ("--rm", "--interactive", "--network", "none", "--pull", "never")
    _docker(f"{image} does not start", "run", *confined, image, "--device", "cpu")


def _docker(failure: str, *arguments: str) -> str:
    """Return what a command prints; ExampleError says what it means that it failed, and why."""
    command = [_find_docker(), *arguments]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        reason = done.stderr.strip()
        if "\n" in reason:
            sys.stderr.write(f"{reason}\n")
            reason = "it says why above"
        raise ExampleError(f"{failure}: {reason}")
    return done.stdout


def _find_docker() -> str:
    docker = shutil.which("docker")
    if docker is None:
        raise ExampleError("there is no command `docker`: install Docker")
    return docker
