"""What `import morocco` offers to notebooks and scripts; every name is loaded when first used.

The functions take paths as strings or `Path`s, print nothing, and raise
`morocco.errors.MoroccoError` with the message that the command line prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from morocco.check.check import check
from morocco.check.profile import RUSSIAN_SUPERGLUE, read_profile
from morocco.check.rule import CheckResult
from morocco.logs.discovery import Collection, collect_logs
from morocco.logs.record import RunRecord
from morocco.logs.submission import load_submission
from morocco.score.answers import Source
from morocco.score.score import Score, Scores, read_metrics, score_folder, score_task
from morocco.stats.estimates import Stats
from morocco.stats.estimates import estimate as estimate_logs

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

AnyPath = str | Path


def measure(
    target: str,
    data_dir: AnyPath,
    task: str,
    *,
    input_size: int = 10_000,
    batch_size: int = 128,
    output: AnyPath | None = None,
    predictions: AnyPath | None = None,
    force: bool = False,
    gpus: str = "auto",
    rate: float = 3.0,
    timeout: float | None = None,
    raw_output: bool = False,
    env: Mapping[str, str] | None = None,
    **container: Any,
) -> RunRecord:
    """Measure one run, as `morocco bench` does, and return its record.

    `timeout` is in seconds, `rate` in samples per second; `container` takes `pull`, `network`,
    `memory`, `cpus` and `shm_size`, as the command line does. `output` is the path of the log;
    without it no samples are kept. Raises a MoroccoError if the run fails.

    >>> record = morocco.measure("rubert-parus", "data/public", "parus", input_size=100)
    >>> record.run_time, record.peaks.ram
    """
    from morocco.bench.run import measure as measure_run
    from morocco.targets.options import ContainerOptions, RunOptions

    options = RunOptions(
        gpus=gpus,
        rate=rate,
        timeout=timeout,
        raw_output=raw_output,
        env=tuple(f"{name}={value}" for name, value in (env or {}).items()),
        container=ContainerOptions(**container),
    )
    return measure_run(
        target,
        Path(data_dir),
        task,
        input_size=input_size,
        batch_size=batch_size,
        output=None if output is None else Path(output),
        predictions=None if predictions is None else Path(predictions),
        force=force,
        options=options,
    )


def read_logs(*paths: AnyPath) -> Collection:
    """Read every log below `paths`: log files, folders or zips.

    `.logs` holds one `Log` per run, sorted by model, task and size, with its `path.task`,
    `path.size`, `run_time` (seconds), `ram` and `gpu_ram` (peaks in bytes) and `samples`.
    Raises DataError for a path without logs and for a log that cannot be read.

    >>> logs = morocco.read_logs("logs")
    >>> [log.run_time for log in logs.logs if log.path.task == "parus"]
    """
    return collect_logs([Path(path) for path in paths])


def read_records(*paths: AnyPath) -> dict[str, RunRecord]:
    """Read the run records beside the logs below `paths`, by the name of the log.

    Logs without a readable record are left out; a field that a record lacks is None.

    >>> records = morocco.read_records("logs.zip")
    >>> {name: record.peaks.gpu_ram for name, record in records.items()}
    """
    entries = load_submission([Path(path) for path in paths]).entries
    return {entry.name: entry.record for entry in entries if entry.record is not None}


def estimate(*sources: AnyPath | Collection, clock: Literal["log", "gpu"] = "log") -> Stats:
    """Estimate init time, speed and GPU memory, as `morocco stats` does.

    `sources` are paths, or what `read_logs` returned. `.estimates` holds one `Estimate` per model,
    task and size, in the units of `morocco stats`; `.warnings` says which not to trust.
    Raises IncompleteStats, a DataError whose `stats` holds the other estimates, if a task lacks
    runs of either size.

    >>> [(e.task, e.rps, e.init_time) for e in morocco.estimate("logs").estimates]
    """
    if len(sources) == 1 and isinstance(sources[0], Collection):
        return estimate_logs(sources[0], clock)
    paths = [source for source in sources if not isinstance(source, Collection)]
    if len(paths) < len(sources):
        raise TypeError("give paths, or one collection that read_logs returned")
    return estimate_logs(read_logs(*paths), clock)


def to_dataframe(stats: Stats) -> DataFrame:
    """Return estimates as a pandas DataFrame: one row each, one column per key of `stats`.

    What is not known is NaN.

    >>> morocco.to_dataframe(morocco.estimate("logs")).set_index("task")["rps"].plot.bar()
    """
    from dataclasses import asdict, fields

    from pandas import DataFrame

    from morocco.stats.estimates import Estimate

    columns = [field.name for field in fields(Estimate)]
    return DataFrame([asdict(estimate) for estimate in stats.estimates], columns=columns)


def plot_runs(*paths: AnyPath) -> dict[tuple[str, str], Figure]:
    """Draw the runs over time, as `morocco plot` does: one figure per (model, task).

    >>> figure = morocco.plot_runs("logs")["rubert", "parus"]
    >>> figure.savefig("parus.png")
    """
    from morocco.charts.timeline import draw_runs

    return draw_runs(read_logs(*paths))


def score_predictions(
    task: str,
    predictions: AnyPath | Iterable[Mapping[str, Any]],
    gold: AnyPath | Iterable[Mapping[str, Any]],
    *,
    missing: Literal["error", "wrong"] = "error",
    profile: AnyPath | None = None,
) -> Score:
    """Score the predictions of one task, as `morocco score` does.

    Predictions and labels are files, or records as dictionaries. `.metrics` has the official
    names, `.value` is the metric or the mean of both. Raises DataError for a record that does not
    belong to the task and for predictions that do not match the labels. A profile says how tasks
    of your own are scored.

    >>> morocco.score_predictions("parus", "predictions/parus.jsonl", "data/public").value
    """
    sources = _to_source(predictions), _to_source(gold)
    return score_task(task, *sources, missing, read_metrics(profile))


def _to_source(given: AnyPath | Iterable[Mapping[str, Any]]) -> Source:
    return Path(given) if isinstance(given, (str, Path)) else [dict(record) for record in given]


def score_folders(
    predictions: AnyPath,
    gold: AnyPath,
    *,
    missing: Literal["error", "wrong"] = "error",
    profile: AnyPath | None = None,
) -> Scores:
    """Score every task that a folder has predictions of, against the data folder `gold`.

    `.overall` is the mean of the nine tasks, or of those of a profile; None where one is absent.

    >>> {score.task: score.value for score in morocco.score_folders("predictions", "data").scores}
    """
    return score_folder(Path(predictions), Path(gold), missing, read_metrics(profile))


def check_submission(*paths: AnyPath, profile: AnyPath | None = None) -> CheckResult:
    """Judge logs and records by the rules of `morocco check`.

    Without the path of a profile, they are held against Russian SuperGLUE.
    `.valid` is the verdict, `.results` has one entry per rule.

    >>> [result.rule for result in morocco.check_submission("logs").results if result.details]
    """
    suite = RUSSIAN_SUPERGLUE if profile is None else read_profile(Path(profile))
    return check(load_submission([Path(path) for path in paths]), suite)
