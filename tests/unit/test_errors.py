"""The errors of morocco: what they carry arrives whole on another machine."""

from __future__ import annotations

import pickle
import signal

import pytest

from morocco.errors import DataError, Interrupted, MoroccoError, OutOfMemory, TargetError


@pytest.mark.parametrize(
    "error",
    [
        DataError("no data"),
        TargetError("ended", 3),
        OutOfMemory("killed"),
        Interrupted("stopped", signal.SIGINT),
        Interrupted("stopped"),
    ],
)
def test_an_error_survives_being_sent(error: MoroccoError) -> None:
    received = pickle.loads(pickle.dumps(error))
    assert type(received) is type(error)
    assert str(received) == str(error)
    assert (received.cause, received.exit_code) == (error.cause, error.exit_code)


def test_an_interruption_without_a_signal_of_its_own_counts_as_sigterm() -> None:
    assert Interrupted("stopped").exit_code == 128 + 15
