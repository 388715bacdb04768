"""The engine's frames, and the socket they come through."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.targets.container import AttachedStreams, demultiplex
from runs import until

NUMBERS = {"stdout": 1, "stderr": 2}

Frames = list[tuple[str, bytes]]
frames = st.lists(st.tuples(st.sampled_from(sorted(NUMBERS)), st.binary(max_size=30)), max_size=8)


def encode(*frames: tuple[str, bytes]) -> bytes:
    """Return frames as the engine sends them (Docker API, ContainerAttach)."""
    return b"".join(struct.pack(">BxxxL", NUMBERS[name], len(data)) + data for name, data in frames)


def joined(frames: Frames) -> Frames:
    """Return the same output with neighbours of one channel put together."""
    spoken = [frame for frame in frames if frame[1]]
    return [
        (name, b"".join(data for _, data in group))
        for name, group in groupby(spoken, key=lambda frame: frame[0])
    ]


@given(frames, st.data())
def test_frames_are_told_apart_however_they_are_cut(sent: Frames, data: st.DataObject) -> None:
    stream = encode(*sent)
    places = data.draw(st.lists(st.integers(0, len(stream)), max_size=40), label="cut at")
    cuts = sorted([0, *places, len(stream)])
    pieces = (stream[start:end] for start, end in pairwise(cuts))
    assert joined(list(demultiplex(pieces))) == joined(sent)


def test_a_payload_is_handed_on_before_its_frame_is_complete() -> None:
    stream = encode(("stdout", b"abcdef"))
    assert next(demultiplex(iter([stream[:10], stream[10:]]))) == ("stdout", b"ab")


def test_a_stream_that_breaks_off_gives_what_came() -> None:
    stream = encode(("stdout", b"abc"), ("stderr", b"def"))
    assert list(demultiplex(iter([stream[:-1]]))) == [("stdout", b"abc"), ("stderr", b"de")]
    assert list(demultiplex(iter([stream[:14]]))) == [("stdout", b"abc")]


def is_asleep(thread: threading.Thread) -> bool:
    """Return whether the kernel has a thread wait for something."""
    stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "S"


Ends = tuple[AttachedStreams, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Give our end of a real connection, and the engine's."""
    ours, engine = socket.socketpair()
    ours.settimeout(0.01)  # as the HTTP client leaves it
    streams = AttachedStreams(ours)
    with engine:
        engine.settimeout(30)
        yield streams, engine
        streams.close()


def test_input_goes_out_and_ends_while_output_still_comes(ends: Ends) -> None:
    streams, engine = ends
    streams.write(b"records\n")
    streams.close_input()
    assert engine.recv(100) == b"records\n"
    assert engine.recv(100) == b""
    engine.sendall(encode(("stdout", b"predictions\n"), ("stderr", b"done\n")))
    engine.shutdown(socket.SHUT_WR)
    assert list(streams.output()) == [("stdout", b"predictions\n"), ("stderr", b"done\n")]


def test_much_goes_both_ways_at_the_same_time(ends: Ends) -> None:
    streams, engine = ends
    line = b"x" * 4095 + b"\n"

    def echo() -> None:
        while data := engine.recv(2**16):
            engine.sendall(encode(("stdout", data)))
        engine.shutdown(socket.SHUT_WR)

    def feed() -> None:
        for _ in range(1000):
            streams.write(line)
        streams.close_input()

    threads = [threading.Thread(target=echo), threading.Thread(target=feed)]
    for thread in threads:
        thread.start()
    output = b"".join(data for _, data in streams.output())
    for thread in threads:
        thread.join()
    assert output == line * 1000


def test_a_silent_model_is_waited_for(ends: Ends) -> None:
    streams, engine = ends

    def speak_late() -> None:
        engine.sendall(encode(("stdout", b"at last\n")))
        engine.shutdown(socket.SHUT_WR)

    threading.Timer(0.2, speak_late).start()
    assert list(streams.output()) == [("stdout", b"at last\n")]


def test_nobody_there_to_read_is_an_error(ends: Ends) -> None:
    streams, engine = ends
    engine.close()
    with pytest.raises(OSError, match="Broken pipe"):
        streams.write(b"records\n")


def test_close_wakes_whoever_waits_for_output(ends: Ends) -> None:
    streams, engine = ends
    came: Frames = []

    def drain() -> None:
        for frame in streams.output():
            came.append(frame)

    reader = threading.Thread(target=drain)
    reader.start()
    engine.sendall(encode(("stdout", b"first")))
    until(lambda: came)
    until(lambda: is_asleep(reader))
    streams.close()
    reader.join(30)
    assert not reader.is_alive()
