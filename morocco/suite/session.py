"""The command `suite`: everything looked at first, then all runs that are not done yet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from morocco.bench.display import RunDisplay, is_terminal
from morocco.bench.interrupts import forward_signals
from morocco.bench.writers import clear_part
from morocco.errors import DataError, EngineError, OutputError, SuiteFailed
from morocco.hardware.gpu import Gpus
from morocco.hardware.host import list_cores, read_host_info
from morocco.suite.display import SuiteDisplay, render_plan
from morocco.suite.lanes import LocalLane, Share, share_memory, share_out
from morocco.suite.plan import OVERHEAD, Block, Forecast, Job, Model, make_blocks
from morocco.suite.preflight import (
    SuiteState,
    end_leftovers,
    find_other_images,
    load_inputs,
    prepare_targets,
    refuse_others,
    take_stock,
)
from morocco.suite.resume import Doubtful, SuiteFolder
from morocco.suite.scheduler import LanePool, LocalPool, Suite, tell_failures
from morocco.targets.options import RunOptions, parse_env
from morocco.targets.target import is_process
from morocco.util.units import plural

_OLD = [".old", *(f".old-{number}" for number in range(2, 1000))]
"""What is set aside gets the first of these endings that is free."""


@dataclass(frozen=True)
class SuiteOptions:
    """The command line of `suite` and its file, put together."""

    models: Sequence[Model]
    data_dir: Path
    logs: Path
    retries: int
    force: bool
    parallel: bool
    cluster: str | None
    quiet: bool
    run: RunOptions


def plan_command(options: SuiteOptions) -> str:
    """Return the plan as a table, with the time it will take where earlier runs tell."""
    with ExitStack() as stack:
        shares = _share(options, stack)
        options = _limit(options, shares)
        blocks = _make_blocks(options)
        state = take_stock(_jobs(blocks), force=options.force)
        return render_plan(blocks, state, _learn(state), lanes=len(shares))


def suite_command(options: SuiteOptions) -> None:
    """Do all runs that are not done yet; SuiteFailed if some could not be done."""
    live = is_terminal(sys.stderr)
    board = SuiteDisplay(live=live, quiet=options.quiet)
    with ExitStack() as stack:
        shares = _share(options, stack)
        options = _limit(options, shares)
        name = stack.enter_context(SuiteFolder(options.logs))
        options = replace(options, run=replace(options.run, suite=name))
        blocks = _make_blocks(options)
        _clear_away(blocks, options)
        state = take_stock(_jobs(blocks), force=options.force)
        if not state.due:
            done = plural(len(state.finished), "run")
            board.say(f"All {done} are done: {options.logs}. Next: morocco check {options.logs}")
            return
        left = _leave_out_finished(blocks, state)
        if options.cluster is None:
            with RunDisplay(live=live, quiet=options.quiet) as screen:
                crew = _gather_here(options, shares, left, state, screen)
        else:
            crew = _gather_workers(options, left, state, board, stack)
        _set_aside(state.doubtful, board)
        suite = Suite(
            left, crew, board, _learn(state), retries=options.retries, force=options.force
        )
        forward_signals(suite.stop)
        _run(suite, board, len(_jobs(blocks)), state, options.logs)


def _share(options: SuiteOptions, stack: ExitStack) -> list[Share]:
    """Return the lanes of this machine; its GPUs stay open, so that the driver stays loaded."""
    if options.cluster is not None:
        return []
    gpus = stack.enter_context(Gpus.open(options.run.gpus))
    if options.parallel:
        return share_out(gpus.infos, list_cores())
    if options.run.gpus == "auto" and gpus.infos:
        return [Share(gpus.infos[0].uuid)]
    return [Share(options.run.gpus)]


def _limit(options: SuiteOptions, shares: Sequence[Share]) -> SuiteOptions:
    """Return the options as they hold on every lane: an equal part of the RAM if parallel.

    On other machines the paths are those of here, and so are the values of variables.
    """
    if options.cluster is not None:
        env = tuple(f"{name}={value}" for name, value in parse_env(options.run.env).items())
        return replace(
            options, data_dir=options.data_dir.absolute(), run=replace(options.run, env=env)
        )
    if not options.parallel:
        return options
    if options.run.container.memory is not None or options.run.container.cpus is not None:
        raise DataError(
            "--parallel shares out cores and RAM itself; leave out --memory and --cpus."
        )
    if all(is_process(model.target) for model in options.models):
        return options  # which no share of the RAM can be held to
    memory = share_memory(read_host_info().ram, len(shares))
    return replace(options, run=options.run.with_container(memory=memory))


def _make_blocks(options: SuiteOptions) -> list[Block]:
    records = load_inputs(options.models, options.data_dir)
    # Pulled once, before the first run: all runs are to be of one image.
    once = options.run.container.pull == "always"
    run = options.run.with_container(pull="missing") if once else options.run
    return make_blocks(options.models, records, options.logs, run)


def _jobs(blocks: Sequence[Block]) -> list[Job]:
    return [job for block in blocks for job in block.jobs]


def _clear_away(blocks: Sequence[Block], options: SuiteOptions) -> None:
    """End what a killed suite left running here, and remove the beginnings of logs it left."""
    if options.cluster is None:
        with suppress(EngineError):  # if the engine is needed, that is said later
            end_leftovers(_targets(blocks), options.run)
    for block in blocks:
        for job in (block.warm_up, *block.jobs):
            clear_part(job.path)


def _leave_out_finished(blocks: Sequence[Block], state: SuiteState) -> list[Block]:
    due = (
        replace(block, jobs=tuple(job for job in block.jobs if job in state.due))
        for block in blocks
    )
    return [block for block in due if block.jobs]


def _learn(state: SuiteState) -> Forecast:
    forecast = Forecast()
    for job, finished in state.finished.items():
        forecast.learn(job, finished.run_time + OVERHEAD)
    return forecast


def _gather_here(
    options: SuiteOptions,
    shares: Sequence[Share],
    left: Sequence[Block],
    state: SuiteState,
    screen: RunDisplay,
) -> LanePool:
    """Return the lanes of this machine, once every image and command is known to be there."""
    images = prepare_targets(_targets(left), options.run, screen.pull)
    refuse_others(find_other_images(state.finished, images))
    return LocalPool(
        LocalLane(f"lane {number}", share) for number, share in enumerate(shares, start=1)
    )


def _gather_workers(
    options: SuiteOptions,
    left: Sequence[Block],
    state: SuiteState,
    board: SuiteDisplay,
    stack: ExitStack,
) -> LanePool:
    """Return the workers of a cluster; each is asked for images and data before its first run."""
    try:
        from morocco.suite.dask_pool import DaskPool
    except ImportError as error:
        raise EngineError(
            f"--cluster needs Dask ({error}): pip install 'morocco[dask]', here and everywhere."
        ) from None
    return stack.enter_context(
        DaskPool(
            options.cluster or "",
            (_targets(left), list({block.warm_up.records for block in left}), options.run),
            on_images=lambda images: refuse_others(find_other_images(state.finished, images)),
            warn=lambda message: board.warn(None, message),
            live=is_terminal(sys.stderr) and not options.quiet,
        )
    )


def _targets(blocks: Sequence[Block]) -> list[str]:
    return [block.warm_up.target for block in blocks]


def _set_aside(doubtful: dict[Job, Doubtful], board: SuiteDisplay) -> None:
    """Keep what is there under another name, and measure it again."""
    for job, doubt in doubtful.items():
        ending = next(ending for ending in _OLD if not _beside(job.path, ending).exists())
        for path in (job.path.with_suffix(".json"), job.path):
            _rename(path, _beside(path, ending))
        kept = _beside(job.path, ending)
        board.warn(job, f"{doubt.reason}. It is measured again; what was there is now {kept}.")


def _rename(path: Path, new: Path) -> None:
    try:
        path.replace(new)
    except FileNotFoundError:  # a record that is missing may be the doubt
        pass
    except OSError as error:
        raise OutputError(f"Cannot rename {path} to {new}: {error.strerror}.") from None


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _run(suite: Suite, board: SuiteDisplay, total: int, state: SuiteState, logs: Path) -> None:
    board.start(total, done=len(state.finished))
    try:
        failures = suite.run()
    except BaseException:
        board.stop()
        board.say(f"{board.done} of {total} runs are done; the same command goes on from there.")
        raise
    board.stop()
    told = f"{board.done} of {plural(total, 'run')} done: {logs}"
    if failures:
        raise SuiteFailed(
            f"{told}. Failed:\n{tell_failures(failures)}\nTheir records (.failed.json) say more. "
            "The same command tries them again."
        )
    board.say(f"{told}. Next: morocco check {logs}")
