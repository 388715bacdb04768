"""Where logs go: real files that appear whole or not at all, locks, full disks."""

from __future__ import annotations

import fcntl
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from morocco.bench.writers import FileWriter, StreamWriter, clear_part, open_log, open_predictions
from morocco.errors import DataError, MoroccoError, OutputError
from morocco.logs.samples import Sample
from morocco.util.files import write_atomically
from special_files import SPECIAL, describe, make_fifo, read_fifo

SAMPLES = [Sample(1.0, None, 5), Sample(2.0)]
LINES = "".join(sample.to_line() + "\n" for sample in SAMPLES)
RECORD: dict[str, Any] = {"format": 1, "task": "parus", "host": {"cpu": "Эльбрус"}}
KILLED_RUN = """
import os, sys
from pathlib import Path
from morocco.logs.samples import Sample
from morocco.bench.writers import FileWriter
writer = FileWriter(Path(sys.argv[1]))
for moment in range(9):
    writer.write(Sample(moment))
os.kill(os.getpid(), 9)
"""


def write_and_fail(path: Path, data: bytes) -> None:
    with open_predictions(path) as file:
        assert file is not None
        with suppress(OSError):
            file.write(data)
            file.flush()
        raise MoroccoError("it failed")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "parus" / "2000_32_01.jsonl"


def write_run(writer: FileWriter) -> FileWriter:
    for sample in SAMPLES:
        writer.write(sample)
    return writer


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@contextmanager
def disk_with_room_for(size: int) -> Iterator[None]:
    """Let no file grow beyond `size`: what a full disk is, for this process alone."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_while_a_run_goes_its_samples_are_in_the_part_file_at_once(path: Path) -> None:
    writer = write_run(FileWriter(path))
    assert contents(path.parent) == {"2000_32_01.jsonl.part": LINES}
    writer.fail({})


def test_a_good_run_leaves_the_log_and_its_record(path: Path) -> None:
    write_run(FileWriter(path)).finish(RECORD)
    assert path.read_text() == LINES
    assert json.loads(path.with_suffix(".json").read_text()) == RECORD
    assert len(contents(path.parent)) == 2


def test_a_record_is_written_for_people_too(path: Path) -> None:
    write_run(FileWriter(path)).finish(RECORD)
    assert '\n  "task": "parus",\n' in path.with_suffix(".json").read_text()
    assert "Эльбрус" in path.with_suffix(".json").read_text()


def test_a_file_name_that_is_no_utf8_loses_no_run(path: Path) -> None:
    name = b"\xe4\xe0\xed\xed\xfb\xe5".decode("utf-8", "surrogateescape")  # cp1251, as of old
    write_run(FileWriter(path)).finish({"data": name})
    assert json.loads(path.with_suffix(".json").read_text()) == {"data": name}
    assert path.exists()


def test_a_failed_run_leaves_nothing_that_looks_like_a_log(path: Path) -> None:
    write_run(FileWriter(path)).fail(RECORD)
    left = contents(path.parent)
    assert set(left) == {"2000_32_01.jsonl.failed", "2000_32_01.failed.json"}
    assert left["2000_32_01.jsonl.failed"] == LINES


def test_a_good_run_removes_what_a_failed_one_left(path: Path) -> None:
    write_run(FileWriter(path)).fail(RECORD)
    write_run(FileWriter(path)).finish(RECORD)
    assert set(contents(path.parent)) == {"2000_32_01.jsonl", "2000_32_01.json"}


def test_a_finished_log_is_not_overwritten(path: Path) -> None:
    write_run(FileWriter(path)).finish(RECORD)
    before = contents(path.parent)
    with pytest.raises(DataError, match=f"{path} already exists.*--force"):
        FileWriter(path)
    assert contents(path.parent) == before


def test_with_force_a_finished_log_gives_way_to_a_finished_one(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("old")
    writer = write_run(FileWriter(path, replace=True))
    assert path.read_text() == "old"
    writer.finish(RECORD)
    assert path.read_text() == LINES


def test_with_force_a_finished_log_outlives_a_failed_run(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("old")
    write_run(FileWriter(path, replace=True)).fail(RECORD)
    assert path.read_text() == "old"


def test_two_runs_cannot_write_one_log(path: Path) -> None:
    writer = write_run(FileWriter(path))
    with pytest.raises(DataError, match=f"Another run is writing {path}"):
        FileWriter(path)
    writer.finish(RECORD)
    assert path.read_text() == LINES


def test_a_log_that_is_finished_while_another_run_opens_it_is_not_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_run(FileWriter(path))

    def finish_just_before(*args: Any) -> None:
        monkeypatch.undo()
        first.finish(RECORD)
        fcntl.flock(*args)

    monkeypatch.setattr(fcntl, "flock", finish_just_before)
    with pytest.raises(DataError):
        FileWriter(path)
    assert path.read_text() == LINES


def test_what_a_killed_run_left_is_overwritten(path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED_RUN, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(contents(path.parent)["2000_32_01.jsonl.part"].splitlines()) == 9
    write_run(FileWriter(path)).finish(RECORD)
    assert path.read_text() == LINES


def remove(part: Path) -> None:
    part.unlink()


def replace(part: Path) -> None:
    part.rename(part.with_name("moved"))
    part.write_text(LINES)


def cut(part: Path) -> None:
    with part.open("w"):
        pass


DISTURBANCES = pytest.mark.parametrize(
    ("disturb", "change"),
    [(remove, "removed"), (replace, "replaced"), (cut, "cut")],
)


@DISTURBANCES
def test_a_log_that_something_else_changed_is_not_finished(
    disturb: Callable[[Path], None], change: str, path: Path
) -> None:
    writer = FileWriter(path)
    writer.write(SAMPLES[0])
    part = path.with_name(f"{path.name}.part")
    disturb(part)
    with pytest.raises(OutputError, match=f"{part} was .*{change}"):
        writer.write(SAMPLES[1])
    writer.fail(RECORD)
    assert not path.exists()
    assert json.loads(path.with_suffix(".failed.json").read_text()) == RECORD
    assert part.exists() == (disturb is replace)  # which belongs to somebody else


@DISTURBANCES
def test_predictions_that_something_else_changed_are_not_finished(
    disturb: Callable[[Path], None], change: str, tmp_path: Path
) -> None:
    kept, part = tmp_path / "kept", tmp_path / "kept.part"

    def predict() -> None:
        with open_predictions(kept) as file:
            assert file is not None
            file.write(b"a\n")
            disturb(part)
            file.write(b"b\n")

    with pytest.raises(OutputError, match=f"{part} was .*{change}"):
        predict()
    assert not kept.exists()


def test_two_runs_cannot_write_the_same_predictions(tmp_path: Path) -> None:
    with open_predictions(tmp_path / "kept") as first:
        assert first is not None
        first.write(b"a\n")
        again = open_predictions(tmp_path / "kept", replace=True)
        with pytest.raises(DataError, match="Another run is writing"), again:
            pass
        first.write(b"b\n")
    assert contents(tmp_path) == {"kept": "a\nb\n"}


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder; name a file in it"):
        FileWriter(tmp_path)


def test_a_record_does_not_take_the_name_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"\.json"):
        FileWriter(tmp_path / "log.json")


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="Cannot write"):
        FileWriter(tmp_path / "file" / "2000_32_01.jsonl")


def test_a_disk_that_fills_up_ends_a_run_as_a_failed_one(path: Path) -> None:
    writer = FileWriter(path)
    with disk_with_room_for(150):
        writer.write(SAMPLES[0])
        with pytest.raises(OutputError, match=r"Cannot write .*: File too large"):
            writer.write(SAMPLES[1])
        writer.fail(RECORD)
    assert set(contents(path.parent)) <= {"2000_32_01.jsonl.failed", "2000_32_01.failed.json"}


def test_no_room_for_the_record_leaves_no_log_and_loses_no_samples(path: Path) -> None:
    writer = write_run(FileWriter(path))
    with disk_with_room_for(10), pytest.raises(OutputError, match="The samples are in"):
        writer.finish(RECORD)
    assert not path.exists()
    assert LINES in contents(path.parent).values()


@SPECIAL
def test_a_log_is_written_to_what_is_no_file_and_does_not_replace_it(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    place = make(tmp_path / "out")
    before, files = describe(place), len(list(tmp_path.iterdir()))
    with read_fifo(place) as received:
        writer = open_log(place, replace=True)
        for sample in SAMPLES:
            writer.write(sample)
        writer.finish(RECORD)
    assert describe(place) == before
    assert received.decode() == (LINES if place.is_fifo() else "")
    assert len(list(tmp_path.iterdir())) == files  # and there is no record beside it


@SPECIAL
def test_predictions_are_written_to_what_is_no_file_and_do_not_replace_it(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    place = make(tmp_path / "out")
    before, files = describe(place), len(list(tmp_path.iterdir()))
    with read_fifo(place) as received:
        with open_predictions(place) as file:
            assert file is not None
            file.write(b"a\n")
        with pytest.raises(MoroccoError, match="it failed"):
            write_and_fail(place, b"b\n")
    assert describe(place) == before
    assert bytes(received) == (b"a\nb\n" if place.is_fifo() else b"")
    assert len(list(tmp_path.iterdir())) == files


@pytest.mark.parametrize("ending", ["", ".part", ".failed"])
def test_a_pipe_with_the_name_of_a_log_of_a_suite_stays(ending: str, path: Path) -> None:
    path.parent.mkdir()
    pipe = make_fifo(path.with_name(path.name + ending))
    clear_part(path)
    with pytest.raises(OutputError, match=f"{pipe} is no regular file"):
        FileWriter(path, replace=True)
    assert pipe.is_fifo()


def test_a_record_is_not_put_in_the_place_of_a_pipe(path: Path) -> None:
    writer = write_run(FileWriter(path))
    pipe = make_fifo(path.with_suffix(".json"))
    with pytest.raises(OutputError, match="Nobody reads it"):
        writer.finish(RECORD)
    assert pipe.is_fifo()


def test_a_log_and_predictions_follow_a_link_to_a_file(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to(tmp_path / "log")
    write_run(FileWriter(path)).finish(RECORD)
    assert path.is_symlink()
    assert (tmp_path / "log").read_text() == LINES
    (tmp_path / "p").symlink_to("kept")
    with open_predictions(tmp_path / "p") as file:
        assert file is not None
        file.write(b"a\n")
    assert (tmp_path / "p").is_symlink()
    assert (tmp_path / "kept").read_bytes() == b"a\n"


def test_samples_go_to_a_stream_line_by_line() -> None:
    stream = StringIO()
    writer = StreamWriter(stream)
    for sample in SAMPLES:
        writer.write(sample)
    writer.finish(RECORD)
    assert stream.getvalue() == LINES


def test_a_stream_that_takes_no_more_is_an_error() -> None:
    full = open("/dev/full", "w")  # noqa: PTH123, SIM115 (it cannot be closed without an error)
    with pytest.raises(OutputError, match="Cannot write the samples to stdout: No space left"):
        StreamWriter(full).write(SAMPLES[0])
    with suppress(OSError):
        full.close()


def test_predictions_get_their_name_at_the_end_of_a_good_run(tmp_path: Path) -> None:
    with open_predictions(tmp_path / "new" / "p.jsonl") as file:
        assert file is not None
        file.write(b"a\n")
        assert set(contents(tmp_path / "new")) == {"p.jsonl.part"}
    assert contents(tmp_path / "new") == {"p.jsonl": "a\n"}


def test_predictions_of_a_failed_run_are_set_aside(tmp_path: Path) -> None:
    with pytest.raises(MoroccoError, match="it failed"):
        write_and_fail(tmp_path / "p", b"a\n")
    assert contents(tmp_path) == {"p.failed": "a\n"}


def test_a_disk_without_room_for_predictions_hides_no_other_failure(tmp_path: Path) -> None:
    with disk_with_room_for(10), pytest.raises(MoroccoError, match="it failed"):
        write_and_fail(tmp_path / "p", b"x" * 20)
    assert set(contents(tmp_path)) == {"p.failed"}


def test_predictions_that_nobody_wants_go_nowhere() -> None:
    with open_predictions(None) as file:
        assert file is None


def test_predictions_that_cannot_be_written_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(OutputError, match="Cannot write"),
        open_predictions(tmp_path / "file" / "p.jsonl"),
    ):
        pass


def test_predictions_cannot_take_the_name_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    with pytest.raises(MoroccoError, match="folder"), open_predictions(tmp_path / "p"):
        pass


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_atomically(path, b"old")
    with disk_with_room_for(10), pytest.raises(OSError, match="File too large"):
        write_atomically(path, b"new" * 10)
    assert contents(tmp_path) == {"record.json": "old"}
    write_atomically(path, b"new" * 10)
    assert contents(tmp_path) == {"record.json": "new" * 10}
