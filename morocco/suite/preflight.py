"""What a suite checks before its first run, so that nothing is found missing hours later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from morocco.bench.writers import clear_part
from morocco.errors import DataError, EngineError, MoroccoError
from morocco.suite.plan import OVERHEAD, Block, Forecast, Job, Model
from morocco.suite.resume import Doubtful, Finished, read_state
from morocco.targets.factory import check_image_name, end_strays
from morocco.targets.options import RunOptions
from morocco.targets.process import find_command, kill_orphans
from morocco.targets.target import OnPull, is_process
from morocco.tasks import Records, find_data, load_records

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_ASKED = Doubtful("As --redo or --repair asks")
_MOST_NAMED = 5
"""Runs that an error names one by one."""


def load_inputs(models: Sequence[Model], data_dir: Path) -> dict[tuple[str, int], Records]:
    """Return the input by task and size; DataError names every file that is missing or wrong."""
    needed = {
        (task, size)
        for model in models
        for task, sizes in model.sizes.items()
        for size in (1, sizes.input_size)
    }
    return _map_all(sorted(needed), lambda key: load_records(find_data(data_dir, key[0]), key[1]))


def prepare_targets(
    targets: Iterable[str], options: RunOptions, on_pull: OnPull
) -> dict[str, str | None]:
    """Return the image id of each target, pulled if needed; None for a bare process.

    End what a killed suite of the same folder left running. The error names every missing image
    or every missing command.
    """
    processes, images = _split(targets)
    end_leftovers(processes + images, options)
    _map_all(processes, find_command)
    ids: dict[str, str | None] = dict.fromkeys(processes)
    return ids | (_prepare_images(images, options, on_pull) if images else {})


def remove_leftovers(blocks: Sequence[Block], options: RunOptions, *, here: bool) -> str | None:
    """Remove the unfinished logs of a killed suite; end its runs if they were on this machine.

    So are those of killed `bench` commands; the sentence about them is returned.
    """
    told = None
    if here:
        targets = [block.warm_up.target for block in blocks]
        told = end_strays(targets)
        with suppress(EngineError):  # reported later if the engine is needed
            end_leftovers(targets, options)
    for block in blocks:
        for job in (block.warm_up, *block.jobs):
            clear_part(job.path)
    return told


def end_leftovers(targets: Iterable[str], options: RunOptions) -> None:
    """End what a killed suite left running on this machine, which would slow down the next run."""
    if options.suite is None:
        return
    kill_orphans(options.suite)
    _, images = _split(targets)
    if images:
        from morocco.targets.engine import connect, remove_containers

        with closing(connect()) as client:
            remove_containers(client, options.suite)


def _split(targets: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the bare processes and the images, without duplicates."""
    distinct = list(dict.fromkeys(targets))
    processes = [target for target in distinct if is_process(target)]
    return processes, [target for target in distinct if not is_process(target)]


def _prepare_images(
    images: Sequence[str], options: RunOptions, on_pull: OnPull
) -> dict[str, str | None]:
    from morocco.targets.engine import connect, ensure_image

    for image in images:
        check_image_name(image)
    with closing(connect()) as client:
        return _map_all(
            images,
            lambda image: str(ensure_image(client, image, options.container.pull, on_pull).id),
        )


def _map_all(keys: Iterable[_Key], function: Callable[[_Key], _Value]) -> dict[_Key, _Value]:
    """Return the value of each key; if some fail, one error of the first one's class names all."""
    values: dict[_Key, _Value] = {}
    errors: list[MoroccoError] = []

    def add(key: _Key) -> None:
        try:
            values[key] = function(key)
        except MoroccoError as error:
            errors.append(error)

    for key in keys:
        add(key)
    if errors:
        raise type(errors[0])("\n".join(dict.fromkeys(map(str, errors))))
    return values


@dataclass(frozen=True)
class SuiteState:
    """What of a suite is done and what is left to do."""

    finished: dict[Job, Finished]
    due: frozenset[Job]
    doubtful: dict[Job, Doubtful]
    """Those of `due` that have a log which cannot be trusted."""

    def select_due(self, blocks: Sequence[Block]) -> list[Block]:
        """Return the blocks with only the runs that are due."""
        due = (
            replace(block, jobs=tuple(job for job in block.jobs if job in self.due))
            for block in blocks
        )
        return [block for block in due if block.jobs]

    def build_forecast(self) -> Forecast:
        """Return what the finished runs show about the duration of the others."""
        forecast = Forecast()
        for job, finished in self.finished.items():
            forecast.add(job, finished.run_time + OVERHEAD)
        return forecast


def find_repairs(logs: Path) -> list[str]:
    """Return the logs that `check` wants measured again, as choose_redone takes them."""
    from morocco.check.check import check
    from morocco.logs.submission import load_submission

    if not any(logs.rglob("*.jsonl")):
        return []
    checked = check(load_submission([logs]))
    return [
        f"{detail.model}/{file}" if checked.many_models else file
        for result in checked.results
        if result.repeat
        for detail in result.details
        for file in detail.files
    ]


def choose_redone(
    blocks: Sequence[Block], redo: Iterable[str], repairs: Sequence[str]
) -> frozenset[Job]:
    """Return the jobs to do again, by the names of their logs: parus/1_1_03, rubert/parus/1_1_03.

    DataError for a name in `redo` that no run of the suite has, or several of them.
    """
    jobs = [job for block in blocks for job in block.jobs]
    wrong = (job for job in jobs if any(_is_called(job, name) for name in repairs))
    return frozenset([*(_find_job(jobs, name) for name in redo), *wrong])


def _find_job(jobs: Sequence[Job], name: str) -> Job:
    found = [job for job in jobs if _is_called(job, name)]
    if len(found) != 1:
        raise DataError(
            f"--redo: this suite has {'several runs' if found else 'no run'} called {name}. Name "
            f"each run as {(found or jobs)[0].label}."
        )
    return found[0]


def _is_called(job: Job, name: str) -> bool:
    parts = tuple(name.removesuffix(".jsonl").split("/"))
    return len(parts) > 1 and job.path.with_suffix("").parts[-len(parts) :] == parts


def take_stock(blocks: Sequence[Block], *, force: bool, redo: Collection[Job] = ()) -> SuiteState:
    """Return what is done, without the runs to `redo`.

    DataError for finished runs that differ from what is planned now.
    """
    jobs = [job for block in blocks for job in block.jobs]
    if force:
        return SuiteState({}, frozenset(jobs), {})
    states = {job: read_state(job) for job in jobs}
    states |= {job: _ASKED for job in redo if states[job] is not None}
    finished = {job: state for job, state in states.items() if isinstance(state, Finished)}
    doubtful = {job: state for job, state in states.items() if isinstance(state, Doubtful)}
    _refuse_differences({job: state.differences for job, state in finished.items()})
    return SuiteState(finished, frozenset(job for job in jobs if job not in finished), doubtful)


def check_images(finished: Mapping[Job, Finished], image_ids: Mapping[str, str | None]) -> None:
    """Raise DataError for finished runs whose image has changed since."""
    _refuse_differences(
        {
            job: (f"image {_shorten(state.image_id)}, now {_shorten(image_ids[job.target])}",)
            for job, state in finished.items()
            if state.image_id != image_ids.get(job.target, state.image_id)
        }
    )


def _refuse_differences(differences: Mapping[Job, tuple[str, ...]]) -> None:
    different = [f"  {job.path}: {'; '.join(texts)}" for job, texts in differences.items() if texts]
    if not different:
        return
    named, others = different[:_MOST_NAMED], len(different) - _MOST_NAMED
    raise DataError(
        "These runs were measured under other conditions and must not be mixed with new ones:\n"
        + "\n".join([*named, f"  and {others} more"] if others > 0 else named)
        + "\nChoose another folder with --logs, or measure all runs again with --force."
    )


def _shorten(image_id: str | None) -> str:
    return str(image_id).removeprefix("sha256:")[:12]
