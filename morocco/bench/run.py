"""One measurement: a target is started, fed and drained while its use of the machine is sampled."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Protocol, TextIO

from morocco import __version__
from morocco.bench.interrupts import Events, StepRunner, forward_signals
from morocco.bench.outcome import (
    Measurement,
    Prepared,
    RunWarning,
    build_failure,
    format_counts,
    judge,
    warn_of_gpu_users,
    warn_of_other_runs,
)
from morocco.bench.sampling import Beats, Meter, Sampler
from morocco.bench.streams import Streams
from morocco.bench.writers import LogWriter, check_log_name, open_log, open_predictions
from morocco.errors import DataError, EngineError, Interrupted, TimedOut
from morocco.hardware.cgroup import find_cgroup, find_memory_group
from morocco.hardware.gpu import Gpus
from morocco.hardware.host import ProcessTree, read_host_info
from morocco.hardware.load import LoadMeter, OtherRuns
from morocco.hardware.memory import TargetMemory
from morocco.logs.record import DataFile, Failure, GpusBefore, Monitor, Output, RunRecord, to_utc
from morocco.logs.samples import Sample
from morocco.targets.factory import end_strays, make_target
from morocco.targets.options import RunOptions, digest_env
from morocco.targets.target import OnPull, Start, Target
from morocco.tasks import Records, find_data, load_records
from morocco.util.files import is_special
from morocco.util.units import AnchoredClock, Seconds


@dataclass(frozen=True)
class RunSpec:
    """What to measure, and how."""

    target: str
    """As on the command line: an image, or `exec:COMMAND`."""
    task: str
    records: Records
    batch_size: int
    options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    elapsed: Seconds
    records: int
    """To be fed in all."""
    fed: int
    predicted: int
    sample: Sample | None
    """The latest one."""


class RunObserver(Protocol):
    """Follows a run."""

    def progress(self, progress: Progress) -> None:
        """Called about twice a second."""

    def warn(self, message: str) -> None:
        """Called with what makes the measurement doubtful."""


class _SilentObserver:
    def progress(self, progress: Progress) -> None:
        pass

    def warn(self, message: str) -> None:
        pass


def _ignore(_: object) -> None:
    pass


def measure(
    target: str,
    data_dir: Path | str,
    task: str,
    *,
    input_size: int = 10_000,
    batch_size: int = 128,
    output: Path | str | TextIO | None = None,
    predictions: Path | None = None,
    force: bool = False,
    options: RunOptions | None = None,
    observer: RunObserver | None = None,
    on_pull: OnPull = _ignore,
    catch_signals: bool = False,
) -> RunRecord:
    """Measure a target on the data of a task and return the record of the run.

    `output` is the path of the log, or a stream for the samples; `predictions` is a file that
    gets what the target prints. `force` replaces both. With `catch_signals`, a signal ends the run
    in an orderly way; for the main thread of a program. MoroccoError if the run fails.
    """
    output = Path(output) if isinstance(output, str) else output
    observer = observer or _SilentObserver()
    if isinstance(output, Path):
        if output == predictions:
            raise DataError(f"--output and --predictions are both {output}; name two files.")
        warning = check_log_name(output, task, input_size, batch_size)
        if warning and not is_special(output):
            observer.warn(warning)
    records = load_records(find_data(Path(data_dir), task), input_size)
    events: Events = queue.SimpleQueue()
    if catch_signals:
        forward_signals(events.put)
    return run_spec(
        RunSpec(target, task, records, batch_size, options or RunOptions()),
        lambda: open_log(output, replace=force),
        observer,
        events=events,
        predictions=open_predictions(predictions, replace=force),
        on_pull=on_pull,
    )


def run_spec(
    spec: RunSpec,
    open_writer: Callable[[], LogWriter],
    observer: RunObserver,
    *,
    events: Events | None = None,
    predictions: AbstractContextManager[BinaryIO | None] | None = None,
    on_pull: OnPull = _ignore,
) -> RunRecord:
    """Measure on the GPUs of this machine; the log is opened once nothing else can be wrong.

    `predictions` is entered just before; the rest is as in `run_target`.
    """
    with Gpus.open(spec.options.gpus) as gpus:
        target = make_target(
            spec.target, spec.batch_size, spec.options, gpus, on_pull, observer.warn
        )
        with predictions or nullcontext() as file:
            return run_target(spec, target, gpus, open_writer(), observer, file, events)


def run_target(
    spec: RunSpec,
    target: Target,
    gpus: Gpus,
    writer: LogWriter,
    observer: RunObserver,
    predictions: BinaryIO | None = None,
    events: Events | None = None,
) -> RunRecord:
    """Measure `target` and return the record of the run; the samples go to `writer`.

    Raises the MoroccoError that made the run fail, after the target was removed and the writer
    has the record. `predictions` gets a copy of what the target prints; an exception put into
    `events` ends the run.
    """
    run = _Run(spec, target, gpus, writer, observer, predictions, events or queue.SimpleQueue())
    prepared = None
    try:
        with target, run.other_runs:
            prepared = run.prepare()
            run.warn(warn_of_gpu_users(prepared.gpus_before))
            run.measure()
        measured = run.read_measurement()
        run.warn(judge(prepared, measured))
        run.close_log(measured)
    except BaseException as error:
        failure = _join_causes(error)
        writer.fail(run.build_record(prepared, run.read_measurement(), failure).to_json())
        if failure is error:
            raise
        raise failure from None
    record = run.build_record(prepared, measured)
    writer.finish(record.to_json())
    return record


def _join_causes(error: BaseException) -> BaseException:
    """Return what ended a run; for a stopped one, whose container may be left, both in one."""
    stopped = error.__context__
    if not isinstance(error, EngineError) or not isinstance(stopped, Interrupted):
        return error
    return Interrupted(f"{str(stopped).partition(';')[0]}. {error}", stopped.signal_number)


class _Run:
    """The moving parts of one run."""

    def __init__(
        self,
        spec: RunSpec,
        target: Target,
        gpus: Gpus,
        writer: LogWriter,
        observer: RunObserver,
        predictions: BinaryIO | None,
        events: Events,
    ) -> None:
        self._spec, self._target, self._gpus = spec, target, gpus
        self._writer, self._observer = writer, observer
        self._clock = AnchoredClock.anchor()
        self._steps = StepRunner(events, self._tick, target.kill, observer.warn)
        self._streams = Streams(
            target, spec.records, predictions, events.put, raw_output=spec.options.raw_output
        )
        self.other_runs = OtherRuns(spec.options.suite, f"{spec.task} of {spec.target}")
        self._load = LoadMeter()
        self._meter = Meter(ProcessTree(0), gpus, self._clock, self._load)
        self._sampler = Sampler(
            1 / spec.options.rate, self._meter.read, writer.write, events.put, self._meter.mark
        )
        self._measured = Measurement()
        self._events = events
        self._followed: Seconds | None = None
        """When the processes of the target were first known."""
        self._warnings: list[RunWarning] = []

    def prepare(self) -> Prepared:
        """Do everything that can be done before the clock starts."""
        if self._spec.options.suite is None:  # a suite does so once
            self._end_strays()
        self._steps.call(self._target.prepare)
        before = GpusBefore(self._gpus.mark_baseline(), self._gpus.processes())
        self.warn(warn_of_other_runs(self.other_runs.find_new()))
        self._load.prepare()
        return Prepared(self._spec.records, self._target.identity, self._gpus.infos, before)

    def _end_strays(self) -> None:
        """End what would slow the target down without being anybody's any more."""
        told = self._steps.call(lambda: end_strays([self._spec.target]))
        if told is not None:
            self._observer.warn(told)

    def measure(self) -> None:
        """Run the target from its start to its end, and read all that it prints."""
        energy = self._gpus.energy()
        start = self._steps.call(self._target.start)
        self._measured = Measurement(start.moment)
        cpu_time = time.process_time()
        beats = self._sample_until_end(start)
        self._note_last_peak(start.pid)
        cpu_time = time.process_time() - cpu_time
        self.warn(warn_of_other_runs(self.other_runs.find_new()))
        fed_late = _subtract(self._streams.fed_at, start.moment)
        self._measured = replace(
            self._measured,
            monitor=Monitor(beats.due, beats.missed, round(cpu_time, 4), fed_late),
            load=replace(self._load.finish(), other_runs=self.other_runs.found),
            energy=_subtract(self._gpus.energy(), energy),
            gpu_clocks=self._gpus.clocks(),
        )
        self._steps.call(self._streams.finish)

    def _note_last_peak(self, pid: int | None) -> None:
        """Take note of what the kernel says about the ended process."""
        if pid is not None and (end := self._measured.exit) and end.peak_ram is not None:
            self._meter.tree.memory.raise_to_process(pid, end.peak_ram)

    def _sample_until_end(self, start: Start) -> Beats:
        try:
            self._follow(start.pid)
            self._sampler.start(start.moment)
            self._streams.start()
            if start.pid is None:  # the engine is slow; the target is not to wait for that
                threading.Thread(target=self._find_process, name="finder", daemon=True).start()
            self._measured = Measurement(start.moment, self._steps.call(self._target.wait))
        except BaseException:
            self._target.kill()
            with suppress(Exception):  # the first failure is the one to report
                self._sampler.stop()
            raise
        return self._sampler.stop()

    def _find_process(self) -> None:
        try:
            self._follow(self._target.find_pid())
        except Exception as error:
            self._events.put(error)

    def _follow(self, pid: int | None) -> None:
        """Read this process and all that belong to it from now on."""
        if pid is not None:
            memory, adopted = TargetMemory(find_memory_group(pid)), self._target.find_adopted
            self._load.pid = pid
            self._meter.tree = ProcessTree(pid, find_cgroup(pid), adopted, memory)
            self._followed = time.monotonic()

    def _tick(self) -> None:
        """Show how far the target is, and end the run when its time is up."""
        if self._measured.started is None:
            return
        elapsed = time.monotonic() - self._measured.started
        records, fed = self._spec.records, self._streams.fed
        predicted = self._streams.predictions.count
        self._observer.progress(Progress(elapsed, records.count, fed, predicted, self._meter.last))
        timeout = self._spec.options.timeout
        if timeout is None or elapsed <= timeout:
            return
        message = (
            f"The target was still running after {timeout:g} s (--timeout): "
            f"{format_counts(records, self.read_measurement())}."
        )
        if fed < records.count and not predicted:
            message += " It does not seem to read its input."
        raise build_failure(TimedOut, message, self._streams.stderr.text)

    def read_measurement(self) -> Measurement:
        """Return what has been measured so far."""
        streams, printed = self._streams, self._streams.predictions
        first, last = self._format_utc(printed.first), self._format_utc(printed.last)
        return replace(
            self._measured,
            fed=streams.fed,
            unread=streams.unread,
            predictions=Output(printed.count, printed.sha256, first, last),
            answers=streams.answers,
            cores=self._bound_cores(),
            stderr=streams.stderr.text,
            peaks=self._meter.peaks,
            gpus_lost=self._gpus.lost,
            gpu_users=self._gpus.strangers,
            blind=self._compute_blind_time(),
        )

    def _bound_cores(self) -> float | None:
        started, end = self._measured.started, self._measured.exit
        return (
            None if started is None or end is None else self._meter.bound_cores(started, end.ended)
        )

    def _compute_blind_time(self) -> Seconds:
        """Return for how long after the start nothing could be read."""
        end = self._measured.exit
        known = self._followed or (end.ended if end else None)
        return _subtract(known, self._measured.started) or 0.0

    def warn(self, warnings: Iterable[RunWarning]) -> None:
        """Report warnings, and keep them for the record."""
        for warning in warnings:
            self._warnings.append(warning)
            self._observer.warn(warning.message)

    def close_log(self, measured: Measurement) -> None:
        """Write the closing line, which may not be older than the line before."""
        assert measured.exit
        ended, last = self._clock.timestamp(measured.exit.ended), self._meter.last
        self._writer.write(Sample(max(ended, last.timestamp) if last else ended))

    def build_record(
        self, prepared: Prepared | None, measured: Measurement, error: BaseException | None = None
    ) -> RunRecord:
        """Return the record with everything that is known; `error` is what made the run fail."""
        spec, end = self._spec, measured.exit
        return RunRecord(
            morocco=__version__,
            target=self._target.identity,
            arguments=spec.options.for_record(),
            task=spec.task,
            input_size=spec.records.count,
            batch_size=spec.batch_size,
            data=DataFile(str(spec.records.path), spec.records.sha256),
            host=read_host_info(),
            gpus=self._gpus.infos,
            gpus_before=prepared.gpus_before if prepared else None,
            started=self._format_utc(measured.started),
            ended=self._format_utc(end.ended if end else None),
            run_time=_subtract(end.ended if end else None, measured.started),
            exit_code=end.code if end else None,
            records_fed=measured.fed,
            predictions=measured.predictions,
            gpu_users=measured.gpu_users,
            gpu_clocks=measured.gpu_clocks,
            peaks=measured.peaks,
            energy=measured.energy,
            monitor=measured.monitor,
            load=measured.load,
            warnings=tuple(warning.message for warning in self._warnings),
            warning_codes=tuple(warning.code for warning in self._warnings),
            failure=None if error is None else Failure(type(error).__name__, str(error)),
            stderr=None if error is None else measured.stderr,
            env_digest=digest_env(spec.options.env),
        )

    def _format_utc(self, moment: Seconds | None) -> str | None:
        return None if moment is None else to_utc(self._clock.timestamp(moment))


def _subtract(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else round(after - before, 6)
