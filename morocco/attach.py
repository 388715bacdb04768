"""The streams of a container: one socket for its input and, framed, for all it prints."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

from morocco.target import Channel

_READ_SIZE = 1024 * 1024
_HEADER = struct.Struct(">BxxxL")  # of a frame: channel, length
_CHANNELS: dict[int, Channel] = {1: "stdout", 2: "stderr"}


class AttachedStreams:
    """The raw socket of the engine's attach call; fed by one thread and drained by another."""

    def __init__(self, attached: socket.socket) -> None:
        self._socket = attached
        self._socket.settimeout(None)  # a model may be silent for as long as it likes

    def write(self, data: bytes) -> None:
        """Feed all of `data`; OSError when nobody reads any more."""
        self._socket.sendall(data)

    def close_input(self) -> None:
        """Shut the writing side, which ends the container's input."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def output(self) -> Iterator[tuple[Channel, bytes]]:
        """Yield what the container prints, as it comes, until both streams end."""
        return demultiplex(iter(lambda: self._socket.recv(_READ_SIZE), b""))

    def close(self) -> None:
        """Close the socket and wake the threads that wait in it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def demultiplex(chunks: Iterator[bytes]) -> Iterator[tuple[Channel, bytes]]:
    """Yield the payload of the engine's frames, of whatever size the chunks are.

    The format is that of the engine's attach call: a header of 8 bytes (channel, 0, 0, 0, length
    as big-endian uint32) before each payload.
    """
    header, channel, left = b"", 0, 0
    for chunk in chunks:
        position = 0
        while position < len(chunk):
            if left == 0:
                taken = chunk[position : position + _HEADER.size - len(header)]
                header, position = header + taken, position + len(taken)
                if len(header) == _HEADER.size:
                    (channel, left), header = _HEADER.unpack(header), b""
            else:
                payload = chunk[position : position + left]
                left, position = left - len(payload), position + len(payload)
                yield _CHANNELS.get(channel, "stderr"), payload
