"""The folder of a suite: held by one process at a time, known again by the next."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from morocco.errors import DataError, OutputError
from morocco.suite.resume import MARKER, hold_folder

HOLDER = """
import sys
from pathlib import Path
from morocco.suite.resume import hold_folder
with hold_folder(Path(sys.argv[1])) as name:
    print(name, flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield a process that holds a folder, and what it calls it."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout
        yield holder, holder.stdout.readline().strip()
        holder.kill()


def hold(folder: Path) -> str:
    """Hold a folder for a moment, and return its name."""
    with hold_folder(folder) as name:
        return name


def complaint(folder: Path) -> str:
    with pytest.raises(DataError) as error:
        hold(folder)
    return str(error.value)


def test_a_folder_is_made_where_there_is_none(tmp_path: Path) -> None:
    assert hold(tmp_path / "new" / "logs")
    assert (tmp_path / "new" / "logs" / MARKER).is_file()


def test_the_same_folder_has_the_same_name_each_time(tmp_path: Path) -> None:
    assert hold(tmp_path) == hold(tmp_path)


def test_another_folder_has_another_name(tmp_path: Path) -> None:
    assert hold(tmp_path / "a") != hold(tmp_path / "b")


def test_a_copy_of_a_folder_has_another_name(tmp_path: Path) -> None:
    name = hold(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert hold(tmp_path / "b") != name
    assert hold(tmp_path / "a") == name


def test_a_folder_that_was_moved_keeps_its_name(tmp_path: Path) -> None:
    name = hold(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    assert hold(tmp_path / "b") == name


def test_a_name_can_stand_in_an_environment_and_in_a_label(tmp_path: Path) -> None:
    assert set(hold(tmp_path)) <= set("0123456789abcdef-")


def test_the_error_for_a_held_folder_names_the_holder(tmp_path: Path) -> None:
    with held_by_another(tmp_path) as (holder, _):
        message = complaint(tmp_path)
    assert str(tmp_path) in message
    assert f"process {holder.pid} on {platform.node()}, since 20" in message


def test_who_is_refused_does_not_disturb_the_holder(tmp_path: Path) -> None:
    with held_by_another(tmp_path) as (_, name):
        before = (tmp_path / MARKER).read_bytes()
        complaint(tmp_path)
        complaint(tmp_path)
        assert (tmp_path / MARKER).read_bytes() == before
    assert hold(tmp_path) == name


def test_a_holder_that_ended_holds_it_no_more(tmp_path: Path) -> None:
    with held_by_another(tmp_path) as (holder, name):
        holder.communicate("")
        assert holder.returncode == 0
        assert hold(tmp_path) == name


def test_a_holder_that_was_killed_holds_it_no_more(tmp_path: Path) -> None:
    with held_by_another(tmp_path) as (holder, name):
        holder.kill()
        holder.wait()
        assert hold(tmp_path) == name


def test_the_one_process_holds_it_once(tmp_path: Path) -> None:
    with hold_folder(tmp_path):
        assert f"process {os.getpid()} on" in complaint(tmp_path)
    hold(tmp_path)


@pytest.mark.parametrize("content", [b"", b"nonsense\n", b"{}", b"\xff\xfe\n\n\n", b"0" * 99])
def test_a_file_that_somebody_spoilt_is_written_anew(content: bytes, tmp_path: Path) -> None:
    (tmp_path / MARKER).write_bytes(content)
    name = hold(tmp_path)
    assert len(name.partition("-")[0]) == 32
    assert hold(tmp_path) == name


@pytest.mark.parametrize("second_line", [b"", b"{", b"[]", b"{}", b"5"])
def test_a_holder_that_has_not_signed_yet(second_line: bytes, tmp_path: Path) -> None:
    with hold_folder(tmp_path) as name:
        (tmp_path / MARKER).write_bytes(name.partition("-")[0].encode() + b"\n" + second_line)
        assert "just started" in complaint(tmp_path)


def test_the_file_does_not_grow(tmp_path: Path) -> None:
    hold(tmp_path)
    size = (tmp_path / MARKER).stat().st_size
    hold(tmp_path)
    assert (tmp_path / MARKER).stat().st_size == size


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=rf"Cannot write {tmp_path}/file/logs.*Not a directory"):
        hold(tmp_path / "file" / "logs")


def test_a_full_disk_is_reported(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * 64 * 1024)
    with pytest.raises(OutputError, match="No space left on device"):
        hold(small_disk)
    (small_disk / "filler").unlink()
    assert hold(small_disk)
