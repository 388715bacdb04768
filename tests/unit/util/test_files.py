"""Files that are replaced as a whole, and what is written to in place: devices, FIFOs, stdout."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from morocco.errors import OutputError
from morocco.util.files import is_special, open_special, write_output
from special_files import FULL, SPECIAL, describe, make_device, make_fifo, read_fifo

WRITE = """
import sys
from pathlib import Path
from morocco.util.files import write_output
print("before", flush=True)
write_output(Path(sys.argv[1]), b"written\\n", "a file")
print("after", flush=True)
"""


@SPECIAL
def test_what_is_no_regular_file_is_written_to_and_not_replaced(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = make(tmp_path / "out")
    before = describe(path)
    with read_fifo(path) as received:
        write_output(path, b"report", "a file")
    assert describe(path) == before
    assert bytes(received) == (b"report" if path.is_fifo() else b"")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_stdout_goes_on_where_it_was_even_in_a_file(name: str, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        subprocess.run([sys.executable, "-c", WRITE, name], stdout=file, check=True)
    assert (tmp_path / "out").read_text() == "before\nwritten\nafter\n"
    assert Path("/dev/stdout").is_symlink()


def test_a_link_to_stdout_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "out"
    link.symlink_to("/dev/stdout")
    command = [sys.executable, "-c", WRITE, str(link)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "before\nwritten\nafter\n"
    assert link.is_symlink()


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to("file")
    write_output(link, b"report", "a file")
    assert link.is_symlink()
    assert file.read_bytes() == b"report"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_fifo_that_nobody_reads_is_an_error_instead_of_a_wait(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="Nobody reads it; start its reader first"):
        write_output(make_fifo(tmp_path / "out"), b"", "a file")


def test_a_device_that_is_full_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="No space left on device"):
        write_output(make_device(tmp_path / "out", FULL), b"report", "a file")


def test_a_socket_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        before = describe(path)
        with pytest.raises(OutputError, match="Cannot write"):
            write_output(path, b"report", "a file")
    assert describe(path) == before


def test_a_file_and_a_folder_are_nothing_special(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    names = ["", "file", "missing", "1"]
    assert not any(is_special(tmp_path / name) for name in names)


def test_all_of_a_large_piece_reaches_a_fifo(tmp_path: Path) -> None:
    path = make_fifo(tmp_path / "out")
    with read_fifo(path) as received, open_special(path) as file:
        assert file.write(b"x" * 1_000_000) == 1_000_000
    assert len(received) == 1_000_000
