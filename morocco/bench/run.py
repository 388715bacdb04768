"""One measurement: a target is started, fed and drained while the sampler watches it."""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Protocol

from morocco import __version__
from morocco.bench.interrupts import Events, StepRunner
from morocco.bench.outcome import Outcome, find_failure, find_warnings, quote_stderr, tell_progress
from morocco.bench.sampling import Beats, Meter, Sampler
from morocco.bench.streams import Streams
from morocco.bench.writers import LogWriter
from morocco.errors import TimedOut
from morocco.hardware.cgroup import find_cgroup
from morocco.hardware.gpu import Gpus
from morocco.hardware.host import ProcessTree, read_host_info
from morocco.logs.record import (
    DataFile,
    Failure,
    GpusBefore,
    Monitor,
    Output,
    Peaks,
    RunRecord,
    to_utc,
)
from morocco.logs.samples import Sample
from morocco.targets.target import Exit, Target
from morocco.tasks import Records
from morocco.util.units import AnchoredClock, Seconds


@dataclass(frozen=True)
class RunSpec:
    """What is to be measured."""

    task: str
    records: Records
    batch_size: int
    period: Seconds = 1 / 3
    timeout: Seconds | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """For the record."""


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    elapsed: Seconds
    records: int
    """To be fed in all."""
    fed: int
    predicted: int
    sample: Sample | None
    """The newest one."""


class RunObserver(Protocol):
    """Whoever looks on while a run goes."""

    def progress(self, progress: Progress) -> None:
        """Take note; called about twice a second."""

    def warn(self, message: str) -> None:
        """Take note of something that makes the measurement doubtful."""


def run_bench(
    plan: RunSpec,
    target: Target,
    gpus: Gpus,
    sink: LogWriter,
    watch: RunObserver,
    predictions: BinaryIO | None = None,
    events: Events | None = None,
) -> RunRecord:
    """Measure `target` and return the record of the run; the samples go to `sink`.

    Raises the MoroccoError that made the run fail, after the target was removed and the sink was
    told. `predictions` gets a copy of what the target prints; an exception put into `events` ends
    the run.
    """
    run = _Run(plan, target, gpus, sink, watch, predictions, events or queue.SimpleQueue())
    try:
        with target:
            run.prepare()
            run.measure()
        run.judge()
    except BaseException as error:
        sink.fail(run.record(error).to_json())
        raise
    record = run.record(None)
    sink.finish(record.to_json())
    return record


class _Run:
    """One run, from its preparation to its record."""

    def __init__(
        self,
        plan: RunSpec,
        target: Target,
        gpus: Gpus,
        sink: LogWriter,
        watch: RunObserver,
        predictions: BinaryIO | None,
        events: Events,
    ) -> None:
        self._plan, self._target, self._gpus = plan, target, gpus
        self._sink, self._watch = sink, watch
        self._clock = AnchoredClock.anchor()
        self._events = events
        self._steps = StepRunner(events, self._tick, target.kill)
        self._streams = Streams(target, plan.records, predictions, self._events.put)
        self._meter: Meter | None = None
        self._started: Seconds | None = None
        self._exit: Exit | None = None
        self._before: GpusBefore | None = None
        self._energy: float | None = None
        self._monitor: Monitor | None = None
        self._warnings: list[str] = []

    def prepare(self) -> None:
        """Do all that can be done before the clock starts."""
        self._steps.call(self._target.prepare)
        self._before = GpusBefore(self._gpus.mark_baseline(), self._gpus.processes())
        for process in self._before.processes:
            name = process.name or "a process that cannot be seen from here"
            self._warn(
                f"GPU {process.gpu} is in use by others: {name} (pid {process.pid}). What is "
                "measured now may be too slow."
            )

    def measure(self) -> None:
        """Run the target from its start to its end, and take in all it printed."""
        energy = self._gpus.energy()
        self._started = self._steps.call(self._target.start)
        cpu_time = time.process_time()
        beats = self._watch_until_end(self._started)
        cpu_time = time.process_time() - cpu_time
        self._monitor = Monitor(beats.due, beats.missed, round(cpu_time, 4))
        self._energy = _difference(self._gpus.energy(), energy)
        self._steps.call(self._streams.finish)

    def _watch_until_end(self, started: Seconds) -> Beats:
        pid = self._steps.call(self._target.find_pid)
        cgroup = None if pid is None else find_cgroup(pid)
        self._meter = meter = Meter(ProcessTree(pid or 0, cgroup), self._gpus, self._clock)
        sampler = Sampler(self._plan.period, meter.read, self._sink.write, self._events.put)
        try:
            sampler.start(started)
            self._streams.start()
            self._exit = self._steps.call(self._target.wait)
        except BaseException:
            self._target.kill()
            with suppress(Exception):  # the first failure is the one to tell
                sampler.stop()
            raise
        return sampler.stop()

    def _tick(self) -> None:
        """Show how far the run is, once it runs, and end it when its time is up."""
        if self._started is None:
            return
        elapsed = time.monotonic() - self._started
        self._watch.progress(self._progress(elapsed))
        if self._plan.timeout is not None and elapsed > self._plan.timeout:
            raise self._timed_out(self._plan.timeout)

    def _progress(self, elapsed: Seconds) -> Progress:
        return Progress(
            elapsed,
            self._plan.records.count,
            self._streams.fed,
            self._streams.predictions.count,
            self._meter.last if self._meter else None,
        )

    def _timed_out(self, timeout: Seconds) -> TimedOut:
        fed, predicted = self._streams.fed, self._streams.predictions.count
        records = self._plan.records.count
        stuck = " It seems not to read its input." if fed < records and not predicted else ""
        return TimedOut(
            f"The target was still running after {timeout:g} s (--timeout): "
            f"{tell_progress(fed, records, predicted)}.{stuck}"
            f"{quote_stderr(self._streams.stderr.text)}"
        )

    def judge(self) -> None:
        """Raise what makes the run a failed one, or warn of doubts and close the log."""
        outcome = self._outcome()
        failure = find_failure(outcome)
        if failure is not None:
            raise failure
        for message in find_warnings(outcome):
            self._warn(message)
        ended = self._clock.timestamp(outcome.exit.ended)
        last = self._meter.last if self._meter else None
        self._sink.write(Sample(max(ended, last.timestamp) if last else ended))

    def _outcome(self) -> Outcome:
        if self._exit is None:
            raise RuntimeError("measure() comes first")
        return Outcome(
            exit=self._exit,
            records=self._plan.records.count,
            distinct=self._plan.records.distinct,
            fed=self._streams.fed,
            unread=self._streams.unread,
            predicted=self._streams.predictions.count,
            peaks=self._peaks(),
            limits=self._target.identity.limits,
            stderr=self._streams.stderr.text,
            gpus=len(self._gpus.infos),
            gpus_lost=self._gpus.lost,
            samples_missed=self._monitor.samples_missed if self._monitor else 0,
        )

    def record(self, error: BaseException | None) -> RunRecord:
        """Return all that is known of the run; `error` is what made it fail."""
        plan, ended = self._plan, self._exit.ended if self._exit else None
        failure = None if error is None else Failure(type(error).__name__, str(error))
        return RunRecord(
            morocco=__version__,
            target=self._target.identity,
            arguments=plan.arguments,
            task=plan.task,
            input_size=plan.records.count,
            batch_size=plan.batch_size,
            data=DataFile(str(plan.records.path), plan.records.sha256),
            host=read_host_info(),
            gpus=self._gpus.infos,
            gpus_before=self._before,
            started=self._utc(self._started),
            ended=self._utc(ended),
            run_time=_difference(ended, self._started),
            exit_code=self._exit.code if self._exit else None,
            records_fed=self._streams.fed,
            predictions=self._output(),
            peaks=self._peaks(),
            energy=self._energy,
            monitor=self._monitor,
            warnings=tuple(self._warnings),
            failure=failure,
            stderr=self._streams.stderr.text if failure else None,
        )

    def _output(self) -> Output:
        got = self._streams.predictions
        return Output(got.count, got.sha256, self._utc(got.first), self._utc(got.last))

    def _peaks(self) -> Peaks:
        return self._meter.peaks if self._meter else Peaks()

    def _utc(self, moment: Seconds | None) -> str | None:
        return None if moment is None else to_utc(self._clock.timestamp(moment))

    def _warn(self, message: str) -> None:
        self._warnings.append(message)
        self._watch.warn(message)


def _difference(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else round(after - before, 6)
