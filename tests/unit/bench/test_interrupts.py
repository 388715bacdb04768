"""Signals that are really sent, to a process that has taken them over."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

CHILD = """
import os, queue, signal, sys, threading, time
from morocco.bench.interrupts import forward_signals

events = queue.SimpleQueue()
forward_signals(events.put)

def send(name):
    os.kill(os.getpid(), getattr(signal, name))
    time.sleep(0.01)  # Python runs the handler at the next step

def told():
    return [f"{error.exit_code} {error}" for error in iter(lambda: None if events.empty()
            else events.get(), None)]

"""


def run(code: str, *shell: str) -> list[str]:
    """Return what the child prints; `shell` is run before it, as nohup would be."""
    command = "; ".join((*shell, 'exec "$0" -c "$1"'))
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, CHILD + code],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "cause"), [("SIGINT", "Ctrl-C"), ("SIGTERM", "SIGTERM"), ("SIGHUP", "SIGHUP")]
)
def test_a_signal_is_handed_on_with_the_exit_code_of_the_shell(name: str, cause: str) -> None:
    (line,) = run(f"send('{name}'); print(*told(), sep='\\n')")
    assert line.startswith(f"{128 + getattr(signal, name)} Stopped by {cause}")


def test_a_signal_breaks_nothing_off() -> None:
    assert run("send('SIGTERM'); print('went on')") == ["went on"]


def test_a_second_signal_does_not_disturb_the_cleaning_up() -> None:
    (line,) = run("send('SIGINT'); send('SIGINT'); send('SIGTERM'); print(*told(), sep='\\n')")
    assert line.startswith("130 ")


def test_a_signal_ends_a_wait_at_once() -> None:
    (line,) = run(
        "threading.Timer(0.2, send, ['SIGTERM']).start()\nprint(events.get(timeout=60).exit_code)"
    )
    assert line == "143"


def test_what_nohup_switched_off_stays_off() -> None:
    (line,) = run("send('SIGHUP'); send('SIGTERM'); print(*told())", "trap '' HUP")
    assert line.startswith("143 ")
