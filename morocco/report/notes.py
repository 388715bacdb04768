"""What a reader of a report has to know: what was chosen, what was left out, what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from morocco.logs.log import Size
from morocco.logs.submission import Submission
from morocco.report.cells import CellRuns, Choice, Key, list_causes
from morocco.report.machines import Machines
from morocco.report.model import Ratio, Report
from morocco.util.units import plural


def list_notes(
    report: Report,
    runs: Mapping[Key, CellRuns],
    choices: Mapping[Key, Choice],
    machines: Mapping[str, Machines],
) -> Iterator[str]:
    """Yield the notes, a sentence each; `machines` are by model."""
    yield from _note_sizes(choices)
    yield from _note_failed_runs(runs)
    yield from _note_reasons(report)
    yield from _note_means(report)
    yield from _note_scores(report)
    yield from _note_weighted_scores(report)
    yield from _note_differences(report)
    unknown = [model for model, of_model in machines.items() if not of_model]
    if unknown and len(machines) > 1:
        yield f"{', '.join(unknown)}: no records, so the machines may or may not be the same."
    if report.gpus == ():
        yield "No model has runs of one task on several GPUs, so there are none to compare."


def _note_sizes(choices: Mapping[Key, Choice]) -> Iterator[str]:
    """Yield which of several sizes count, once for all cells with the same sizes."""
    cells: dict[tuple[Size, tuple[Size, ...]], dict[str, list[str]]] = {}
    for (model, task), choice in choices.items():
        if choice.group is not None and choice.passed_over:
            sizes = choice.group.path.size, choice.passed_over
            cells.setdefault(sizes, {}).setdefault(model, []).append(task)
    for (size, others), models in cells.items():
        where = "; ".join(f"{model} {', '.join(tasks)}" for model, tasks in models.items())
        yield (
            f"{where}: {_format_size(size)} counts, the size with the most runs or, on a tie, the "
            f"largest; not {', '.join(map(_format_size, others))}."
        )


def _format_size(size: Size) -> str:
    return "{}_{}".format(*size)


def _note_failed_runs(runs: Mapping[Key, CellRuns]) -> Iterator[str]:
    counts: dict[tuple[str, str], list[str]] = {}
    for (model, task), cell in runs.items():
        if cell.failed:
            causes = model, list_causes(cell.failed)
            counts.setdefault(causes, []).append(f"{task} {len(cell.failed)}")
    for (model, causes_of_model), tasks in counts.items():
        yield f"{model}: failed runs ({causes_of_model}): {', '.join(tasks)}."


def _note_reasons(report: Report) -> Iterator[str]:
    """Yield why cells have no numbers, once for all tasks of a model that share a reason."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for cell in report.cells.values():
        if cell.reason is not None:
            tasks.setdefault((cell.model, cell.reason), []).append(cell.task)
    for (model, reason), of_model in tasks.items():
        yield f"{model} has no numbers for {', '.join(of_model)}: {reason}."


def _note_means(report: Report) -> Iterator[str]:
    if report.without:
        yield f"Means of speed, energy and cost are without {', '.join(report.without)}."
    models: dict[tuple[str, ...], list[str]] = {}
    for model in report.models:
        mean = model.means["rps"]
        if mean.tasks and mean.missing:
            models.setdefault(mean.missing, []).append(model.name)
    for missing, names in models.items():
        yield (
            f"The means of {', '.join(names)} are over fewer tasks, without "
            f"{', '.join(missing)}: they do not compare with those of other models."
        )


def _note_scores(report: Report) -> Iterator[str]:
    """Yield which models have scores of some tasks only."""
    for model in report.models:
        scores = {task: report.cells[model.name, task].score for task in report.tasks}
        known = [task for task, score in scores.items() if score is not None]
        if known and model.score is None:
            yield f"{model.name} has no overall score, only those of {', '.join(known)}."


def _note_weighted_scores(report: Report) -> Iterator[str]:
    weightless = [task for task in report.tasks if not (report.weights or {task: 1}).get(task)]
    if weightless:
        yield f"The weighted score is without {', '.join(weightless)}, which have no weight."
    for model in report.models:
        weighted = model.weighted
        if weighted.missing and weighted.partial is not None:
            missing = "; ".join(f"{task}: {why}" for task, why in weighted.missing.items())
            tasks = plural(len(weighted.adjusted), "task")
            yield (
                f"{model.name} has no weighted score, because it lacks {missing}. Over the {tasks} "
                f"it has, the score would be {weighted.partial:.4g}."
            )


def _note_differences(report: Report) -> Iterator[str]:
    """Yield how the models differ from the baseline in what was measured."""
    if report.comparison is None:
        return
    for model in report.comparison.models:
        pair = f"{model.model} / {report.comparison.baseline}"
        if model.missing:
            yield f"{pair} is without {', '.join(model.missing)}, which {model.model} lacks."
        if model.other_sizes:
            yield f"{pair} compares other input or batch sizes for {', '.join(model.other_sizes)}."
        by_task = {task: ratios["rps"] for task, ratios in model.by_task.items() if "rps" in ratios}
        unseen = [_describe_unseen(task, ratio) for task, ratio in by_task.items() if ratio.visible]
        if unseen:
            yield f"{pair} shows no difference in speed for {'; '.join(unseen)}."


def _describe_unseen(task: str, ratio: Ratio) -> str:
    """Return what such runs would have shown, and how many more may show this difference."""
    more = f"; {ratio.more_runs} more runs of each size may decide" if ratio.more_runs else ""
    return f"{task} ({ratio.visible or 0:.1%} would have shown{more})"


def list_remarks(submission: Submission) -> Iterator[str]:
    """Yield which files were skipped; failed runs are counted, so notes mention them instead."""
    failed = tuple(f"{run.name}:" for run in submission.failed)
    yield from (text for text in submission.remarks if not text.startswith(failed))
    for entry in submission.entries:
        if entry.log is None:
            yield f"{entry.name} cannot be read and counts as failed: {entry.fault}"
        elif entry.record_fault:
            yield f"{entry.name}: its record cannot be used: {entry.record_fault}"
