"""One suite, from its options to its last run: check everything, then do what is not done yet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from morocco.bench.display import RunDisplay, is_terminal
from morocco.bench.interrupts import forward_signals
from morocco.check.profile import needs_profile, write_profile
from morocco.errors import EngineError, SuiteFailed
from morocco.hardware.gpu import Gpus
from morocco.hardware.host import list_cores, read_host_info
from morocco.suite.display import SuiteDisplay, render_plan
from morocco.suite.lanes import LocalLane, Share, split_machine
from morocco.suite.options import SuiteOptions
from morocco.suite.plan import Block, build_blocks
from morocco.suite.preflight import (
    SuiteState,
    check_images,
    choose_redone,
    find_repairs,
    load_inputs,
    prepare_targets,
    remove_leftovers,
    take_stock,
)
from morocco.suite.resume import hold_folder, remove_failed_warm_ups, set_aside
from morocco.suite.scheduler import LanePool, LocalPool, Suite, render_failures
from morocco.targets.options import limit_memory
from morocco.targets.target import is_process
from morocco.util.units import plural

_REFUSED_ANYWAY = ("command", "engine", "image")
"""What the preflight finds wrong too, and then ends the suite."""


def plan_suite(options: SuiteOptions) -> str:
    """Return the plan as a table, with the time it takes as far as earlier runs show it."""
    with ExitStack() as stack:
        options, shares = _assign_shares(options, stack)
        blocks = _plan_blocks(options)
        state = _take_stock(blocks, options)
        return render_plan(blocks, state, state.build_forecast(), lanes=len(shares))


def run_suite(options: SuiteOptions) -> None:
    """Do all runs that are not done yet; SuiteFailed if some of them failed."""
    display = SuiteDisplay(live=is_terminal(sys.stderr), quiet=options.quiet)
    with ExitStack() as stack:
        options, shares = _assign_shares(options, stack)
        name = stack.enter_context(hold_folder(options.logs))
        options = replace(options, run=replace(options.run, suite=name))
        blocks = _plan_blocks(options)
        if told := remove_leftovers(blocks, options.run, here=options.cluster is None):
            display.warn(None, told)
        state = _take_stock(blocks, options)
        if not state.due:
            done = plural(len(state.finished), "run")
            display.say(f"All {done} are done: {options.logs}. Next: {_name_check(options)}")
            return
        left = state.select_due(blocks)
        if options.cluster is None:
            if not options.no_doctor:
                _warn_of_machine(options, shares, left, display)
            pool: LanePool = _open_local_pool(options, shares, left, state)
        else:
            pool = _open_cluster(options.cluster, options, left, state, display, stack)
        set_aside(state.doubtful, display.warn)
        suite = Suite(
            left,
            pool,
            display,
            state.build_forecast(),
            retries=options.retries,
            force=options.force,
            in_turns=options.cluster is None and not options.one_by_one,
        )
        forward_signals(suite.stop)
        _run(suite, display, options, blocks, state)


def _take_stock(blocks: Sequence[Block], options: SuiteOptions) -> SuiteState:
    repairs = find_repairs(options.logs) if options.repair else []
    redo = choose_redone(blocks, options.redo or (), repairs)
    return take_stock(blocks, force=options.force, redo=redo)


def _assign_shares(options: SuiteOptions, stack: ExitStack) -> tuple[SuiteOptions, list[Share]]:
    """Return the options as they apply to each lane of this machine, and the lanes' shares of it.

    The GPUs stay open until the stack closes, so that the driver stays loaded.
    """
    if options.cluster is not None:
        return options, []
    gpus = stack.enter_context(Gpus.open(options.run.gpus))
    if not options.parallel:
        return options, [Share.of_gpus(gpus, options.run.gpus)]
    shares = split_machine(gpus.infos, list_cores())
    if all(is_process(model.target) for model in options.models):  # their RAM cannot be limited
        return options, shares
    memory = limit_memory(read_host_info().ram, len(shares))
    return replace(options, run=options.run.with_container(memory=memory)), shares


def _plan_blocks(options: SuiteOptions) -> list[Block]:
    records = load_inputs(options.models, options.data_dir)
    # Images are pulled once, before the first run: all runs must use the same one.
    pull_once = options.run.container.pull == "always"
    run = options.run.with_container(pull="missing") if pull_once else options.run
    return build_blocks(options.models, records, options.logs, run)


def _warn_of_machine(
    options: SuiteOptions, shares: Sequence[Share], left: Sequence[Block], display: SuiteDisplay
) -> None:
    """Print what makes this machine unfit to measure on; the suite goes on all the same."""
    from morocco.doctor.doctor import examine

    gpus = ",".join(share.gpus for share in shares)
    for finding in examine(_list_targets(left), options.logs, gpus):
        if finding.state in ("doubtful", "bad") and finding.name not in _REFUSED_ANYWAY:
            display.warn(None, str(finding))


def _open_local_pool(
    options: SuiteOptions, shares: Sequence[Share], left: Sequence[Block], state: SuiteState
) -> LocalPool:
    """Return the lanes of this machine, once every image and command is known to be there."""
    with RunDisplay(live=is_terminal(sys.stderr), quiet=options.quiet) as display:
        images = prepare_targets(_list_targets(left), options.run, display.pull)
    check_images(state.finished, images)
    return LocalPool(
        [LocalLane(f"lane {number}", share) for number, share in enumerate(shares, start=1)]
    )


def _open_cluster(
    address: str,
    options: SuiteOptions,
    left: Sequence[Block],
    state: SuiteState,
    display: SuiteDisplay,
    stack: ExitStack,
) -> LanePool:
    """Return the workers of a cluster; each is asked for images and data before its first run."""
    try:
        from morocco.suite.dask_pool import DaskPool
    except ImportError as error:
        raise EngineError(
            f"--cluster needs Dask ({error}): pip install 'morocco[dask]' on every machine."
        ) from None
    return stack.enter_context(
        DaskPool(
            address,
            (_list_targets(left), list({block.warm_up.records for block in left}), options.run),
            on_images=lambda images: check_images(state.finished, images),
            warn=lambda message: display.warn(None, message),
            live=is_terminal(sys.stderr) and not options.quiet,
            tls=options.tls,
        )
    )


def _list_targets(blocks: Sequence[Block]) -> list[str]:
    return [block.warm_up.target for block in blocks]


def _run(
    suite: Suite,
    display: SuiteDisplay,
    options: SuiteOptions,
    blocks: Sequence[Block],
    state: SuiteState,
) -> None:
    total = sum(len(block.jobs) for block in blocks)
    display.start(total, done=len(state.finished))
    try:
        failures = suite.run()
    except BaseException:
        display.stop()
        display.say(f"{display.done} of {total} runs are done; run the same command to continue.")
        raise
    display.stop()
    result = f"{display.done} of {plural(total, 'run')} done: {options.logs}"
    if failures:
        raise SuiteFailed(
            f"{result}. Failed:\n{render_failures(failures)}\nSee their records (.failed.json) for "
            "details. Run the same command to try them again."
        )
    for folder in {block.warm_up.path.parent for block in blocks}:
        remove_failed_warm_ups(folder)
    display.say(f"{result}. Next: {_name_check(options)}")


def _name_check(options: SuiteOptions) -> str:
    """Return the command that checks the logs, and write the profile that it needs, if any."""
    sizes = [model.sizes for model in options.models]
    tasks = dict.fromkeys(task for of_model in sizes for task in of_model)
    runs = min(size.repeats for of_model in sizes for size in of_model.values())
    if not needs_profile(tasks, runs):
        return f"morocco check {options.logs}"
    profile = options.logs / "profile.toml"
    write_profile(profile, tasks, runs)
    return f"morocco check {options.logs} --profile {profile}"
