"""The container engine, and the images that it is to run."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from morocco.doctor.finding import Finding, refuse
from morocco.doctor.machine import judge_disk
from morocco.errors import EngineError, MoroccoError
from morocco.hardware.info import GpuInfo
from morocco.targets.engine import (
    ImageFacts,
    engine_errors,
    open_engine,
    read_engine_name,
    read_image,
)
from morocco.targets.factory import check_image_name
from morocco.targets.probe import Probe, probe_image
from morocco.util.units import Seconds, format_bytes, plural

if TYPE_CHECKING:
    from docker import DockerClient

_TIMEOUT = 3
"""Seconds, for all that is asked of the engine."""
_LEAST: Seconds = 0.5
"""Left for what comes last, however long the rest took."""
_SLOW: Seconds = 1
"""For a single answer."""
_SEE_LOG = "see the log of the engine: journalctl -u docker"
_NO_TOOLKIT = "install the NVIDIA Container Toolkit and restart the engine, or use --gpus none"
_Value = TypeVar("_Value")


def look_at_engine(images: Sequence[str], gpus: Sequence[GpuInfo]) -> Iterator[Finding]:
    """Look at the engine, the images and the GPUs that it gives, even if it hangs."""
    deadline = time.monotonic() + _TIMEOUT
    try:
        client, system = open_engine(_TIMEOUT)
    except EngineError as error:
        yield refuse("engine", error)
        return
    with closing(client), engine_errors("Cannot query the engine"):
        name, asked = read_engine_name(client), time.monotonic()
        client.ping()
        yield judge_engine(name, time.monotonic() - asked)
        yield _look_at_disk(system.get("DockerRootDir"))
        if images:
            yield from _look_at_images(client, images, gpus)
        yield from _probe((client, name), gpus, deadline)


def judge_engine(name: str, answered: Seconds) -> Finding:
    """Judge an engine that answered after some time."""
    found = f"{name}, which answers after {answered:.2f} s"
    if answered < _SLOW:
        return Finding("engine", "good", found)
    return Finding("engine", "doubtful", found, _SEE_LOG)


def _look_at_disk(folder: str | None) -> Finding:
    if not folder or not Path(folder).exists():
        found = f"the folder of the engine's images is not to be seen from here: {folder}"
        return Finding("image-disk", "unknown", found)
    return judge_disk("image-disk", Path(folder), images=True)


def _look_at_images(
    client: DockerClient, names: Sequence[str], gpus: Sequence[GpuInfo]
) -> Iterator[Finding]:
    try:
        for name in names:
            check_image_name(name)
        facts = {name: read_image(client, name) for name in names}
    except MoroccoError as error:
        yield refuse("image", error)
        return
    here = {name: found for name, found in facts.items() if found is not None}
    yield judge_images(names, here)
    if gpus and here:
        yield judge_cuda(here, gpus[0].cuda)


def judge_images(names: Sequence[str], here: Mapping[str, ImageFacts]) -> Finding:
    """Judge whether the images are on this machine."""
    missing = [name for name in names if name not in here]
    size = f"up to {format_bytes(max(image.size for image in here.values()))}" if here else ""
    if not missing:
        size = size.removeprefix("up to ") if len(here) == 1 else f"{size} each"
        return Finding("image", "good", f"{plural(len(here), 'image')} here, {size}")
    some = f"{len(here)} of {len(names)} here{f', {size} each' if here else ''}; "
    found = f"{some if len(names) > 1 else ''}not here: {', '.join(missing)}"
    return Finding("image", "unknown", found, "a run pulls it first, which may take long")


def judge_cuda(images: Mapping[str, ImageFacts], driver: str | None) -> Finding:
    """Judge the CUDA of images against the newest that the driver supports."""
    told = {name: image.cuda for name, image in images.items() if image.cuda is not None}
    if not told or driver is None:
        what = "the driver does" if told else "the images do"
        return Finding("cuda", "unknown", f"{what} not tell a version of CUDA")
    newer = {name: cuda for name, cuda in told.items() if _parse(cuda) > _parse(driver)}
    if not newer:
        newest = max(told.values(), key=_parse)
        return Finding("cuda", "good", f"CUDA {newest} in the image, the driver has {driver}")
    name, cuda = max(newer.items(), key=lambda item: _parse(item[1]))
    found = f"CUDA {cuda} in {name}, the driver has only {driver}"
    todo = "install a newer driver, or build the image with an older CUDA"
    if _parse(cuda)[0] > _parse(driver)[0]:
        return Finding("cuda", "bad", found, todo)
    return Finding("cuda", "doubtful", f"{found}, with which most programs run", todo)


def _parse(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _probe(
    connection: tuple[DockerClient, str], gpus: Sequence[GpuInfo], deadline: Seconds
) -> Iterator[Finding]:
    """Run a container of this machine's `cat`, then one with the GPUs."""

    def left() -> Seconds:
        return max(_LEAST, deadline - time.monotonic())

    with ExitStack() as stack:
        try:
            image = _within(left(), lambda: stack.enter_context(probe_image(connection[0])))
        except (MoroccoError, OSError) as error:
            yield Finding("start", "unknown", f"no container can be made to try it: {error}")
            return
        plain = Probe(connection, image)
        plain.run(left())
        yield judge_start(plain)
        if plain.started:
            yield judge_visibility(plain)
            yield judge_input(plain)
        if gpus and plain.started:
            probe = Probe(connection, image, [(gpu.index, gpu.uuid) for gpu in gpus])
            probe.run(left())
            yield judge_toolkit(probe)


def _within(seconds: Seconds, function: Callable[[], _Value]) -> _Value:
    """Return what a function returns, or raise what it raises; TimeoutError if it takes longer."""
    results: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def work() -> None:
        try:
            results.put((function(), None))
        except Exception as error:
            results.put((None, error))

    Thread(target=work, name="engine", daemon=True).start()
    try:
        value, error = results.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"the engine did not answer within {seconds:.0f} s") from None
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def judge_start(probe: Probe) -> Finding:
    """Judge whether a container can be started."""
    if probe.started:
        return Finding("start", "good", "a container can be started")
    if isinstance(probe.failure, EngineError) and not probe.was_given_up:
        return Finding("start", "bad", _tell_failure(probe), _SEE_LOG)
    return Finding("start", "unknown", _tell_failure(probe))


def judge_visibility(probe: Probe) -> Finding:
    """Judge whether the processes of containers can be read."""
    if probe.hidden is not None:
        return refuse("processes", probe.hidden)
    return Finding("processes", "good", "the processes of containers can be seen from here")


def judge_input(probe: Probe) -> Finding:
    """Judge whether a container learns that its input has ended."""
    if probe.passed:
        return Finding("stdin", "good", "a container ends when its input does")
    if probe.stage == "end" and probe.failure is None:
        found = "the end of its input does not reach a container, so a model waits for ever"
        return Finding("stdin", "bad", found, "update the engine, or set DOCKER_HOST to another")
    return Finding("stdin", "unknown", _tell_failure(probe))


def judge_toolkit(probe: Probe) -> Finding:
    """Judge whether the engine gives a container the GPUs that it is asked for."""
    asked = {uuid for _, uuid in probe.gpus}
    if probe.stage != "done":
        failure = _tell_failure(probe)
        is_probe_to_blame = "ldconfig" in failure or "ldcache" in failure
        if probe.failure is None or probe.was_given_up or is_probe_to_blame:
            return Finding("toolkit", "unknown", failure)
        return Finding("toolkit", "bad", failure, _NO_TOOLKIT)
    if probe.gpus_given and probe.gpus_given != asked:
        given = ", ".join(sorted(probe.gpus_given))
        found = f"the engine gives {given} where {', '.join(sorted(asked))} are asked for"
        return Finding("toolkit", "bad", found, _NO_TOOLKIT)
    if not probe.gpus_given and not probe.has_driver:
        found = "nothing in a container shows the GPUs that it was given"
        return Finding("toolkit", "doubtful", found, _NO_TOOLKIT)
    return Finding("toolkit", "good", f"a container gets {plural(len(asked), 'GPU')}")


def _tell_failure(probe: Probe) -> str:
    if probe.was_given_up:
        return f"the engine took too long to {probe.stage} a container"
    if probe.failure is not None:
        told = str(probe.failure).partition(". ")[0]
        return told.removeprefix(f"Cannot start {probe.image}: ")
    return "the program `cat` of this machine does not run in a container"
