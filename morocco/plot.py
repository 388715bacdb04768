"""Logs as a picture: a figure for each model and task, a line a run, a colour a group.

A strip on top is the legend and shows when each run ended; the four panels below share its time
axis. A reading that is null leaves a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from morocco.atomic import write_output
from morocco.canvas import COLOURS, INK, make_printable
from morocco.collect import Collection, by_model_and_task
from morocco.errors import DataError
from morocco.figure import render
from morocco.frames import INIT, Picture, Size, group_runs
from morocco.logs import Log
from morocco.tasks import TASKS
from morocco.units import plural

SUFFIXES = (".png", ".svg", ".pdf")
"""The kinds of image, as the end of a path names them."""


def plot(collection: Collection, image: Path) -> list[Path]:
    """Draw a figure for each model and task; return the files written.

    `{model}` and `{task}` in the path `image` stand for their names. DataError where the path ends
    in none of `SUFFIXES` or cannot tell several figures apart, OutputError where a file cannot be
    written.
    """
    figures = by_model_and_task(collection.logs)
    _check_suffix(image)
    _check_marks(image, figures)
    colours = _choose_colours(collection.logs)
    written = []
    for (model, task), logs in figures.items():
        title = _make_title(task, model if collection.many_models else "")
        path = _fill_marks(image, model, task)
        drawn = render(Picture(title, group_runs(logs, colours)), path.suffix.lower())
        write_output(path, drawn, "an image")
        written.append(path)
    return written


def _make_title(task: str, model: str) -> str:
    title = TASKS[task].title if task in TASKS else task
    title += f", {model}" if model else ""
    return make_printable(title)


def _check_suffix(image: Path) -> None:
    if image.suffix.lower() not in SUFFIXES:
        kinds = ", ".join(SUFFIXES)
        raise DataError(f"Cannot draw {image}: the name of an image must end in one of {kinds}.")


def _check_marks(image: Path, figures: Mapping[tuple[str, str], object]) -> None:
    models, tasks = ({names[part] for names in figures} for part in (0, 1))
    counts = {"model": len(models), "task": len(tasks)}
    missing = [noun for noun, n in counts.items() if n > 1 and f"{{{noun}}}" not in str(image)]
    if missing:
        many = " and ".join(plural(counts[noun], noun) for noun in missing)
        name = "_".join([image.stem, *(f"{{{noun}}}" for noun in missing)]) + image.suffix
        raise DataError(
            f"The logs are of {many}, a figure each, but {image} is one file. "
            f"Use `morocco plot PATH... '{image.with_name(name)}'`."
        )


def _fill_marks(image: Path, model: str, task: str) -> Path:
    path = str(image)
    for mark, name in (("{model}", model), ("{task}", task)):
        # A name from somebody's zip must not lead out of the folder of the images.
        path = path.replace(mark, name.replace("/", "_").replace("..", "_"))
    return Path(path)


def _choose_colours(logs: Iterable[Log]) -> dict[Size, str]:
    """Give each group its colour, the same one in every figure."""
    sizes = sorted({(log.path.input_size, log.path.batch_size) for log in logs} - {INIT})
    colours = COLOURS if len(sizes) <= len(COLOURS) else _blend_colours(len(sizes))
    return {INIT: INK, **dict(zip(sizes, colours, strict=False))}


def _blend_colours(count: int) -> tuple[str, ...]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    # The last tenth of viridis is too pale for a line on white.
    return tuple(to_hex(colormaps["viridis"](0.87 * i / (count - 1))) for i in range(count))
