"""The nine tasks, the files of their records, and the input of a run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from morocco.errors import DataError
from morocco.util.json import parse_line, strip_line
from morocco.util.params import complete_names

_CHUNK = 128 * 1024


@dataclass(frozen=True)
class Task:
    """One task of Russian SuperGLUE."""

    name: str
    title: str
    """The name of its folder in the archive of the data."""
    validation: str = "val.jsonl"
    """The file in that folder that is fed to models."""


TASKS = {
    task.name: task
    for task in (
        Task("danetqa", "DaNetQA"),
        Task("lidirus", "LiDiRus", "LiDiRus.jsonl"),
        Task("muserc", "MuSeRC"),
        Task("parus", "PARus"),
        Task("rcb", "RCB"),
        Task("rucos", "RuCoS"),
        Task("russe", "RUSSE"),
        Task("rwsd", "RWSD"),
        Task("terra", "TERRa"),
    )
}


OwnMetric = Literal["accuracy", "f1", "exact_match"]
"""How a task of one's own can be scored."""


def complete_task(_ctx: object, _param: object, typed: str) -> list[str]:
    """Return the tasks that begin with `typed`, for shell completion."""
    return [name for name in TASKS if name.startswith(typed)]


def complete_tasks(_ctx: object, _param: object, typed: str) -> list[str]:
    """Complete the last of several tasks separated by commas."""
    return complete_names(TASKS, typed)


@dataclass(frozen=True)
class Records:
    """The input of a run: the records of a file, repeated up to a count."""

    path: Path
    count: int
    """Number of records to feed."""
    distinct: int | None
    """Number of different `idx` among them; None if a record has none."""
    sha256: str
    """Of the whole file."""
    idxs: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """The different `idx` among them, as text; empty if a record has none."""


def find_data(data_dir: Path, task_name: str) -> Path:
    """Return the data file of a task; raises DataError, which names the paths tried."""
    if task_name in ("", ".", "..") or "/" in task_name:
        raise DataError(f"{task_name!r} is not a task name; the nine are: {', '.join(TASKS)}.")
    task = TASKS.get(task_name)
    if task is None and task_name.lower() in TASKS:
        raise DataError(f"There is no task {task_name!r}; did you mean {task_name.lower()!r}?")
    names = (
        [f"{task.title}/{task.validation}"]
        if task
        else [f"{task_name}/val.jsonl", f"{task_name}.jsonl"]
    )
    for name in names:
        if os.path.isfile(data_dir / name):  # noqa: PTH113 (Path.is_file raises if a name is too long)
            return data_dir / name
    if not data_dir.is_dir():
        raise DataError(
            f"There is no folder {data_dir}. Download the archive of Russian SuperGLUE from "
            "russiansuperglue.com; it unpacks to data/public."
        )
    looked_for = " and ".join(str(data_dir / name) for name in names)
    hint = "" if task else f" The nine tasks of Russian SuperGLUE are: {', '.join(TASKS)}."
    raise DataError(f"No data for the task {task_name!r}: looked for {looked_for}.{hint}")


def load_records(path: Path, input_size: int) -> Records:
    """Return the input of a run after checking every line of its file.

    Raises DataError, which names the file and the line that is not a JSON object.
    """
    digest = hashlib.sha256()
    seen: set[str] = set()
    all_have_idx = True
    total = 0
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            digest.update(line)
            text = strip_line(line)
            if not text:
                continue
            record = parse_line(text, path, number)
            total += 1
            if total <= input_size:
                all_have_idx = all_have_idx and "idx" in record
                seen.add(str(record.get("idx")))
    if not total:
        raise DataError(f"{path} is empty: it must contain records, one JSON object per line.")
    idxs = frozenset(seen if all_have_idx else ())
    return Records(path, input_size, len(idxs) or None, digest.hexdigest(), idxs)


def iterate_chunks(records: Records) -> Iterator[tuple[bytes, int]]:
    """Yield the input as (bytes, number of records), in constant memory."""
    chunk: list[bytes] = []
    size = 0
    for lines in _cycle_lines(records):
        chunk += lines
        size += sum(map(len, lines))
        if size >= _CHUNK:
            yield _join_lines(chunk), len(chunk)
            chunk, size = [], 0
    if chunk:
        yield _join_lines(chunk), len(chunk)


def _join_lines(lines: list[bytes]) -> bytes:
    return b"\n".join((*lines, b""))


def _cycle_lines(records: Records) -> Iterator[list[bytes]]:
    """Yield some lines at a time, without newlines."""
    left = records.count
    before, lines = b"", list[bytes]()
    while left:
        left_before = left
        with _open(records.path) as file:
            while left and (block := file.read(_CHUNK)):
                block += file.readline()
                if block != before:  # a small file is the same block again and again
                    before, lines = block, _split_records(block)
                yield lines[:left]
                left -= min(left, len(lines))
        if left == left_before:
            raise DataError(f"{records.path} was emptied while it was being fed.")


def _split_records(block: bytes) -> list[bytes]:
    return [record for line in block.split(b"\n") if (record := strip_line(line))]


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from None
