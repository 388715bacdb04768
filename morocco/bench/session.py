"""The command `bench`: everything checked and opened in order, then one measurement."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from morocco.bench.display import RunDisplay, is_terminal, summarise
from morocco.bench.interrupts import Events, forward_signals
from morocco.bench.run import RunSpec, run_bench
from morocco.bench.writers import FileWriter, LogWriter, StreamWriter, open_predictions
from morocco.errors import DataError, OutputError
from morocco.hardware.gpu import Gpus
from morocco.logs.log import LogPath
from morocco.targets.factory import make_target
from morocco.targets.options import RunOptions
from morocco.tasks import find_data, load_records


@dataclass(frozen=True)
class BenchOptions:
    """The command line of `bench`, as it was parsed."""

    target: str
    data_dir: Path
    task: str
    input_size: int
    batch_size: int
    output: Path | None
    force: bool
    predictions: Path | None
    quiet: bool
    run: RunOptions


def bench_command(options: BenchOptions) -> None:
    """Measure one target; raises a MoroccoError for whatever goes wrong."""
    if options.output and options.output == options.predictions:
        raise DataError(f"--output and --predictions are both {options.output}; name two files.")
    samples_shown = options.output is None and is_terminal(sys.stdout)
    live = is_terminal(sys.stderr) and not samples_shown
    with ExitStack() as stack:
        screen = stack.enter_context(RunDisplay(live=live, quiet=options.quiet))
        records = load_records(find_data(options.data_dir, options.task), options.input_size)
        gpus = stack.enter_context(Gpus.open(options.run.gpus))
        target = make_target(options.target, options.batch_size, options.run, gpus, screen.pull)
        events: Events = SimpleQueue()
        forward_signals(events.put)
        predictions = stack.enter_context(
            open_predictions(options.predictions, replace=options.force)
        )
        sink = _open_sink(options, screen)
        plan = RunSpec(
            task=options.task,
            records=records,
            batch_size=options.batch_size,
            period=1 / options.run.rate,
            timeout=options.run.timeout,
            arguments=options.run.for_record(),
        )
        record = run_bench(plan, target, gpus, sink, screen, predictions, events)
        screen.say(summarise(record, options.output))


def _open_sink(options: BenchOptions, screen: RunDisplay) -> LogWriter:
    if options.output is None:
        if sys.stdout is None:
            raise OutputError("There is no stdout to write the samples to; use -o.")
        return StreamWriter(sys.stdout)
    name = LogPath.parse(options.output.absolute())
    if name is None:
        screen.warn(
            f"`morocco stats` will not find {options.output}: it looks for "
            f"{options.task}/{options.input_size}_{options.batch_size}_01.jsonl."
        )
    elif (name.input_size, name.batch_size) != (options.input_size, options.batch_size):
        raise DataError(
            f"{options.output} is the name of a run of {name.input_size} records in batches of "
            f"{name.batch_size}; this one has --input-size {options.input_size} --batch-size "
            f"{options.batch_size}. Change these, or name it "
            f"{options.input_size}_{options.batch_size}_{name.index:02d}.jsonl."
        )
    elif name.task != options.task:
        raise DataError(
            f"{options.output} is the name of a run of the task {name.task!r}, not "
            f"{options.task!r}: put it in a folder {options.task}/."
        )
    return FileWriter(options.output, replace=options.force)
