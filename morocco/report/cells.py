"""The runs of a submission by model and task: which of them count, and why others do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from morocco.errors import DataError
from morocco.logs.log import INIT_SIZE, Log, Size
from morocco.logs.record import RunRecord
from morocco.logs.submission import Entry, Submission
from morocco.report.comparison import compute_metric, compute_spread, read_group
from morocco.report.model import Cell
from morocco.stats.estimates import Estimate
from morocco.stats.grouping import Clock, Group, TaskRuns, group_runs
from morocco.tasks import TASKS
from morocco.util.units import plural

Key = tuple[str, str]
"""Model and task."""


@dataclass(frozen=True)
class CellRuns:
    """The runs of one model on one task."""

    logs: list[Log] = field(default_factory=list)
    """Logs of good runs: they can be read, and no record says that the run failed."""
    failed: list[Entry] = field(default_factory=list)
    """All other runs."""


def list_models(submission: Submission) -> list[str]:
    """Return the names of the models, sorted, including those with failed runs alone."""
    return sorted({run.model for run in (*submission.entries, *submission.failed)})


def rename_models(submission: Submission, names: Mapping[str, str], *, merge: bool) -> Submission:
    """Return the submission with new names for its models, by their old ones.

    DataError where two models would have the same name, unless `merge` allows it.
    """
    models = list_models(submission)
    new = [names.get(model, model) for model in models]
    twice = [name for name, count in Counter(new).items() if count > 1]
    if twice and not merge:
        raise DataError(
            f"--name: several models would be called {twice[0]!r}, and their runs mixed. Give each "
            "its own name; only --by gpu compares the runs of one model from several folders."
        )

    def rename(run: Entry) -> Entry:
        model = names.get(run.model, run.model)
        return replace(run, model=model, log=run.log and replace(run.log, model=model))

    return replace(
        submission,
        entries=tuple(map(rename, submission.entries)),
        failed=tuple(map(rename, submission.failed)),
        many_models=len(set(new)) > 1,
    )


def sort_runs(submission: Submission) -> dict[Key, CellRuns]:
    """Sort the runs into a cell for every model and task; tasks in the order of `TASKS`."""
    runs = (*submission.entries, *submission.failed)
    found = {run.path.task for run in runs}
    tasks = [*(task for task in TASKS if task in found), *sorted(found - set(TASKS))]
    cells = {(model, task): CellRuns() for model in list_models(submission) for task in tasks}
    for run in runs:
        cell = cells[run.model, run.path.task]
        if run.log is not None and find_cause(run) is None:
            cell.logs.append(run.log)
        else:
            cell.failed.append(run)
    return cells


def find_cause(run: Entry) -> str | None:
    """Return why a run failed, in a word or two; None for a good one."""
    cause = run.record.cause if run.record else None
    if run.log is not None:
        return cause
    return "log cannot be read" if run.fault else cause or "failed"


def list_causes(failed: Iterable[Entry]) -> str:
    """Return the causes, the most frequent first: "out of memory, timed out"."""
    causes = Counter(find_cause(run) or "failed" for run in failed)
    return ", ".join(cause for cause, _ in causes.most_common())


@dataclass(frozen=True)
class Choice:
    """The group of a cell that counts, or why there is none."""

    group: Group | None
    reason: str | None = None
    passed_over: tuple[Size, ...] = ()
    """Other sizes that have a speed."""


def choose_group(runs: CellRuns, clock: Clock, many_models: bool) -> Choice:
    """Choose the long size with the most runs among those with a speed; on a tie, the largest."""
    if not runs.logs and not runs.failed:
        return Choice(None, "no runs")
    if not runs.logs:
        count = len(runs.failed)
        which = f"all {count} runs" if count > 1 else "the only run"
        return Choice(None, f"{which} failed: {list_causes(runs.failed)}")
    task = group_runs(runs.logs, clock, many_models)
    usable = [group for group in task.groups if group.has_speed]
    best = choose_best(usable)
    if best is None:
        return Choice(None, _explain_no_speed(task, runs.failed))
    others = tuple(group.path.size for group in usable if group is not best)
    return Choice(best, passed_over=others)


def choose_best(groups: Iterable[Group]) -> Group | None:
    """Return the group with the most runs, on a tie the largest, of those that have a speed."""
    usable = (group for group in groups if group.has_speed)
    return max(usable, key=lambda group: (len(group.long.runs), group.path.size), default=None)


def _explain_no_speed(task: TaskRuns, failed: Sequence[Entry]) -> str:
    if not task.init.logs or not task.groups:
        kind = "long" if task.init.logs else "1_1"
        lost = [run for run in failed if run.path.is_start_up == (kind == "1_1")]
        causes = f": {plural(len(lost), 'run')} failed, {list_causes(lost)}" if lost else ""
        return f"no {kind} runs{causes}"
    if not task.init.runs or not any(group.long.runs for group in task.groups):
        return "no GPU reading to start the clock from"
    short = [PurePath(run.log.name).name for group in task.groups for run in group.too_short]
    return f"{', '.join(short)}: not longer than the start-up, {task.groups[0].init_time:.1f} s"


def build_cell(
    key: Key,
    runs: CellRuns,
    choice: Choice,
    estimate: Estimate | None,
    records: Mapping[str, RunRecord],
) -> Cell:
    """Build a cell from its runs; `estimate` is that of the chosen group."""
    if choice.group is None or estimate is None:
        failed, tried = len(runs.failed), len(runs.logs) + len(runs.failed)
        return Cell(*key, tuple(runs.logs), reason=choice.reason, failed=failed, tried=tried)
    readings = read_group(choice.group, records)
    failed = sum(run.path.size in (INIT_SIZE, choice.group.path.size) for run in runs.failed)
    return Cell(
        *key,
        tuple(runs.logs),
        estimate,
        readings=readings,
        ram=compute_metric("ram", readings),
        ram_batch=max(readings.ram_batch, default=None),
        energy=compute_metric("energy", readings),
        spread=compute_spread(readings),
        failed=failed,
        tried=len(choice.group.init.logs) + len(choice.group.long.logs) + failed,
    )
