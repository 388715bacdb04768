"""What a reader of a report has to know: what was chosen, left out, or is not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from morocco.logs.log import Size
from morocco.logs.submission import Submission
from morocco.report.cells import Choice, Key, SubmissionRuns, say_causes
from morocco.report.machines import Machines, find_unknown
from morocco.report.model import Report
from morocco.util.units import plural


def find_notes(
    report: Report,
    runs: SubmissionRuns,
    choices: Mapping[Key, Choice],
    machines: Mapping[str, Machines],
) -> Iterator[str]:
    """Yield one sentence for each thing to know."""
    yield from _say_sizes(choices)
    yield from _say_failed(runs)
    yield from _say_reasons(report)
    yield from _say_means(report)
    yield from _say_weighted(report)
    yield from _say_unlike(report)
    unknown = find_unknown(machines)
    if unknown:
        yield unknown
    if report.gpus == ():
        yield "No model has runs of one task on several GPUs, so there are none to compare."


def _say_sizes(choices: Mapping[Key, Choice]) -> Iterator[str]:
    """Yield which of several sizes count: those with most runs, of equals the largest input."""
    told: dict[tuple[Size, tuple[Size, ...]], list[Key]] = {}
    for key, choice in choices.items():
        if choice.group is not None and choice.passed_over:
            told.setdefault((choice.group.path.size, choice.passed_over), []).append(key)
    for (size, others), keys in told.items():
        left = ", ".join(map(_name_size, others))
        yield (
            f"{_list_keys(keys)}: {_name_size(size)} counts, the size with most runs, or of those "
            f"the largest; not {left}."
        )


def _name_size(size: Size) -> str:
    return "{}_{}".format(*size)


def _list_keys(keys: list[Key]) -> str:
    """Return "rubert danetqa, parus; rugpt rcb"."""
    tasks: dict[str, list[str]] = {}
    for model, task in keys:
        tasks.setdefault(model, []).append(task)
    return "; ".join(f"{model} {', '.join(of_model)}" for model, of_model in tasks.items())


def _say_failed(runs: SubmissionRuns) -> Iterator[str]:
    told: dict[tuple[str, str], list[str]] = {}
    for (model, task), failed in runs.failed.items():
        told.setdefault((model, say_causes(failed)), []).append(f"{task} {len(failed)}")
    for (model, causes), counts in told.items():
        yield f"{model}: runs that failed, {causes}: {', '.join(counts)}."


def _say_reasons(report: Report) -> Iterator[str]:
    """Yield why cells have no numbers, once for all tasks of a model that share a reason."""
    told: dict[tuple[str, str], list[str]] = {}
    for cell in report.cells.values():
        if cell.reason is not None:
            told.setdefault((cell.model, cell.reason), []).append(cell.task)
    for (model, reason), tasks in told.items():
        yield f"{model} has no numbers for {', '.join(tasks)}: {reason}."


def _say_means(report: Report) -> Iterator[str]:
    if report.without:
        yield f"Means of speed, energy and cost are without {', '.join(report.without)}."
    told: dict[tuple[str, ...], list[str]] = {}
    for model in report.models:
        mean = model.means["rps"]
        if mean.tasks and mean.missing:
            told.setdefault(mean.missing, []).append(model.name)
    for missing, models in told.items():
        yield (
            f"The means of {', '.join(models)} are over fewer tasks, without "
            f"{', '.join(missing)}: they do not compare with those of other models."
        )


def _say_weighted(report: Report) -> Iterator[str]:
    weightless = [task for task in report.tasks if not (report.weights or {task: 1}).get(task)]
    if weightless:
        yield f"The weighted score is without {', '.join(weightless)}, which have no weight."
    for model in report.models:
        weighted = model.weighted
        if weighted.missing and weighted.partial is not None:
            missing = "; ".join(f"{task}: {why}" for task, why in weighted.missing.items())
            yield (
                f"{model.name} has no weighted score, for it lacks {missing}. Over the rest, "
                f"{plural(len(weighted.adjusted), 'task')}, it is {weighted.partial:.4g}."
            )


def _say_unlike(report: Report) -> Iterator[str]:
    """Yield in what the models and the baseline are not alike."""
    comparison = report.comparison
    for model in comparison.models if comparison else ():
        pair = f"{model.model} / {comparison.baseline if comparison else ''}"
        if model.missing:
            yield f"{pair} is without {', '.join(model.missing)}, where there are no numbers."
        if model.other_sizes:
            yield f"{pair} compares other input or batch sizes for {', '.join(model.other_sizes)}."


def find_remarks(submission: Submission) -> Iterator[str]:
    """Yield what was passed over; failed runs are counted, so they are told of elsewhere."""
    failed = tuple(f"{run.name}:" for run in submission.failed)
    yield from (text for text in submission.remarks if not text.startswith(failed))
    for entry in submission.entries:
        if entry.log is None:
            yield f"{entry.name} cannot be read and counts as failed: {entry.fault}"
        elif entry.record_fault:
            yield f"{entry.name}: its record is of no use: {entry.record_fault}"
