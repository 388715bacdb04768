"""What a suite looks at before its first run, so that nothing is found missing hours later."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from morocco.errors import DataError, MoroccoError, TargetError
from morocco.suite.plan import Job, Model
from morocco.suite.resume import Doubtful, Finished, look_up
from morocco.targets.factory import refuse_no_image
from morocco.targets.options import RunOptions
from morocco.targets.process import kill_orphans
from morocco.targets.target import EXEC_PREFIX, OnPull, is_process
from morocco.tasks import Records, find_data, load_records

_Key = TypeVar("_Key")
_Found = TypeVar("_Found")


def load_inputs(models: Sequence[Model], data_dir: Path) -> dict[tuple[str, int], Records]:
    """Return the input by task and size; DataError names every file that is missing or wrong."""
    needed = {
        (task, size)
        for model in models
        for task, sizes in model.sizes.items()
        for size in (1, sizes.input_size)
    }
    return _collect(sorted(needed), lambda key: load_records(find_data(data_dir, key[0]), key[1]))


def prepare_targets(
    targets: Iterable[str], options: RunOptions, on_pull: OnPull
) -> dict[str, str | None]:
    """Return the image id of each target, pulled where needed; None for a bare process.

    What a killed suite of the same folder left running is ended. The error names every image that
    cannot be had and every command that is not there.
    """
    processes, images = _sort(targets)
    end_leftovers(processes + images, options)
    _collect(processes, _find_command)
    found: dict[str, str | None] = dict.fromkeys(processes)
    return found | (_prepare_images(images, options, on_pull) if images else {})


def end_leftovers(targets: Iterable[str], options: RunOptions) -> None:
    """End what a killed suite left running on this machine: it would slow the next run down."""
    if options.suite is None:
        return
    kill_orphans(options.suite)
    _, images = _sort(targets)
    if images:
        from morocco.targets.engine import connect, remove_containers

        with closing(connect()) as client:
            remove_containers(client, options.suite)


def _sort(targets: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the bare processes and the images, each once."""
    distinct = list(dict.fromkeys(targets))
    processes = [target for target in distinct if is_process(target)]
    return processes, [target for target in distinct if not is_process(target)]


def _find_command(target: str) -> str:
    try:
        words = shlex.split(target.removeprefix(EXEC_PREFIX))
    except ValueError as error:
        raise TargetError(f"Cannot read the command {target!r}: {error}.") from None
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise TargetError(f"{target}: there is no such command.")
    return program


def _prepare_images(
    images: Sequence[str], options: RunOptions, on_pull: OnPull
) -> dict[str, str | None]:
    from morocco.targets.engine import connect, ensure_image

    for image in images:
        refuse_no_image(image)
    with closing(connect()) as client:
        return _collect(
            images,
            lambda image: str(ensure_image(client, image, options.container.pull, on_pull).id),
        )


def _collect(keys: Iterable[_Key], find: Callable[[_Key], _Found]) -> dict[_Key, _Found]:
    """Return what is found for each key; one error of the first one's class tells of them all."""
    found: dict[_Key, _Found] = {}
    errors: list[MoroccoError] = []

    def note(key: _Key) -> None:
        try:
            found[key] = find(key)
        except MoroccoError as error:
            errors.append(error)

    for key in keys:
        note(key)
    if errors:
        raise type(errors[0])("\n".join(dict.fromkeys(map(str, errors))))
    return found


@dataclass(frozen=True)
class SuiteState:
    """What of a suite is done and what is to do."""

    finished: dict[Job, Finished]
    due: frozenset[Job]
    doubtful: dict[Job, Doubtful]
    """Part of those due: their logs are there, but nobody can say that they are good."""


def take_stock(jobs: Sequence[Job], *, force: bool) -> SuiteState:
    """Return what is done; DataError for runs that were made otherwise than is planned now."""
    if force:
        return SuiteState({}, frozenset(jobs), {})
    states = {job: look_up(job) for job in jobs}
    finished = {job: state for job, state in states.items() if isinstance(state, Finished)}
    doubtful = {job: state for job, state in states.items() if isinstance(state, Doubtful)}
    refuse_others({job: state.differences for job, state in finished.items()})
    return SuiteState(finished, frozenset(job for job in jobs if job not in finished), doubtful)


def find_other_images(
    finished: Mapping[Job, Finished], image_ids: Mapping[str, str | None]
) -> dict[Job, tuple[str, ...]]:
    """Return the finished runs whose image has changed since."""
    return {
        job: (f"image {_short(state.image_id)}, now {_short(image_ids[job.target])}",)
        for job, state in finished.items()
        if state.image_id != image_ids.get(job.target, state.image_id)
    }


def refuse_others(differences: dict[Job, tuple[str, ...]]) -> None:
    """Raise DataError for finished runs that are not those planned now; nothing is touched."""
    told = [f"  {job.path}: {'; '.join(found)}" for job, found in differences.items() if found]
    if told:
        more = [f"  and {len(told) - 5} more"] if len(told) > 5 else []
        raise DataError(
            "These runs were measured otherwise, and must not be mixed with new ones:\n"
            + "\n".join(told[:5] + more)
            + "\nName another folder with --logs, or measure all runs again with --force."
        )


def _short(image_id: str | None) -> str:
    return str(image_id).removeprefix("sha256:")[:12]
